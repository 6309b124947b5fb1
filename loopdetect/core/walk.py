"""Going through a region from one interesting segment to the next.

How this works: the region is searched at once for everything that the aim asks for, and the walk
jumps from hit to hit. While the taker needs every line, segments are taken one after the other.
Bars have a search of their own that looks ahead only a little, because where they come they come
in thousands: of a run of segments that begin with the same label only those are taken that can
leave a trace (the first, each that starts at nothing or is complete, and the last).

What is taken may depend on how the bytes were chunked only where it makes no difference: more
states of a bar than needed, or a line before a traceback.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from typing import Final, Protocol

from loopdetect.core.block import HEADER
from loopdetect.core.lines import MAX_SEGMENT, count, count_line_feeds, segment_end, segment_start
from loopdetect.core.place import Place
from loopdetect.core.prefilter import Prefilter, searcher
from loopdetect.core.recognise import Unknown
from loopdetect.core.search import Aim, Search

QUOTE_WITHIN: Final = 256
FIRST_LOOK: Final = 4096
BAR_LOOK: Final = 512
QUOTED_LOOK: Final = 1 << 16
OVERLAP: Final = 64
WIDEST_LOOK: Final = 1 << 18
# A piece with a find for so many bytes is crowded.
DENSE: Final = 512
_HEADER: Final = HEADER.encode()
# The label of a bar up to its percentage, which has a fixed width.
_LABEL: Final = re.compile(rb"([^\r\n%|]{0,200}?: )(?:  \d| \d\d|100)%[^\r\n]*? (\d+/\d+ \[)")
# Nothing done, or all of it.
_TRACE: Final = re.compile(rb"[^\r\n]*? (?:0/\d+ \[|(\d+)/\1 \[)")
# With texts that no log holds beside them: for so few the engine would look for single bytes, and
# stop at each line.
_ENDS: Final = searcher([[b"  0%", b"100%", *(bytes([n] * 4) for n in range(4))]])


class Taker(Protocol):
    """Who takes the segments, and says what to look for next."""

    def sequential(self) -> bool:
        """True while every segment is wanted."""

    def aim(self, offset: int) -> Aim:
        """Return what to search for from an offset of the source on."""

    def take(self, raw: bytes, at: int, hit: bool) -> None:
        """Take the segment at an offset of the region; `hit` if it holds what was searched for."""

    def take_earlier(self, raw: bytes, line: int) -> None:
        """Take a segment that ended right before the region and was passed over."""


class Walk:
    """Goes through regions; what it carries from one to the next is the end of the last one."""

    def __init__(self, search: Search) -> None:
        self.place = Place()
        self.taken = 0
        self.aim: Aim | None = None
        self.width = FIRST_LOOK
        self._search = search
        self._passed: bytes | None = None

    def region(self, buffer: bytes, start: int, stop: int, taker: Taker) -> None:
        """Give the taker what it needs of a region of whole segments."""
        self.place.enter(buffer, start, stop)
        region = _Region(self, self._search, buffer, start, stop, taker)
        region.read(self._passed)
        self.width = max(region.hits.width, FIRST_LOOK)
        self._passed = self._last(buffer, start, stop, region.behind)
        self.place.leave()

    def passes(self, buffer: bytes, start: int, stop: int, taker: Taker) -> bool:
        """Pass over whole segments in which nothing is found; False if they are to be read."""
        self.place.enter(buffer, start, stop)
        if taker.sequential() or taker.aim(self.place.offset(start)) is not self.aim:
            return False
        lines, bars, _ = self._search.filters(self.aim)
        if lines.offsets(buffer, start, stop) or (
            not self.aim.serving and bars.offsets(buffer, start, stop)
        ):
            return False
        self._passed = self._last(buffer, start, stop, start)
        self.place.leave()
        return True

    def _last(self, buffer: bytes, start: int, stop: int, behind: int) -> bytes | None:
        """Return the last segment of a region if it was passed over."""
        at = max(start, buffer.rfind(b"\n", start, stop - 1) + 1)
        if behind > at:
            return None
        return buffer[at : min(stop, at + MAX_SEGMENT)].rstrip(b"\r\n")


def quote_in(buffer: bytes, start: int, end: int, quotes: tuple[bytes, ...]) -> bytes:
    """Return what at the head of a segment says that it holds the words of users, or nothing."""
    last = min(end, start + QUOTE_WITHIN)
    for quote in quotes:
        if buffer.find(quote, start, last) >= 0:
            return quote
    return b""


class _Ahead:
    """Searches a region a piece at a time; the pieces grow while there is little to find."""

    __slots__ = (
        "_buffer",
        "_crowded",
        "_filter",
        "_first",
        "_found",
        "_index",
        "_looked",
        "_stop",
        "width",
    )

    def __init__(
        self,
        search: Prefilter,
        buffer: bytes,
        start: int,
        stop: int,
        width: int,
        crowded: int = FIRST_LOOK,
    ) -> None:
        self._filter = search
        self._buffer = buffer
        self._first = self._looked = start
        self._stop = stop
        self._found: list[int] = []
        self._index = 0
        self._crowded = crowded
        self.width = width

    @property
    def idle(self) -> bool:
        """True when there is nothing to find any more."""
        return self._looked >= self._stop and not self._found

    def back(self, pos: int) -> bool:
        """Go back to an offset; False if what was found there was let go of."""
        if pos < self._first:
            return False
        self._index = 0
        return True

    def next(self, pos: int) -> int:
        """Return the next offset from `pos` on at which something was found, or the end."""
        while True:
            found = self._found
            index = bisect_left(found, pos, self._index)
            self._index = index
            if index < len(found):
                return found[index]
            if self._looked >= self._stop:
                return self._stop
            self._first = first = max(pos, self._looked)
            self._looked = min(self._stop, first + self.width)
            last = min(self._stop, self._looked + OVERLAP)
            self._found, self._index = self._filter.offsets(self._buffer, first, last), 0
            many = len(self._found) * DENSE > self.width
            self.width = self._crowded if many else min(self.width * 4, WIDEST_LOOK)


class _Region:
    aim: Aim
    filter: Prefilter
    bar_filter: Prefilter
    quotes: tuple[bytes, ...]
    hits: _Ahead
    bars: _Ahead

    def __init__(
        self, walk: Walk, search: Search, buffer: bytes, start: int, stop: int, taker: Taker
    ) -> None:
        self.walk, self.search, self.taker = walk, search, taker
        self.place = walk.place
        self.buffer, self.start, self.stop = buffer, start, stop
        self.returns = buffer.find(b"\r", start, stop) >= 0
        self.behind = start  # where the last segment that was taken ended, and one more

    def read(self, passed: bytes | None) -> None:
        self.passed = passed
        pos = self.start
        self.look(pos)
        while pos < self.stop:
            if self.taker.sequential():
                end = self.end_of(pos)
                self.take(pos, end, self.is_hit(pos, end))
                pos = end + 1
            else:
                pos, end = self.next_segment(pos)
                if pos >= self.stop:
                    break
                self.look_back(pos, end)
                self.take(pos, end, True)
                pos = end + 1
                if not self.aimed_anew(pos) and not self.taker.sequential():
                    pos = self.behind_bars(pos)
                continue
            self.aimed_anew(pos)

    def next_segment(self, pos: int) -> tuple[int, int]:
        """Return where the next segment that holds what is searched for begins and ends."""
        buffer, stop, returns = self.buffer, self.stop, self.returns
        hits, bars, quotes = self.hits.next, self.bars.next, self.quotes
        idle, learns = self.bars.idle, self.filter.learns
        likely = quotes[0] if quotes else b""
        while True:
            at = hits(pos) if idle else min(hits(pos), bars(pos))
            if at >= stop:
                return stop, stop
            if returns:
                pos = segment_start(buffer, pos, at, returns)
                end = segment_end(buffer, at, stop, returns)
            else:  # the same, without the calls
                pos = buffer.rfind(b"\n", pos, at) + 1 or pos
                end = buffer.find(b"\n", at, stop)
                end = stop if end < 0 else end
            quote = likely
            if likely and buffer.find(likely, pos, min(end, pos + QUOTE_WITHIN)) < 0:
                quote = quote_in(buffer, pos, end, quotes)
                if quote:
                    self.quotes = (quote, *(q for q in quotes if q is not quote))
                    likely = quote
            if quote:
                if learns:
                    self.filter.noise(buffer, pos, end)
            elif self.is_hit(pos, end):
                return pos, end
            pos = end + 1

    # -- what is searched for

    def aimed_anew(self, pos: int) -> bool:
        if self.taker.aim(self.place.offset(pos)) is self.aim:
            return False
        self.look(pos)
        return True

    def look(self, pos: int) -> None:
        self.aim = self.taker.aim(self.place.offset(pos))
        self.filter, self.bar_filter, self.quotes = self.search.filters(self.aim)
        if self.aim is not self.walk.aim:
            self.walk.aim, self.walk.width = self.aim, FIRST_LOOK
        # Bars are passed over in great strides, users' words line by line.
        crowded = QUOTED_LOOK if self.aim.serving and self.quotes else FIRST_LOOK
        self.hits = _Ahead(self.filter, self.buffer, pos, self.stop, self.walk.width, crowded)
        behind = self.stop if self.aim.serving else pos
        self.bars = _Ahead(self.bar_filter, self.buffer, behind, self.stop, BAR_LOOK, BAR_LOOK)

    def is_hit(self, pos: int, end: int) -> bool:
        if self.aim.unknown is Unknown.EVERYTHING and self.taker.sequential():
            # Any line may tell something: to prepare a search for it all takes longer than to ask.
            return not quote_in(self.buffer, pos, end, self.quotes)
        last = end if end - pos <= MAX_SEGMENT else pos + MAX_SEGMENT
        anchored = self.hits.next(pos) < last
        bar = not self.bars.idle and self.bars.next(pos) < last
        if not (anchored or bar):
            return False
        if quote_in(self.buffer, pos, end, self.quotes):
            return False
        raw = self.buffer[pos:last]
        return (bar and self.bar_filter.holds(raw)) or (anchored and self.filter.holds(raw))

    # -- segments

    def end_of(self, pos: int) -> int:
        return segment_end(self.buffer, pos, self.stop, self.returns)

    def take(self, pos: int, end: int, hit: bool) -> None:
        self.passed = None
        self.behind = end + 1
        if end > pos:
            self.walk.taken += 1
            self.place.move(pos)
            self.taker.take(self.buffer[pos:end], pos, hit)

    def look_back(self, pos: int, end: int) -> None:
        """Take the line before a traceback as well: it may say that the traceback means nothing."""
        if self.buffer.find(_HEADER, pos, end) < 0:
            return
        at = pos - 1
        while at > self.behind and self.buffer[at] in b"\r\n":
            at -= 1
        if at > self.behind or (at == self.behind and self.buffer[at] not in b"\r\n"):
            first = segment_start(self.buffer, self.behind, at, self.returns)
            self.take(first, self.end_of(first), False)
        elif self.behind == self.start and self.passed is not None and pos - self.start < 3:
            raw, self.passed = self.passed, None
            self.taker.take_earlier(raw, self.place.line - 1)

    # -- bars

    def behind_bars(self, pos: int) -> int:
        """Return where to go on behind a segment that may begin a run of bars.

        `pos` is behind that segment. The states of the run that matter are taken.
        """
        first = segment_start(self.buffer, self.start, pos - 1, self.returns)
        match = _LABEL.match(self.buffer, first, pos)
        if match is None or pos >= self.stop:
            return pos
        begin = self.buffer[pos - 1 : pos] + match[1]
        if not self.buffer.startswith(begin, pos - 1):
            return pos
        limit = self.run_limit(pos, begin)
        end = self.run_end(pos - 1, begin, limit)
        if end < limit and not self.hits.back(end + 1):
            self.hits = _Ahead(self.filter, self.buffer, max(pos, end + 1), self.stop, FIRST_LOOK)
        if end <= pos:
            return pos
        last = segment_start(self.buffer, pos, end, self.returns)
        for at in self.states(begin, pos, last):
            self.take(at, self.end_of(at), True)
        self.take(last, end, True)
        return end + 1

    def run_limit(self, pos: int, begin: bytes) -> int:
        """Return up to where nothing but that label was found."""
        label = begin[1:]
        while True:
            hit = self.hits.next(pos)
            if hit >= self.stop:
                return self.stop - 1
            start = segment_start(self.buffer, pos, hit, self.returns)
            if hit - start >= len(label) or not self.buffer.startswith(label, start):
                return start - 1
            pos = hit + 1

    def run_end(self, pos: int, begin: bytes, limit: int) -> int:
        """Return where the last of the segments ends that all begin with `begin`, from `pos` on."""
        width = FIRST_LOOK
        while True:
            end = segment_start(self.buffer, pos, min(pos + width, limit), self.returns) - 1
            if end > pos and self.alike(pos, end, begin):
                pos = end
                width = min(width * 4, WIDEST_LOOK)
            elif width <= FIRST_LOOK // 8:
                return pos
            else:
                width //= 4

    def alike(self, pos: int, end: int, begin: bytes) -> bool:
        buffer = self.buffer
        segments = count_line_feeds(buffer, pos, end)
        if self.returns:
            segments += count(buffer, b"\r", pos, end)
        return segments == count(buffer, begin, pos, end)

    def states(self, begin: bytes, pos: int, last: int) -> list[int]:
        """Return the segments of a run, before its last one, that leave a trace of their own."""
        found: list[int] = []
        label = len(begin) - 1
        for at in _ENDS.offsets(self.buffer, pos, last):
            start = at - label
            ours = start >= pos and self.buffer.startswith(begin, start - 1)
            if ours and _TRACE.match(self.buffer, at, last):
                found.append(start)
        match = _LABEL.match(self.buffer, last, self.stop)
        if match is not None:
            # From where the last state stood still: only the first such segment was an advance.
            low, same = found[-1] if found else pos, b" " + match[2]
            # Counting is quicker than searching.
            at = self.buffer.find(same, low, last) if count(self.buffer, same, low, last) else -1
            if at >= 0:
                start = segment_start(self.buffer, pos, at, self.returns)
                if start not in found and start < last:
                    found.append(start)
        return sorted(found)
