"""Standard input as a source that is followed: a thread reads, the watching never waits for it."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable
from typing import Final

CHUNK: Final = 1 << 16
# A writer that is faster than the reading of its lines is made to wait, as in any pipe.
HELD_AT_MOST: Final = 1 << 22


class Pipe:
    """Reads a handle in the background; `take` gives what came since the last call."""

    def __init__(self, wake: Callable[[], None], handle: int = 0) -> None:
        self._wake = wake
        self._handle = handle
        self._room = threading.Condition()
        self._held = bytearray()
        self._line = b""
        self._grown_at = 0.0
        self._ended = False
        self.problem: str | None = None

    def start(self) -> None:
        """Begin to read."""
        threading.Thread(target=self._read, name="loopdetect-stdin", daemon=True).start()

    def take(self, now: float, quiet: float = 0.5) -> tuple[bytes, bool]:
        """Return new whole lines, and whether the pipe has ended.

        An unfinished line is given once nobody has added to it for `quiet` seconds; `now` is any
        clock that only goes on.
        """
        with self._room:
            data = bytes(self._held)
            self._held.clear()
            self._room.notify()
            ended = self._ended
        if data:
            self._grown_at = now
        data = self._line + data
        cut = max(data.rfind(b"\n"), data.rfind(b"\r", 0, len(data) - 1)) + 1
        if ended or now - self._grown_at >= quiet or len(data) - cut >= CHUNK:
            cut = len(data)
        self._line = data[cut:]
        return data[:cut], ended

    @property
    def waiting(self) -> bool:
        """True while there is an unfinished line."""
        return bool(self._line)

    def _read(self) -> None:
        while True:
            try:
                data = os.read(self._handle, CHUNK)
            except OSError as problem:
                closed = problem.errno == errno.EBADF
                self.problem = "there is no standard input" if closed else str(problem.strerror)
                data = b""
            with self._room:
                self._held += data
                self._ended = not data
            self._wake()
            if not data:
                return
            with self._room:
                self._room.wait_for(lambda: len(self._held) < HELD_AT_MOST)
