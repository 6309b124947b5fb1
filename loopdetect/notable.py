"""What a log holds besides events: printed arguments, free memory, and lines like errors.

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
from functools import lru_cache
from typing import Final

from ahocorasick_rs import BytesAhoCorasick

from loopdetect.arguments import OPENERS, Brackets, Dump, starts
from loopdetect.bar_points import BarPoints
from loopdetect.core.envelope import ANSI, Enveloped, peel
from loopdetect.core.fingerprint import mask
from loopdetect.core.late import Late
from loopdetect.core.lines import CUT_MARK, MAX_SEGMENT, Cutter
from loopdetect.core.progress import BAR_LITERALS

TEXT_KEPT: Final = 600
RAW_KEPT: Final = 1200
MAX_SHAPES: Final = 4000
MAX_PLACES: Final = 500_000
FIRST_DUMPS: Final = 20
LAST_DUMPS: Final = 200
# A dump that is printed over several lines ends within these.
DUMP_LINES: Final = 400
DUMP_SIZE: Final = 128 * 1024
MAX_MEMORY: Final = 20_000

# What makes a line worth a look, in whatever case; then what does so only as it stands.
_WORDS: Final = (
    "error", "exception", "fatal", "critical", "panic", "failed", "failure", "cannot", "could not",
    "couldn't", "unable to", "out of memory", "no space left", "no such file", "not found",
    "does not exist", "denied", "refused", "reset by peer", "timed out", "abort", "segfault",
    "segmentation fault", "core dumped", "killed", "invalid", "unsupported", "not supported",
    "unrecognized", "insufficient", "too small", "too large", "exceeds", "assertion", "unreachable",
)  # fmt: skip
_KLOG: Final = (b"E0", b"E1", b"F0", b"F1")
_MEMORY_WORDS: Final = (b"avail mem=", b"Available KV cache memory: ", b"MiB free")
_ERROR: Final = Late(
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
# Free memory of an accelerator before the weights are there, or what they leave of it.
_MEMORY: Final = Late(
    r"Load weight begin\. avail mem=(?P<gib>\d+(?:\.\d+)?) GB"
    r"|Available KV cache memory: (?P<left>-?\d+(?:\.\d+)?) GiB"
    r"|(?:using device \w+ \(.*\) - |- \w+ +: .*\(\d+ MiB, )(?P<mib>\d+) MiB free"
)
# Words of errors that tell of none.
_NONE: Final = Late(
    r"(?i)\b(?:no|0|without|zero) (?:errors?|failures?)\b|\berrors?[=:] ?(?:0|none|null|false)\b"
)
# A traceback's inner lines, bare or each behind the logger's prefix.
_FRAME: Final = Late(
    r'\s*(?:File "|\^+\s*$|raise |return |except |assert |at [\w.]+\()'
    r"|The above exception was|During handling of the above"
    r"|.{0,120}?\](?:\s{3,}\S|\s*Traceback \(most recent|\s*$)"
)
_DIGITS: Final = b"0123456789"
_PARTIAL: Final = Late(r"\S+ std(?:out|err) P ")


@dataclass(frozen=True, slots=True)
class ErrorLine:
    """A line like an error: where it first stood in a run, and how often its shape came there."""

    line: int
    text: str
    count: int
    shape: str


@dataclass(slots=True)
class _Shape:
    """Lines that differ in numbers only: where the first and the latest stood, and their bytes."""

    first: tuple[int, bytes]
    latest: tuple[int, bytes] = (0, b"")
    streams: set[str | None] = field(default_factory=set)
    places: array[int] = field(default_factory=lambda: array("Q"))

    def within(self, first: int, last: int, name: str) -> ErrorLine | None:
        """Return the shape's share of some lines, with its own words where they were kept."""
        begin = bisect_left(self.places, first)
        count = bisect_right(self.places, last) - begin
        if not count:
            return None
        for line, raw in (self.first, self.latest):
            if first <= line <= last:
                text = _peeled(raw)[0].text[:TEXT_KEPT].strip()
                return ErrorLine(line, text, count, name)
        return ErrorLine(self.places[begin], name, count, name)


@lru_cache(maxsize=2)
def _finder(bars: bool) -> BytesAhoCorasick:
    cases = {form.encode() for word in _WORDS for form in (word, word.capitalize(), word.upper())}
    words = {b"Error", b"Exception"} | cases | {b"\n" + start for start in _KLOG}
    states = [literal.encode() for literal in BAR_LITERALS] if bars else []
    return BytesAhoCorasick([*words, *OPENERS, *_MEMORY_WORDS, *states])


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
    """Reads one source, however its bytes are chunked, beside the detector.

    `bars` asks for the points of the progress bars, too.
    """

    def __init__(self, *, bars: bool = False) -> None:
        self.bars = BarPoints() if bars else None
        self._finder = _finder(bars)
        self._cutter = Cutter()
        self._line = 1
        self._shapes: dict[str, _Shape] = {}
        self._places = 0
        self._ends_open = False
        self.overflowed = False
        self._first: list[Dump] = []
        self._last: deque[Dump] = deque(maxlen=LAST_DUMPS)
        self._growing: dict[str | None, _Growing] = {}
        self._memory: list[tuple[int, str | None, float]] = []
        # Line without digits -> its shape, None for a line that is no error.
        self._alike: dict[bytes, _Shape | None] = {}

    def feed(self, data: bytes) -> None:
        """Add bytes."""
        if data:
            self._ends_open = not data.endswith(b"\n")
        self._region(self._cutter.feed(data))

    def next_file(self) -> None:
        """Go on with the next file of the same history; lines are counted on."""
        if self._ends_open:
            self.feed(b"\n")

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

    def free_memory(self, first: int, last: int, stream: str | None = None) -> float | None:
        """Return the least free memory that a device had at a start between two lines, in GiB."""
        found = [item for item in self._memory if first <= item[0] <= last]
        own = [item for item in found if item[1] == stream] or found
        return min((value for _, _, value in own), default=None)

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
        if not region:
            return
        found = [end - 1 for _, _, end in self._finder.find_matches_as_indexes(region)]
        if region.startswith(_KLOG):
            found.insert(0, 0)
        pos = counted = place = 0
        length = len(region)
        while pos < length:
            while place < len(found) and found[place] < pos:
                place += 1
            if self._growing:
                at = pos
            elif place < len(found):
                at = found[place]
            else:
                break
            start = max(region.rfind(b"\n", pos, at), region.rfind(b"\r", pos, at), pos - 1) + 1
            end = _end(region, at)
            self._line += region.count(b"\n", counted, start)
            counted = start
            self._take(region[start:end])
            pos = end + 1
        self._line += region.count(b"\n", counted)

    def _take(self, raw: bytes) -> None:
        """Look at one line; one that differs from an earlier one by its digits only is counted."""
        key = raw.translate(None, _DIGITS)
        if not self._growing and key in self._alike:
            known = self._alike[key]
            if known is not None:
                self._add(known, raw)
            return
        shape, plain = self._look(raw)
        if plain and len(key) <= TEXT_KEPT and len(self._alike) < MAX_SHAPES:
            self._alike[key] = shape

    def _look(self, raw: bytes) -> tuple[_Shape | None, bool]:
        """Return the shape that a line was counted for, and whether its like can be, too."""
        line, whole = _peeled(raw)
        if self.bars is not None and any(literal in whole for literal in BAR_LITERALS):
            self.bars.take(self._line, line.text)
            if not is_error_like(line.text):
                return None, False
        if self._grows(line, whole):
            return None, False
        memory = _MEMORY.search(line.text)
        if memory is not None:
            self._remember_memory(memory, line.stream)
            return None, False
        opened = starts(line.text)
        if opened is not None:
            self._open(line, whole, *opened)
            return None, False
        plain = line.stream is None
        if not is_error_like(line.text):
            return None, plain
        name = mask(line.text[:TEXT_KEPT])
        shape = self._shapes.get(name)
        if shape is None and len(self._shapes) < MAX_SHAPES:
            shape = self._shapes[name] = _Shape((self._line, raw[:RAW_KEPT]))
        if shape is None:
            self.overflowed = True
            return None, False
        shape.streams.add(line.stream)
        self._add(shape, raw)
        return shape, plain

    def _add(self, shape: _Shape, raw: bytes) -> None:
        if self._places >= MAX_PLACES:
            self.overflowed = True
            return
        shape.latest = (self._line, raw[:RAW_KEPT])
        shape.places.append(self._line)
        self._places += 1

    def _remember_memory(self, match: re.Match[str], stream: str | None) -> None:
        if len(self._memory) < MAX_MEMORY:
            value = match["gib"] or match["left"]
            gib = float(value) if value else float(match["mib"]) / 1024
            self._memory.append((self._line, stream, gib))

    def _open(self, line: Enveloped, whole: str, origin: str, body: str) -> None:
        partial = _PARTIAL.match(whole) is not None
        growing = _Growing(self._line, origin, [body], Brackets(), len(body), partial)
        self._growing[line.stream] = growing
        if not growing.brackets.feed(body) and not partial:
            self._close(line.stream)

    def _grows(self, line: Enveloped, whole: str) -> bool:
        """Add the line to the open dump of its stream; False where there is none."""
        growing = self._growing.get(line.stream)
        if growing is None:
            return False
        growing.parts.append(line.text if growing.partial else f"\n{line.text}")
        growing.partial = _PARTIAL.match(whole) is not None
        growing.size += len(line.text)
        full = len(growing.parts) > DUMP_LINES or growing.size > DUMP_SIZE
        if not growing.brackets.feed(line.text) or full:
            self._close(line.stream)
        return True

    def _close(self, stream: str | None) -> None:
        growing = self._growing.pop(stream)
        dump = Dump(growing.line, stream, growing.origin, "".join(growing.parts))
        if len(self._first) < FIRST_DUMPS:
            self._first.append(dump)
        else:
            self._last.append(dump)


def is_error_like(text: str) -> bool:
    """True when a line, free from its envelopes, looks like an error."""
    return bool(_ERROR.search(text)) and not _NONE.search(text) and not _FRAME.match(text)


def _peeled(raw: bytes) -> tuple[Enveloped, str]:
    """Return a line without its envelopes, and with them."""
    if len(raw) > MAX_SEGMENT:
        raw = raw[:MAX_SEGMENT] + CUT_MARK
    whole = ANSI.sub("", raw.decode("utf-8", "replace"))
    return peel(whole), whole


def _end(region: bytes, at: int) -> int:
    newline = region.find(b"\n", at)
    if newline < 0:
        newline = len(region)
    back = region.find(b"\r", at, newline)
    return back if back >= 0 else newline
