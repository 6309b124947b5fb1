"""Logs judged by the workers of a Ray cluster.

A task is one log, and is never tried again: what a worker died of would kill the next one. The
library is put into the cluster once, and loaded once by each worker.
"""

from __future__ import annotations

import importlib
import io
import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from typing import Any, Final, TextIO, cast

from loopdetect import __version__
from loopdetect.errors import LoopdetectError
from loopdetect.scan.outcome import Judged, Outcome, Trouble
from loopdetect.scan.work import Judge, Parcel, parcel
from loopdetect.source.histories import History

Task = tuple[int, History]
AT_ONCE_LEAST: Final = 64
AT_ONCE_A_CPU: Final = 4
# Results between two looks at how large the cluster is.
LOOK_EVERY: Final = 500
CONNECT_S: Final = 5.0
CHECK: Final = "check its address with ray status, or start one for this scan: --cluster local"
INSTALL: Final = "install it: pip install 'loopdetect-llm[cluster]'"


def judged(tasks: Iterator[Task], judge: Judge, address: str, at_once: int | None) -> Judged:
    """Yield what becomes of each task as it is done; `at_once` limits how many run.

    Raises LoopdetectError where there is no Ray, no cluster or no loopdetect on it.
    """
    ray = _ray()
    with _connected(ray, address):
        shared = ray.put(parcel(judge))
        remote = ray.remote(max_retries=0, num_cpus=1)(judge_there)
        running: dict[Any, Task] = {}
        limit, done = _limit(ray, at_once), 0
        while True:
            while len(running) < limit and (task := next(tasks, None)) is not None:
                running[remote.remote([shared], __version__, task[1])] = task
            if not running:
                return
            for reference in ray.wait(list(running), num_returns=1)[0]:
                index, history = running.pop(reference)
                yield index, _outcome(ray, reference, history)
                done += 1
                if done % LOOK_EVERY == 0:
                    limit = _limit(ray, at_once)


def _limit(ray: Any, at_once: int | None) -> int:
    if at_once is not None:
        return at_once
    return max(AT_ONCE_LEAST, AT_ONCE_A_CPU * int(ray.cluster_resources().get("CPU", 0)))


def _ray() -> Any:
    try:
        return importlib.import_module("ray")
    except ImportError as problem:
        raise LoopdetectError(f"--cluster needs the package ray: {problem}", INSTALL) from None


@contextmanager
def _connected(ray: Any, address: str) -> Iterator[None]:
    if address == "local":
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    _reachable(address)
    # Ray takes SIGTERM for itself; whose it was gets it back.
    before = signal.getsignal(signal.SIGTERM)
    try:
        ray.init(address=address, logging_level=logging.ERROR, log_to_driver=False)
    except Exception as problem:
        raise LoopdetectError(
            f"cannot reach the cluster {address}: {_said(problem)}", CHECK
        ) from problem
    signal.signal(signal.SIGTERM, before)
    output = sys.stdout
    sys.stdout = cast(TextIO, _Ours(output))
    try:
        yield
    finally:
        # What Ray held back of its messages it prints when it leaves.
        with redirect_stdout(io.StringIO()):
            ray.shutdown()
        sys.stdout = output


class _Ours:
    """Standard output without what Ray's threads print there of workers that died."""

    def __init__(self, output: TextIO) -> None:
        self._output = output

    def write(self, text: str) -> int:
        """Write what the main thread has to say."""
        ours = threading.current_thread() is threading.main_thread()
        return self._output.write(text) if ours else len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._output, name)


def _reachable(address: str) -> None:
    """Ray itself would try for minutes; raises LoopdetectError."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host or not port.isdecimal():
        return
    try:
        socket.create_connection((host, int(port)), CONNECT_S).close()
    except (OSError, OverflowError) as problem:
        raise LoopdetectError(
            f"cannot reach the cluster {address}: {getattr(problem, 'strerror', None) or problem}",
            CHECK,
        ) from problem


def _outcome(ray: Any, reference: Any, history: History) -> Outcome:
    try:
        outcome = ray.get(reference)
    except ray.exceptions.RayTaskError as problem:
        raise LoopdetectError(
            f"the cluster's workers cannot run loopdetect: {_said(problem.cause or problem)}",
            f"install loopdetect-llm {__version__} on every node",
        ) from problem
    except ray.exceptions.RayError as problem:
        text = f"{history.name}: the worker that read it is gone: {_said(problem)}"
        return Outcome(None, (Trouble(text, "read it alone: loopdetect inspect FILE"),))
    assert isinstance(outcome, Outcome)
    return outcome


def _said(problem: BaseException) -> str:
    lines = [line.strip() for line in str(problem).split("\n") if line.strip()]
    return lines[0][:300] if lines else type(problem).__name__


# -- on the node

_judges: dict[Any, Judge] = {}


def judge_there(shared: list[Any], version: str, history: History) -> Outcome:
    """Judge one log on the node where this runs; `shared` holds the reference to the parcel."""
    if version != __version__:
        raise LoopdetectError(f"there is loopdetect {__version__} on a node, not {version}")
    reference = shared[0]
    if reference not in _judges:
        _judges.clear()
        given: Parcel = _ray().get(reference)
        with suppress(OSError):  # what is not there will be said of each log
            os.chdir(given.folder)
        _judges[reference] = given.judge()
    return _judges[reference](history)
