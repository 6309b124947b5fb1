"""A source that is watched: its bytes, its detector, and what was told of its streams."""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass, field
from typing import Final

from loopdetect.core.detector import Detector
from loopdetect.follow.freeze import Unusable, freeze, thaw
from loopdetect.follow.happened import Happened, Manner, Memory, What
from loopdetect.follow.patience import Advance, log_time, next_look
from loopdetect.follow.pipe import Pipe
from loopdetect.follow.story import Story
from loopdetect.follow.tail import Happening, Tail
from loopdetect.model import Phase, Policy, Report, State
from loopdetect.profiles import Library
from loopdetect.source.archive import format_of
from loopdetect.source.content import foreign

# Shortest time between two judgements of one source; longer where judging it is dear.
PACE: Final = 0.1
PACE_FACTOR: Final = 5.0
# An unfinished line is taken as it is once nobody has added to it for so long.
QUIET_LINE: Final = 0.5
# From here on silence is counted as time on the log's own clock.
SILENT: Final = 1.0
HEAD: Final = 4096


@dataclass(frozen=True, slots=True)
class Reading:
    """What every source of one call is read with; `salt` keeps the ids of two calls apart."""

    library: Library
    profile: str | None
    policy: Policy
    manner: Manner
    salt: str = ""


@dataclass(slots=True)
class Followed:
    """One source; times are seconds since 1970."""

    name: str
    reading: Reading
    origin: Tail | Pipe
    detector: Detector
    stories: dict[str | None, Story] = field(default_factory=dict)
    advances: dict[str | None, Advance] = field(default_factory=dict)
    reports: tuple[Report, ...] = ()
    grown_at: float | None = None
    judged_at: float = 0.0
    saved_at: float = 0.0
    freeze_cost: float = 0.0
    dirty: bool = False
    judgements: int = 0
    backlog: bool = True
    ended: bool = False
    refused: bool = False
    last_word: bool = True
    look_at: float | None = None
    _pace: float = PACE
    _cost: float = 0.0
    _head: bytes = b""

    @classmethod
    def new(cls, name: str, reading: Reading, origin: Tail | Pipe, *, live: bool) -> Followed:
        """Return a source that was not read yet; `live` tells everything from its first line."""
        detector = _detector(name, reading)
        return cls(name, reading, origin, detector, backlog=not live, dirty=True)

    # -- bytes in

    def read(self, now: float, monotonic: float, budget: int) -> bool:
        """Read what came; True when there is more at once."""
        if self.refused:
            return False
        if isinstance(self.origin, Pipe):
            data, ended = self.origin.take(monotonic)
            self._feed(data, now)
            if ended and not self.ended:
                self.ended = self.dirty = True
            return False
        data = self.origin.poll(monotonic, budget=budget)
        self._feed(data, now)
        if not data:
            self._feed(self.origin.rest(monotonic, QUIET_LINE), now)
        return self.origin.more

    def flush(self, now: float) -> None:
        """Take the unfinished last line as it is."""
        if isinstance(self.origin, Tail):
            self._feed(self.origin.rest(now, quiet=0.0), now)

    def take(self, data: bytes, now: float) -> None:
        """Add bytes that were not read from the followed file."""
        self._feed(data, now)

    def _feed(self, data: bytes, now: float) -> None:
        if not data or self._refuses(data):
            return
        self.detector.feed(data)
        self.grown_at = now
        if self.backlog and isinstance(self.origin, Tail):
            self.grown_at = min(self.origin.modified_at() or now, now)
        self.dirty = True

    def _refuses(self, data: bytes) -> bool:
        """Look at the first bytes: something that is no log is set aside."""
        if len(self._head) >= HEAD:
            return False
        self._head += data[: HEAD - len(self._head)]
        packed = format_of(self._head)
        kind = foreign(self._head)
        if packed is None and kind is None:
            return False
        what = f"{packed} data" if packed else kind.title if kind else ""
        self.refused = True
        if isinstance(self.origin, Tail):
            self.origin.happenings.append(_no_log(what))
        return True

    # -- judging

    def due(self, now: float) -> float | None:
        """Return in how many seconds it wants to be judged, None for not at all."""
        waits = []
        if self.dirty:
            waits.append(self.judged_at + self._pace - now)
        if self.look_at is not None:
            waits.append(self.look_at - now)
        for story in self.stories.values():
            at = story.due()
            if at is not None:
                waits.append(at - now)
        return min(waits, default=None)

    def judge(self, now: float, *, final: bool = False) -> list[Happened]:
        """Return what happened since the last judgement; `final` if nothing comes after it."""
        if self.dirty or (self.look_at is not None and now >= self.look_at):
            self._look(now)
        events: list[Happened] = []
        for report in self.reports:
            story = self.stories.get(report.stream)
            summing_up = self.backlog and (story is None or not story.memory.begun)
            if story is None:
                story = self._story(report.stream, None)
            if summing_up:
                events += story.first(report, now)
            else:
                events += story.told(report, now, final=final)
        self.backlog = False
        return events

    def _look(self, now: float) -> None:
        began = time.perf_counter()
        silent = max(0.0, now - self.grown_at) if self.grown_at is not None else 0.0
        reports = self.detector.snapshot()
        last = log_time(reports)
        if last is not None and silent >= SILENT:
            reports = self.detector.snapshot(now=last + silent)
        policy = self.reading.policy
        self.reports = tuple(
            self.advances.setdefault(report.stream, Advance(at=now)).judged(report, policy, now)
            for report in reports
        )
        wait = next_look(self.reports, policy, silent)
        self.look_at = now + max(wait, PACE) if wait is not None else None
        self.dirty = False
        self.judged_at = now
        self.judgements += 1
        cost = time.perf_counter() - began
        self._pace = max(PACE, PACE_FACTOR * min(cost, self._cost))
        self._cost = cost

    # -- what is told of the file itself

    def happenings(self, now: float) -> list[Happened]:
        """Return what happened to the file since the last call."""
        if isinstance(self.origin, Pipe):
            return []
        said, self.origin.happenings = self.origin.happenings, []
        return [self.happened(now, What(each.what), each.text) for each in said]

    def happened(self, now: float, what: What, text: str) -> Happened:
        """Return an event of the source as a whole."""
        story = self.stories.get(None) or self._story(None, None)
        story.memory.count += 1
        state = self.reports[0].verdict.state if len(self.reports) == 1 else State.UNKNOWN
        phase = self.reports[0].verdict.phase if len(self.reports) == 1 else Phase.UNKNOWN
        identity = f"{self._key(None)}-{story.memory.count}"
        return Happened(identity, now, self.name, None, what, text, state, phase)

    # -- going on where another watcher stopped

    def frozen(self) -> bytes | None:
        """Return the state that the last judgement was made from, None where it moved on since."""
        if self.dirty:
            return None
        began = time.perf_counter()
        try:
            return freeze(self.detector)
        except Unusable:
            return None
        finally:
            self.freeze_cost = time.perf_counter() - began

    def restore(self, state: bytes, memories: dict[str | None, Memory]) -> bool:
        """Take over a saved state; False where it can't be used and the file must be read anew."""
        for stream, memory in memories.items():
            self._story(stream, memory)
        reading = self.reading
        try:
            self.detector = thaw(state, reading.library, reading.policy, self.name, reading.profile)
        except Unusable:
            for memory in memories.values():
                memory.begun = False
            return False
        self._head = b"\n" * HEAD
        self.backlog = False
        self.dirty = True
        return True

    def relearn(self, reading: Reading) -> bool:
        """Go on under profiles that were read anew; False where the state does not fit them."""
        try:
            state = freeze(self.detector)
            detector = thaw(state, reading.library, reading.policy, self.name, reading.profile)
        except Unusable:
            return False
        self.reading, self.detector, self.dirty = reading, detector, True
        return True

    def _story(self, stream: str | None, memory: Memory | None) -> Story:
        story = Story(self._key(stream), self.reading.manner, memory)
        self.stories[stream] = story
        return story

    def _key(self, stream: str | None) -> str:
        return key_of(f"{self.name}\0{self.reading.salt}", stream)


def key_of(name: str, stream: str | None) -> str:
    """Return the first part of the ids of a stream's events."""
    return hashlib.sha256(f"{name}\0{stream or ''}".encode("utf-8", "replace")).hexdigest()[:10]


def _detector(name: str, reading: Reading) -> Detector:
    return Detector(reading.library, reading.policy, source=name, profile=reading.profile)


def _no_log(what: str) -> Happening:
    return Happening("unreadable", f"this is {what}, not a log; it is not followed")
