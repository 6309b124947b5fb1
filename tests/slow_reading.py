"""The slow way to read a log: every line is cut out, and every rule in force is asked."""

from __future__ import annotations

import importlib
import io
import sys
from functools import cache
from pathlib import Path
from types import ModuleType

from loopdetect.core.block import CHAINS, HEADER, PANIC
from loopdetect.core.detector import Detector
from loopdetect.core.lines import MAX_SEGMENT, segment_end
from loopdetect.core.prefilter import forms_of
from loopdetect.core.progress import BAR_LITERALS
from loopdetect.core.search import Aim, Search
from loopdetect.core.walk import QUOTE_WITHIN, Taker, Walk
from loopdetect.model import Report
from loopdetect.profiles import ALWAYS, Library


class SlowWalk(Walk):
    """Takes every segment; no search, no anchors, no run of bars, nothing left out."""

    def __init__(self, search: Search) -> None:
        super().__init__(search)
        self._literals: dict[frozenset[str], tuple[bytes, ...]] = {}

    def region(self, buffer: bytes, start: int, stop: int, taker: Taker) -> None:
        place = self.place
        place.enter(buffer, start, stop)
        returns = buffer.find(b"\r", start, stop) >= 0
        pos = start
        while pos < stop:
            aim = taker.aim(place.offset(pos))
            end = segment_end(buffer, pos, stop, returns)
            place.move(pos)
            if end > pos:
                self.taken += 1
                taker.take(buffer[pos:end], pos, self._is_hit(buffer[pos:end][:MAX_SEGMENT], aim))
            pos = end + 1
        taker.aim(place.offset(stop))
        place.leave()

    def passes(self, buffer: bytes, start: int, stop: int, taker: Taker) -> bool:
        return False

    def _is_hit(self, raw: bytes, aim: Aim) -> bool:
        quotes = self._search.filters(aim)[2]
        if any(quote in raw[:QUOTE_WITHIN] for quote in quotes):
            return False
        return any(literal in raw for literal in self._in_force(aim))

    def _in_force(self, aim: Aim) -> tuple[bytes, ...]:
        found = self._literals.get(aim.profiles)
        if found is None:
            profiles = self._search.library.profiles
            texts = {HEADER, PANIC, *CHAINS, *BAR_LITERALS, *self._search.identify.literals}
            for name in aim.profiles | frozenset(ALWAYS):
                for rule in profiles[name].rules if name in profiles else ():
                    texts.update(rule.literals)
            found = self._literals[aim.profiles] = tuple(
                form.encode() for text in texts for form in forms_of(text)
            )
        return found


def slow_detector(library: Library, source: str = "log") -> Detector:
    """Return a detector that reads the slow way."""
    detector = Detector(library, source=source)
    detector._walk = SlowWalk(detector._search)
    detector._place = detector._walk.place
    return detector


def slow_reports(library: Library, data: bytes) -> tuple[Report, ...]:
    """Read a whole log the slow way."""
    detector = slow_detector(library)
    detector.feed(data)
    return detector.finish()


def fast_reports(library: Library, data: bytes, size: int = 1 << 18) -> tuple[Report, ...]:
    """Read a log in chunks of `size` bytes, as the commands do."""
    detector = Detector(library, source="log")
    for start in range(0, len(data), size):
        detector.feed(data[start : start + size])
    return detector.finish()


@cache
def bench(name: str) -> ModuleType:
    """Return a module of the bench folder."""
    folder = Path(__file__).parent.parent / "bench"
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
    return importlib.import_module(name)


def made_log(kind: str, server: str = "vllm", size: int = 500_000, seed: int = 5) -> bytes:
    """Return a made-up log."""
    out = io.BytesIO()
    bench("logs").write(out, kind, server, size, seed)
    return out.getvalue()
