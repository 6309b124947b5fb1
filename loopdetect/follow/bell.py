"""What wakes the one loop: file events, the pipe's reader, signals, a reader that went away."""

from __future__ import annotations

import contextlib
import os
import select
import threading


class ReaderGone(Exception):
    """Nobody reads the output any more."""


class Bell:
    """Collects paths that something happened to; `ring` is safe in threads and signal handlers."""

    def __init__(self) -> None:
        self._read_end, self._write_end = os.pipe()
        for handle in (self._read_end, self._write_end):
            os.set_blocking(handle, False)
        self._poll = select.poll()
        self._poll.register(self._read_end, select.POLLIN)
        self._lock = threading.Lock()
        self._paths: set[str] = set()
        self._output: int | None = None

    def mind(self, output: int) -> None:
        """Raise ReaderGone from `wait` when the reader of this pipe goes away."""
        with contextlib.suppress(OSError, ValueError):
            self._poll.register(output, 0)
            self._output = output

    def ring(self, *paths: str) -> None:
        """Wake the waiter."""
        if paths:
            with self._lock:
                self._paths.update(paths)
        with contextlib.suppress(BlockingIOError, OSError):
            os.write(self._write_end, b"!")

    def wait(self, seconds: float) -> set[str]:
        """Sleep until rung, at most `seconds`; return the paths. Raises ReaderGone."""
        for handle, happened in self._poll.poll(max(0, int(seconds * 1000 + 0.999))):
            if handle == self._output and happened & (select.POLLERR | select.POLLNVAL):
                raise ReaderGone
        with contextlib.suppress(BlockingIOError, OSError):
            while len(os.read(self._read_end, 4096)) == 4096:
                pass
        with self._lock:
            paths, self._paths = self._paths, set()
        return paths

    def close(self) -> None:
        """Give the handles back."""
        for handle in (self._read_end, self._write_end):
            with contextlib.suppress(OSError):
                os.close(handle)
