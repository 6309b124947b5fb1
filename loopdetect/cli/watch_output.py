"""Where a watch writes its lines: standard output, or a file that is added to."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable, Iterable
from typing import Final

from loopdetect.errors import LoopdetectError
from loopdetect.follow.happened import Happened, What

LOOK_BACK: Final = 1 << 18
# What a quiet watch leaves out.
DETAIL: Final = frozenset({What.PHASE, What.PROGRESS})


class LineOutput:
    """Writes each event as one line, at once. Raises BrokenPipeError, LoopdetectError."""

    def __init__(
        self, line: Callable[[Happened], str], path: str | None = None, *, quiet: bool = False
    ) -> None:
        self._line = line
        self._path = path
        self._quiet = quiet
        self._handle = sys.stdout.fileno() if path is None else _opened(path)

    def write(self, events: Iterable[Happened]) -> None:
        """Write the events; alarms are no lines of their own, their reminders are."""
        lines = [self._line(event) for event in events if self._shown(event)]
        if not lines:
            return
        data = "".join(line + "\n" for line in lines).encode("utf-8", "backslashreplace")
        try:
            while data:
                data = data[os.write(self._handle, data) :]
        except BrokenPipeError:
            raise
        except OSError as problem:
            name = self._path or "standard output"
            raise LoopdetectError(
                f"{name}: cannot write it: {problem.strerror}", "make room, or give another -o"
            ) from problem

    def written(self, event: Happened) -> bool:
        """True when the event's line stands at the end of the file that is written to."""
        try:
            if not stat.S_ISREG(os.fstat(self._handle).st_mode):
                return False
            with open(self._path or f"/proc/self/fd/{self._handle}", "rb") as file:
                file.seek(max(0, file.seek(0, os.SEEK_END) - LOOK_BACK))
                return self._line(event).encode("utf-8", "backslashreplace") in file.read()
        except OSError:
            return False

    def close(self) -> None:
        """Close the file."""
        if self._path is not None:
            os.close(self._handle)

    def _shown(self, event: Happened) -> bool:
        if event.alarm:
            return event.what is What.REMINDER
        return not (self._quiet and event.what in DETAIL)


def _opened(path: str) -> int:
    try:
        return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError as problem:
        raise LoopdetectError(
            f"{path}: cannot write it: {problem.strerror}",
            "give -o a file in a folder you can write to",
        ) from problem
