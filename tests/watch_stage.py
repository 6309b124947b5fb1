"""A stage for tests of what is followed: a fast little server log, a listener that remembers."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from loopdetect.core.detector import Detector
from loopdetect.follow import wake
from loopdetect.follow.bell import Bell
from loopdetect.follow.happened import Happened, Manner
from loopdetect.follow.source import Followed, Reading
from loopdetect.follow.targets import sort_out
from loopdetect.follow.watcher import Saved, Watcher
from loopdetect.model import Policy, Report
from loopdetect.profiles import Library, load_library

COMMAND = [sys.executable, "-m", "loopdetect", "watch"]
DEADLINE = 10.0
DEATH = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."


def stamp(seconds: int) -> str:
    """The time that a vLLM line begins with, counted from ten o'clock."""
    return f"03-01 {10 + seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"


def start(at: int = 0, pid: int = 100) -> bytes:
    """The first line of a run."""
    head = f"(APIServer pid={pid}) INFO {stamp(at)} [api_server.py:10]"
    return f"{head} vLLM API server version 0.10.1\n".encode()


def noise(number: int, at: int = 0) -> bytes:
    """A line that tells nothing, each one different."""
    return f"INFO {stamp(at)} [loader.py:1] step {number:06}\n".encode()


def death(at: int = 0) -> bytes:
    """A traceback that ends a run for want of memory."""
    return (
        f"ERROR {stamp(at)} [core.py:700] EngineCore failed to start.\n"
        "Traceback (most recent call last):\n"
        '  File "worker.py", line 1, in load\n'
        f"{DEATH}\n"
    ).encode()


def ready(at: int = 0) -> bytes:
    """The lines with which a run becomes ready."""
    return (
        b"INFO:     Started server process [100]\n"
        b"INFO:     Waiting for application startup.\n"
        b"INFO:     Application startup complete.\n"
    )


def bar(done: int, total: int = 64) -> bytes:
    """One refresh of a bar."""
    share = 100 * done // total
    return (
        f"\rLoading safetensors checkpoint shards: {share:3}% Completed | {done}/{total} "
        "[00:01<00:01,  1.00it/s]"
    ).encode()


class Recorder:
    """A listener that keeps all it is told."""

    def __init__(self) -> None:
        self.events: list[Happened] = []
        self.saved: dict[str, Saved] = {}

    def happened(self, followed: Followed, events: list[Happened]) -> None:
        self.events += events

    def forgot(self, name: str) -> None:
        pass

    def save(self, followed: Followed) -> None:
        pass

    def recall(self, name: str) -> Saved | None:
        return self.saved.get(name)

    def swept(self, now: float) -> None:
        pass

    def said(self) -> list[str]:
        return [event.what.value for event in self.events if not event.alarm]


_LIBRARY: list[Library] = []


def reading(**changes: Any) -> Reading:
    """What sources are read with; the shipped profiles are read once."""
    if not _LIBRARY:
        _LIBRARY.append(load_library())
    values: dict[str, Any] = {"policy": Policy(), "manner": Manner(hold=0.0)}
    return Reading(_LIBRARY[0], None, **{**values, **changes})


def inspected(data: bytes, source: str) -> tuple[Report, ...]:
    """What `inspect` says of these bytes."""
    detector = Detector(reading().library, Policy(), source=source)
    detector.feed(data)
    return detector.finish()


@contextmanager
def watching(
    *arguments: str | Path, events: bool = True, **changes: Any
) -> Iterator[tuple[Watcher, Recorder, list[str]]]:
    """A watcher that has begun."""
    recorder, said, bell = Recorder(), list[str](), Bell()
    targets = sort_out(str(argument) for argument in arguments)
    watcher = Watcher(
        targets, reading(**changes), recorder, bell=bell, say=said.append, events=events
    )
    try:
        with patch.object(wake, "POLLED_EVERY", 0.05):
            watcher.begin()
            yield watcher, recorder, said
    finally:
        watcher.stop()
        bell.close()


def until(watcher: Watcher, true: Callable[[], bool], what: str = "it") -> None:
    """Turn the loop until something is true; fails after the deadline."""
    end = time.monotonic() + DEADLINE
    while not true():
        assert time.monotonic() < end, f"{what} did not come"
        watcher.step(0.05)


def wait_for(true: Callable[[], object], what: str = "it", seconds: float = DEADLINE) -> None:
    """Look until something is true; fails after the deadline."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, f"{what} did not come"
        time.sleep(0.01)


def add(path: Path, data: bytes) -> None:
    """Append to a file as a logger does."""
    with open(path, "ab", buffering=0) as file:
        file.write(data)


@contextmanager
def started(*arguments: str | Path, **options: Any) -> Iterator[subprocess.Popen[bytes]]:
    """The command in a process of its own, ended at the end whatever happens."""
    environment = {**os.environ, "PYTHONUNBUFFERED": "1", **options.pop("env", {})}
    process = subprocess.Popen(
        [*COMMAND, *map(str, arguments)],
        stdin=options.pop("stdin", subprocess.DEVNULL),
        stdout=options.pop("stdout", subprocess.PIPE),
        stderr=options.pop("stderr", subprocess.PIPE),
        env=environment,
        **options,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        for pipe in (process.stdout, process.stderr, process.stdin):
            if pipe is not None:
                pipe.close()
