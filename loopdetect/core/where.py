"""In which phase a traceback was raised, told by the functions that its frames name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from loopdetect.core.event import Failure
from loopdetect.core.late import Late
from loopdetect.model import PHASE_RANK, Phase

_FRAME: Final = Late(r' *File "(?P<path>[^"]+)", line \d+, in (?P<name>\w+)')
# The call below a frame counts as well: what it leads to may be cut out of a paste.
_CALL: Final = Late(r" +(?:[\w., ]+ = )?(?:await )?(?:\w+\.)*(?P<name>\w{9,})\(")
_NO_STEP: Final = Late(r"/(?:triton|torch/_\w+|torch/utils|torch/nn)/")
_EARLY: Final = frozenset({Phase.UNKNOWN, Phase.CONFIG, Phase.DEVICE_INIT, Phase.DIST_INIT})


@dataclass(frozen=True, slots=True)
class Traced(Failure):
    """A candidate of which frames tell where the start-up stood."""

    at: Phase | None = None


def phase_of_frame(text: str, frames: Mapping[str, Phase]) -> Phase | None:
    """Return the phase that a line of a traceback's frames belongs to, by the functions in `frames`."""
    match = _FRAME.match(text)
    if match is None:
        match = _CALL.match(text)
    elif _NO_STEP.search(match["path"]):
        return None
    return frames.get(match["name"]) if match else None


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
