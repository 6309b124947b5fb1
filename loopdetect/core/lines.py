"""Bytes in any chunking, cut into segments.

A segment ends at a line feed, at a carriage return (a bar's refresh), or at both. Only regions of
whole segments leave this module, so what follows sees the same segments however the bytes came.
Physical lines are counted by line feeds. A segment too long to hold is cut and marked.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from typing import Final, cast

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
        return b"".join(buffer[start:stop] for buffer, start, stop in self.regions(data))

    def regions(self, data: bytes) -> Iterator[tuple[bytes, int, int]]:
        """Add bytes; yield the whole segments that they complete as parts of buffers, uncopied.

        Only the segment that was unfinished is joined with its end; the rest stays where it is.
        """
        self.total += len(data)
        first = 0
        if self._dropping:
            first = self._first_end(data)
            if first < 0:
                return
            self._dropping = False
        last = self._last_end(data, first)
        if last == first:
            self._keep(self._pending + data[first:])
            return
        start = first
        if self._pending:
            start = min(last, self._behind(data, self._first_end(data, first)))
            joined = self._pending + data[first:start]
            self._pending = b""
            yield joined, 0, len(joined)
        self._keep(data[last:])
        if start < last:
            yield data, start, last

    def finish(self) -> bytes:
        """Return what is left at the end of the log."""
        rest, self._pending, self._dropping = self._pending, b"", False
        return rest

    def _keep(self, rest: bytes) -> None:
        if len(rest) > MAX_PENDING:
            rest, self._dropping = rest[:MAX_SEGMENT] + CUT_MARK, True
        self._pending = rest

    def _last_end(self, data: bytes, first: int) -> int:
        """Return the offset behind the last sure end of a segment in `data`, or `first`.

        A carriage return that is the last byte may be half of a CRLF: it waits.
        """
        last = data.rfind(b"\n", first) + 1
        if not self.only_newlines:
            end = len(data) - 1 if data.endswith(b"\r") else len(data)
            last = max(last, data.rfind(b"\r", max(first, last), end) + 1)
        return max(last, first)

    def _first_end(self, data: bytes, first: int = 0) -> int:
        """Return the offset of the first end of a segment, or -1."""
        newline = data.find(b"\n", first)
        if self.only_newlines:
            return newline
        back = data.find(b"\r", first, newline if newline >= 0 else len(data))
        return back if back >= 0 else newline

    def _behind(self, data: bytes, end: int) -> int:
        """Return the offset behind a segment's end; a CRLF is one."""
        return end + (2 if data[end : end + 2] == b"\r\n" else 1)


_Counter = Callable[[bytes, bytes, int, int], int]
# From this size on the vectorised way below is worth its two calls.
_WIDE: Final = 2000


def _counter() -> _Counter:
    try:
        return cast(_Counter, importlib.import_module("stringzilla").count)
    except (ImportError, AttributeError):
        return bytes.count


def _line_feeds() -> Callable[[bytes, int, int], int]:
    """Return the fastest way to count line feeds that this machine has.

    Where a table of 256 bytes fits the processor's registers (AVX-512 VBMI), mapping all bytes to
    0 or 1 and summing them up takes a quarter of the time of looking for each line feed.
    """
    try:
        library = importlib.import_module("stringzilla")
        translate, total, known = library.translate, library.bytesum, library.__capabilities__
    except (ImportError, AttributeError):
        known = ()
    if "icelake" not in known:
        return lambda buffer, start, stop: count(buffer, b"\n", start, stop)
    table = bytes(byte == 10 for byte in range(256))

    def feeds(buffer: bytes, start: int, stop: int) -> int:
        if stop - start < _WIDE:
            return count(buffer, b"\n", start, stop)
        return cast(int, total(translate(buffer, table, False, start, stop)))

    return feeds


# How often bytes come in a part of a buffer; a library does it several times as fast as Python.
count: Final[_Counter] = _counter()
count_line_feeds: Final = _line_feeds()


def segment_start(buffer: bytes, low: int, at: int, returns: bool) -> int:
    """Return where the segment that holds offset `at` begins, not before `low`."""
    start = buffer.rfind(b"\n", low, at) + 1
    if returns:
        start = max(start, buffer.rfind(b"\r", max(low, start), at) + 1)
    return max(start, low)


def segment_end(buffer: bytes, start: int, stop: int, returns: bool) -> int:
    """Return where the segment at `start` ends: the offset of its line end, or `stop`."""
    end = buffer.find(b"\n", start, stop)
    end = stop if end < 0 else end
    if returns:
        back = buffer.find(b"\r", start, end)
        end = back if back >= 0 else end
    return end
