"""Where in the source a region's reader is: line number, line start, what stood before."""

from __future__ import annotations

from typing import Final

from loopdetect.core.lines import count_line_feeds

LOOKBACK: Final = 4096
TAIL: Final = 64 * 1024
LINE_HEAD: Final = 512
# A buffer up to this size is kept as it is, instead of a copy of its end.
HOLDABLE: Final = 1 << 20


class Place:
    """Keeps count while a region is read, and the little of it that later regions look back on."""

    __slots__ = (
        "_buffer",
        "_counted",
        "_head",
        "_kept",
        "_line_start",
        "_past",
        "_start",
        "_stop",
        "done",
        "line",
    )

    def __init__(self) -> None:
        self.line = 1
        self.done = 0
        self._past: list[tuple[bytes, int, int]] = []
        self._kept = 0
        self._head = b""
        self._buffer = b""
        self._start = self._stop = self._counted = 0
        self._line_start = -1

    @property
    def first(self) -> int:
        """Where the region begins in its buffer."""
        return self._start

    @property
    def read(self) -> int:
        """How many bytes of the source were gone through."""
        return self.done + self._counted - self._start

    def enter(self, buffer: bytes, start: int, stop: int) -> None:
        """Begin a region, the part of a buffer from `start` to `stop`."""
        self._buffer, self._start, self._stop, self._counted = buffer, start, stop, start
        self._line_start = start if self._ended() else -1

    def move(self, at: int) -> None:
        """Go on to an offset of the region."""
        newlines = count_line_feeds(self._buffer, self._counted, at)
        if newlines:
            self.line += newlines
            self._line_start = self._buffer.rfind(b"\n", self._counted, at) + 1
        self._counted = at

    def leave(self) -> None:
        """End the region: go to its end and let go of its buffer."""
        self.move(self._stop)
        rest = self._buffer[max(self._line_start, self._start) : self._stop][:LINE_HEAD]
        if self._line_start >= 0:
            self._head = rest
        elif len(self._head) < LINE_HEAD:
            self._head = (self._head + rest)[:LINE_HEAD]
        self._past.append(self._slim())
        self._kept += self._past[-1][2] - self._past[-1][1]
        while self._kept - (self._past[0][2] - self._past[0][1]) >= TAIL:
            _, first, last = self._past.pop(0)
            self._kept -= last - first
        self.done += self._stop - self._start
        self._buffer = b""
        self._counted = self._start

    def _slim(self) -> tuple[bytes, int, int]:
        if len(self._buffer) <= HOLDABLE:
            return self._buffer, self._start, self._stop
        part = self._buffer[max(self._start, self._stop - TAIL) : self._stop]
        return part, 0, len(part)

    def tail(self, size: int = TAIL) -> bytes:
        """Return the last bytes of the regions that were left."""
        parts: list[bytes] = []
        for buffer, first, last in reversed(self._past):
            if size <= 0:
                break
            parts.append(buffer[max(first, last - size) : last])
            size -= last - first
        return b"".join(reversed(parts))

    def offset(self, at: int) -> int:
        """Return how many bytes of the source stand before an offset of the region."""
        return self.done + at - self._start

    def before(self, at: int) -> bytes:
        """Return the last few thousand bytes before an offset of the region."""
        if at - self._start >= LOOKBACK:
            return self._buffer[at - LOOKBACK : at]
        return (self.tail(LOOKBACK) + self._buffer[self._start : at])[-LOOKBACK:]

    def begins_line(self, at: int) -> bool:
        """True when a line feed stands before an offset of the region."""
        before = self._buffer[at - 1 : at] if at > self._start else self.tail(1)
        return before == b"\n"

    def head_of(self, at: int) -> bytes | None:
        """Return the start of the physical line if the segment at `at` does not begin it."""
        if self._line_start >= 0:
            head = self._buffer[self._line_start : min(at, self._line_start + LINE_HEAD)]
        else:
            head = (self._head + self._buffer[self._start : min(at, self._start + LINE_HEAD)])[
                :LINE_HEAD
            ]
        return head or None

    def _ended(self) -> bool:
        return not self._past or self.tail(1) == b"\n"
