"""What a log holds besides events: the arguments that a server printed, and lines like errors.

How this works: one search over the bytes finds the few lines worth a look; only those are decoded,
freed from their envelopes and kept. Dumps of arguments are kept as text, the first and the last
ones; error-like lines are counted by shape, with the numbers of the lines where they stood, so that
afterwards any run's share can be told.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left, bisect_right
from collections import deque
from dataclasses import dataclass, field
from typing import Final

from loopdetect.arguments import OPENERS, Brackets, Dump, starts
from loopdetect.core.envelope import ANSI, peel
from loopdetect.core.fingerprint import mask
from loopdetect.core.lines import CUT_MARK, MAX_SEGMENT, Cutter

TEXT_KEPT: Final = 600
MAX_SHAPES: Final = 4000
MAX_PLACES: Final = 500_000
FIRST_DUMPS: Final = 20
LAST_DUMPS: Final = 200
# A dump that is printed over several lines ends within these.
DUMP_LINES: Final = 400
DUMP_SIZE: Final = 128 * 1024

_WORDS: Final = (
    "error|exception|fatal|critical|panic|failed|failure|cannot|could not|couldn't|unable to|"
    "out of memory|no space left|no such file|not found|does not exist|denied|refused|"
    "reset by peer|timed out|abort|segfault|segmentation fault|core dumped|killed|invalid|"
    "unsupported|not supported|unrecognized|insufficient|too small|too large|exceeds|"
    "assertion|unreachable"
)
_LOOK: Final = re.compile(
    rb"(?i:" + _WORDS.encode() + rb")|(?m:^[EF][01]\d{3} )|" + b"|".join(map(re.escape, OPENERS))
)
_ERROR: Final = re.compile(
    r"\b(?:ERROR|ERRO|FATAL|CRITICAL|CRIT|PANIC|SEVERE|EMERG)\b"
    r"|(?<![\w.])[\w.]*[A-Z]\w*(?:Error|Exception)(?::|$)"
    r"|^[EF][01]\d{3} "
    r"|\b(?i:error|fatal|panic|exception):"
    r"|\b(?i:failed|failure|cannot|could not|couldn't|unable to|out of memory|no space left|"
    r"no such file|not found|does not exist|(?:permission|access) denied|refused|reset by peer|"
    r"timed out|abort(?:ed|ing)?|segfault|segmentation fault|core dumped|killed|invalid|"
    r"(?:not )?(?:un)?supported|unrecognized|insufficient|too (?:small|large)|exceeds|"
    r"assertion|unreachable)\b"
)
# Words of errors that tell of none.
_NONE: Final = re.compile(
    r"(?i)\b(?:no|0|without|zero) (?:errors?|failures?)\b|\berrors?[=:] ?(?:0|none|null|false)\b"
)
# A traceback's inner lines, bare or each behind the logger's prefix.
_FRAME: Final = re.compile(
    r'\s*(?:File "|\^+\s*$|raise |return |except |assert |at [\w.]+\()'
    r"|The above exception was|During handling of the above"
    r"|.{0,120}?\](?:\s{3,}\S|\s*Traceback \(most recent|\s*$)"
)
_PARTIAL: Final = re.compile(r"\S+ std(?:out|err) P ")


@dataclass(frozen=True, slots=True)
class ErrorLine:
    """A line like an error: where it first stood in a run, and how often its shape came there."""

    line: int
    text: str
    count: int
    shape: str


@dataclass(slots=True)
class _Shape:
    first: tuple[int, str]
    latest: tuple[int, str]
    streams: set[str | None] = field(default_factory=set)
    places: array[int] = field(default_factory=lambda: array("Q"))

    def within(self, first: int, last: int, name: str) -> ErrorLine | None:
        """Return the shape's share of some lines, with its own words where they were kept."""
        begin = bisect_left(self.places, first)
        count = bisect_right(self.places, last) - begin
        if not count:
            return None
        for line, text in (self.first, self.latest):
            if first <= line <= last:
                return ErrorLine(line, text, count, name)
        return ErrorLine(self.places[begin], name, count, name)


@dataclass(slots=True)
class _Growing:
    """A dump whose bracket is still open."""

    line: int
    origin: str
    parts: list[str]
    brackets: Brackets
    size: int
    partial: bool


class Notable:
    """Reads one source, however its bytes are chunked, beside the detector."""

    def __init__(self) -> None:
        self._cutter = Cutter()
        self._line = 1
        self._shapes: dict[str, _Shape] = {}
        self._places = 0
        self.overflowed = False
        self._first: list[Dump] = []
        self._last: deque[Dump] = deque(maxlen=LAST_DUMPS)
        self._growing: dict[str | None, _Growing] = {}

    def feed(self, data: bytes) -> None:
        """Add bytes."""
        self._region(self._cutter.feed(data))

    def finish(self) -> None:
        """End the log."""
        self._region(self._cutter.finish())
        for stream in list(self._growing):
            self._close(stream)

    def dumps(self, first: int, last: int, stream: str | None) -> list[Dump]:
        """Return the argument dumps between two lines."""
        found = [d for d in (*self._first, *self._last) if first <= d.line <= last]
        own = [dump for dump in found if dump.stream == stream]
        return own or found

    def errors(self, first: int, last: int, stream: str | None = None) -> list[ErrorLine]:
        """Return the error-like lines between two lines, one for each shape, in their order."""
        known = {name for shape in self._shapes.values() for name in shape.streams}
        found = []
        for name, shape in self._shapes.items():
            if stream in known and stream not in shape.streams:
                continue
            item = shape.within(first, last, name)
            if item is not None:
                found.append(item)
        return sorted(found, key=lambda item: item.line)

    def _region(self, region: bytes) -> None:
        pos = counted = 0
        length = len(region)
        while pos < length:
            if self._growing:
                at = pos
            else:
                match = _LOOK.search(region, pos)
                if match is None:
                    break
                at = match.start()
            start = max(region.rfind(b"\n", pos, at), region.rfind(b"\r", pos, at), pos - 1) + 1
            end = _end(region, at)
            self._line += region.count(b"\n", counted, start)
            counted = start
            self._take(region[start:end])
            pos = end + 1
        self._line += region.count(b"\n", counted)

    def _take(self, raw: bytes) -> None:
        if len(raw) > MAX_SEGMENT:
            raw = raw[:MAX_SEGMENT] + CUT_MARK
        whole = ANSI.sub("", raw.decode("utf-8", "replace"))
        line = peel(whole)
        text = line.text
        growing = self._growing.get(line.stream)
        if growing is not None:
            growing.parts.append(text if growing.partial else f"\n{text}")
            growing.partial = _PARTIAL.match(whole) is not None
            growing.size += len(text)
            full = len(growing.parts) > DUMP_LINES or growing.size > DUMP_SIZE
            if not growing.brackets.feed(text) or full:
                self._close(line.stream)
            return
        opened = starts(text)
        if opened is not None:
            origin, body = opened
            partial = _PARTIAL.match(whole) is not None
            growing = _Growing(self._line, origin, [body], Brackets(), len(body), partial)
            self._growing[line.stream] = growing
            if not growing.brackets.feed(body) and not partial:
                self._close(line.stream)
            return
        if _ERROR.search(text) and not _NONE.search(text) and not _FRAME.match(text):
            self._count(text, line.stream)

    def _count(self, text: str, stream: str | None) -> None:
        shape = mask(text[:TEXT_KEPT])
        here = (self._line, text[:TEXT_KEPT].strip())
        known = self._shapes.get(shape)
        if known is None and len(self._shapes) < MAX_SHAPES:
            known = self._shapes[shape] = _Shape(here, here)
        if known is None or self._places >= MAX_PLACES:
            self.overflowed = True
            return
        known.latest = here
        known.streams.add(stream)
        known.places.append(self._line)
        self._places += 1

    def _close(self, stream: str | None) -> None:
        growing = self._growing.pop(stream)
        dump = Dump(growing.line, stream, growing.origin, "".join(growing.parts))
        if len(self._first) < FIRST_DUMPS:
            self._first.append(dump)
        else:
            self._last.append(dump)


def _end(region: bytes, at: int) -> int:
    newline, back = region.find(b"\n", at), region.find(b"\r", at)
    ends = [end for end in (newline, back) if end >= 0]
    return min(ends, default=len(region))
