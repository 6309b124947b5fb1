"""Bytes in any chunking, cut into segments.

A segment ends at a line feed, at a carriage return (a bar's refresh), or at both. Only regions of
whole segments leave this module, so what follows sees the same segments however the bytes came.
Physical lines are counted by line feeds. A segment too long to hold is cut and marked.
"""

from __future__ import annotations

from typing import Final

MAX_SEGMENT: Final = 64 * 1024
MAX_PENDING: Final = 1024 * 1024
CUT_MARK: Final = " … [cut: the line goes on]".encode()


class Cutter:
    """Holds the unfinished segment at the end of what was fed."""

    __slots__ = ("_dropping", "_pending", "only_newlines", "total")

    def __init__(self) -> None:
        self._pending = b""
        self._dropping = False
        self.only_newlines = False
        self.total = 0

    @property
    def pending(self) -> bytes:
        """The unfinished segment."""
        return self._pending

    def feed(self, data: bytes) -> bytes:
        """Add bytes; return the region of whole segments that they complete (may be empty)."""
        self.total += len(data)
        if self._dropping:
            data = self._after_dropped(data)
            if not data:
                return b""
        cut = self._last_end(data)
        if cut == 0:
            self._pending += data
            if len(self._pending) > MAX_PENDING:
                self._pending = self._pending[:MAX_SEGMENT] + CUT_MARK
                self._dropping = True
            return b""
        region = self._pending + data[:cut] if self._pending else data[:cut]
        self._pending = data[cut:]
        if len(self._pending) > MAX_PENDING:
            self._pending = self._pending[:MAX_SEGMENT] + CUT_MARK
            self._dropping = True
        return region

    def finish(self) -> bytes:
        """Return what is left at the end of the log."""
        rest, self._pending, self._dropping = self._pending, b"", False
        return rest

    def _last_end(self, data: bytes) -> int:
        """Return the offset behind the last sure end of a segment in `data`.

        A carriage return that is the last byte may be half of a CRLF: it waits.
        """
        newline = data.rfind(b"\n") + 1
        if self.only_newlines:
            return newline
        end = len(data) - 1 if data.endswith(b"\r") else len(data)
        return max(newline, data.rfind(b"\r", 0, end) + 1)

    def _after_dropped(self, data: bytes) -> bytes:
        ends = [
            at
            for at in (data.find(b"\n"), data.find(b"\r") if not self.only_newlines else -1)
            if at >= 0
        ]
        if not ends:
            return b""
        self._dropping = False
        return data[min(ends) :]
