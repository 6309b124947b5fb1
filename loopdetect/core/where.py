"""In which phase a traceback was raised, told by the functions that its frames name."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from loopdetect.core.event import Failure
from loopdetect.model import PHASE_RANK, Phase

# The names that the servers give to the steps of a start-up; compilers have a "warmup" of their own.
_PHASES: Final = {
    Phase.DEVICE_INIT: ("init_device", "_lazy_init", "_npu_init"),
    Phase.DIST_INIT: (
        "init_distributed_environment",
        "init_worker_distributed_environment",
        "init_torch_distributed",
        "initialize_model_parallel",
        "initialize_torch_distributed",
        "init_process_group",
    ),
    Phase.LOAD_WEIGHTS: (
        "load_model",
        "load_weights",
        "process_weights_after_loading",
        "get_filename",
        "get_tensor",
        "get_sharded",
        "get_partial_sharded",
        "safetensors_weights_iterator",
        "pt_weights_iterator",
    ),
    Phase.KV_CACHE: (
        "determine_available_memory",
        "determine_num_available_blocks",
        "initialize_kv_cache",
        "_initialize_kv_caches",
        "init_kv_cache",
        "init_memory_pool",
        "profile_run",
    ),
    Phase.GRAPH_CAPTURE: (
        "capture",
        "capture_model",
        "capture_one_batch_size",
        "_capture_cudagraphs",
        "init_cuda_graphs",
        "init_device_graphs",
    ),
}
_BY_NAME: Final = {name: phase for phase, names in _PHASES.items() for name in names}
_FRAME: Final = re.compile(r' *File "(?P<path>[^"]+)", line \d+, in (?P<name>\w+)')
# The call below a frame counts as well: what it leads to may be cut out of a paste.
_CALL: Final = re.compile(r" +(?:[\w., ]+ = )?(?:await )?(?:\w+\.)*(?P<name>\w{9,})\(")
_NO_STEP: Final = re.compile(r"/(?:triton|torch/_\w+|torch/utils|torch/nn)/")
_EARLY: Final = frozenset({Phase.UNKNOWN, Phase.CONFIG, Phase.DEVICE_INIT, Phase.DIST_INIT})


@dataclass(frozen=True, slots=True)
class Traced(Failure):
    """A candidate of which frames tell where the start-up stood."""

    at: Phase | None = None


def phase_of_frame(text: str) -> Phase | None:
    """Return the step of a start-up that a line of a traceback's frames belongs to, where it tells."""
    match = _FRAME.match(text)
    if match is None:
        match = _CALL.match(text)
    elif _NO_STEP.search(match["path"]):
        return None
    return _BY_NAME.get(match["name"]) if match else None


def further(one: Phase | None, other: Phase | None) -> Phase | None:
    """Return the later of two phases; None is before all."""
    if one is None or other is None:
        return one or other
    return max(one, other, key=PHASE_RANK.__getitem__)


def refined(known: Phase, cause: Failure | None, failures: Iterable[Failure]) -> Phase:
    """Return how far a run got that said little of its start-up; servers often tell a cause twice."""
    if cause is None or known not in _EARLY:
        return known
    reached: Phase | None = known
    for failure in failures:
        if isinstance(failure, Traced) and failure.reason == cause.reason:
            reached = further(reached, failure.at)
    return reached or known
