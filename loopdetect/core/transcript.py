"""Polling transcripts: what a wait loop printed while it looked at a log and at a health check.

How this works: the text is cut into snapshots at the loop's own stamps. What a snapshot shows that
the one before did not is fed to the ordinary stream, on the clock of the stamps. A few facts that
only snapshots have are added: health codes, file sizes, words such as READY, a bar that fell back,
and the same finished bar over and over, which is either a log that did not grow or a start-up that
comes to the same point each time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from loopdetect.core.envelope import Enveloped, uncoloured
from loopdetect.core.line import Line
from loopdetect.core.polling import (
    BLANK,
    BODIES,
    GAVE_UP,
    HEALTH,
    HEALTH_AT_END,
    LISTED,
    PID,
    READY,
    REPEATS,
    RESTARTING,
    RESTARTS,
    RULE,
    SIZE,
    WORD,
    clock_of,
    stamp_of,
    uptime_of,
)
from loopdetect.core.progress import Bar, find_bar
from loopdetect.core.stream import Stream
from loopdetect.core.timestamp import CLOCKS, DAY, Frame, Stamp
from loopdetect.model import Kind, Phase

MAX_SNAPSHOTS: Final = 20000
MAX_LINES: Final = 200
REPEAT_FLOOR_S: Final = 120.0
REPEAT_BAR_FACTOR: Final = 5.0
_DATED: Final = re.compile(
    r"\d\d:\d\d:\d\d[ .,\]]|\bpid[=: ]\d+|\[\d{2,7}\]|^\d+\.\d\d\.\d{3}\.\d{3} "
)


@dataclass(slots=True)
class Snapshot:
    """What one look showed."""

    line: int
    time: float | None
    health: int | None = None
    size: str | None = None
    restarts: int | None = None
    uptime: float | None = None
    pid: str | None = None
    ready: bool = False
    lines: list[tuple[int, str]] = field(default_factory=list)

    @property
    def texts(self) -> list[str]:
        """The lines without their numbers."""
        return [text for _, text in self.lines]

    def last_bar(self) -> Bar | None:
        """Return the bar that the snapshot ends in, or None if it ends in something else."""
        last = next((text for _, text in reversed(self.lines) if text.strip()), "")
        found = find_bar(last.rstrip("\r").rpartition("\r")[2] or last)
        return found[0] if found and not last[found[2] :].strip() else None

    def dated(self) -> bool:
        """True when a line carries a wall-clock time or a pid, so that equal text means equal writing."""
        return any(_DATED.search(text) for _, text in self.lines)


class Transcript:
    """The snapshots of one transcript, in order."""

    def __init__(self, sample: bytes = b"") -> None:
        self.snapshots: list[Snapshot] = []
        self._line = 1
        self._clocked: bool | None = None
        self._frame = Frame.FULL
        lines = [uncoloured(raw.decode("utf-8", "replace")) for raw in sample.split(b"\n")]
        stamped = any(stamp_of(line) or clock_of(line) for line in lines)
        ruled = any(RULE.match(line) for line in lines)
        self._between = None if stamped else RULE if ruled else BLANK

    def feed(self, region: bytes) -> None:
        """Add whole physical lines."""
        for raw in region.split(b"\n")[: region.count(b"\n") + (not region.endswith(b"\n"))]:
            self._take(uncoloured(raw.decode("utf-8", "replace")))
            self._line += 1

    def _take(self, text: str) -> None:
        stamped = (None, "") if self._between and self._between.match(text) else stamp_of(text)
        if stamped is not None and self._clocked is None:
            self._clocked = False
        clocked = clock_of(text) if stamped is None and self._clocked is not False else None
        if clocked is not None:
            self._clocked = True
            self._frame = min(self._frame, clocked[0].frame)
            stamped = clocked[0].seconds, clocked[1]
        if stamped is not None and len(self.snapshots) < MAX_SNAPSHOTS:
            self.snapshots.append(Snapshot(self._line, self._onward(stamped[0])))
            text = stamped[1]
        if not self.snapshots:
            self.snapshots.append(Snapshot(self._line, None))
        snapshot = self.snapshots[-1]
        text = self._facts(snapshot, text)
        if text and len(snapshot.lines) < MAX_LINES:
            snapshot.lines.append((self._line, text))

    def _onward(self, time: float | None) -> float | None:
        """Carry a clock without a date over midnight."""
        last = next((s.time for s in reversed(self.snapshots) if s.time is not None), None)
        if time is not None and last is not None and self._clocked:
            while time < last - DAY / 2:
                time += DAY
        return time

    def _facts(self, snapshot: Snapshot, text: str) -> str:
        """Take health codes, sizes and the loop's own words off a line; return what is the log's."""
        for _ in range(6):
            health, size, pid = HEALTH.match(text), SIZE.match(text), PID.match(text)
            count, word = RESTARTS.match(text), WORD.match(text)
            found = health or size or pid or count or word
            if found is None:
                break
            if health:
                snapshot.health = int(health["code"] or health["bare"])
            elif size:
                snapshot.size = f"{snapshot.size or ''} {size['value']}"
            elif pid:
                snapshot.pid = pid["pid"]
            elif count:
                snapshot.restarts = int(count["count"])
            elif word:
                snapshot.ready = snapshot.ready or word["word"].lower() in ("healthy", "ready")
            text = text[found.end() :]
        ending = (
            HEALTH_AT_END.match(text) if snapshot.health is None and not snapshot.lines else None
        )
        if ending:
            snapshot.health = int(ending["code"])
            return ""
        for pattern, code in BODIES if snapshot.health is None else ():
            if len(text) < 400 and pattern.search(text):
                snapshot.health = code
                return ""
        if snapshot.uptime is None:
            snapshot.uptime = uptime_of(text)
        listed = LISTED.match(text)
        if listed and snapshot.size is None:
            snapshot.size = listed["value"]
            return ""
        if READY.match(text.strip()) and text.strip():
            snapshot.ready = True
            return ""
        if GAVE_UP.match(text.strip()) and text.strip():
            return ""
        return text

    # -- judging

    def play(self, stream: Stream) -> Finding:
        """Feed what each snapshot shows anew to `stream`; return what only the snapshots tell."""
        finding = Finding(clock=CLOCKS[self._frame] if self._clocked else "uptime")
        seen: list[str] = []
        fallen: dict[tuple[str, float | None], float] = {}
        stream.recognise(text for snapshot in self.snapshots for text in snapshot.texts)
        for snapshot, before in zip(self.snapshots, [None, *self.snapshots], strict=False):
            sign = _restarted(before, snapshot) if before is not None else None
            if sign is not None:
                stream.note_restart(snapshot.line, sign)
                seen = []
            stamp = Stamp(snapshot.time, Frame.FULL) if snapshot.time is not None else None
            for line, text in self._fresh(snapshot, seen):
                stream.take_polled(Line(line, Enveloped(text, stamp), hit=True))
            if snapshot.texts:
                seen = snapshot.texts
            if stamp is not None:
                stream.last_time = stream.clock.seconds(stamp)
            self._bar_fell(snapshot, fallen, finding, stream)
            self._health(snapshot, stream, stamp, finding)
        self._repeats(finding)
        return finding

    def _fresh(self, snapshot: Snapshot, seen: list[str]) -> Iterator[tuple[int, str]]:
        texts = snapshot.texts
        # A bar that was drawn anew in its place is the same line, and yet has something new to tell.
        before, now = [_in_place(text) for text in seen], [_in_place(text) for text in texts]
        keep = 0
        for size in range(min(len(seen), len(texts)), 0, -1):
            if before[-size:] == now[:size]:
                keep = size
                break
        if not keep and before and before[-1] in now:
            keep = now.index(before[-1]) + 1
        known = set(seen)
        drawn = [entry for entry in snapshot.lines[:keep] if entry[1] not in known]
        for line, text in [*drawn, *snapshot.lines[keep:]]:
            for part in text.split("\r"):
                if part.strip():
                    yield line, part

    def _bar_fell(
        self,
        snapshot: Snapshot,
        tops: dict[tuple[str, float | None], float],
        finding: Finding,
        stream: Stream,
    ) -> None:
        bar = snapshot.last_bar()
        if bar is None or not bar.label:
            return
        key = (bar.label, bar.total)
        before = tops.get(key)
        tops[key] = bar.done
        run = stream.machine.open
        if (
            before is not None
            and bar.done < before
            and run is not None
            and run.phase in (Phase.LOAD_WEIGHTS, Phase.UNKNOWN)
        ):
            finding.falls.append(snapshot.line)

    def _health(
        self, snapshot: Snapshot, stream: Stream, stamp: Stamp | None, finding: Finding
    ) -> None:
        up = snapshot.ready or (snapshot.health is not None and 200 <= snapshot.health < 300)
        if up:
            stream.note(Kind.READY, snapshot.line, "the health check answered", stamp)
            finding.answered = True
        elif snapshot.health == 0 and stream.machine.open is not None and stream.machine.open.ready:
            stream.note(Kind.CASCADE, snapshot.line, "the health check is refused again", stamp)

    def _repeats(self, finding: Finding) -> None:
        """Count identical snapshots that end in a finished bar without date or pid."""
        if any(s.ready or (s.health or 0) // 100 == 2 for s in self.snapshots):
            return
        filled = [s for s in self.snapshots if s.lines]
        best: list[Snapshot] = []
        current: list[Snapshot] = []
        for snapshot in filled:
            if current and snapshot.texts == current[-1].texts:
                current.append(snapshot)
            else:
                current = [snapshot]
            if len(current) > len(best):
                best = list(current)
        if len(best) < 2 or (
            best[-1] is not (filled[-1] if filled else None)
            and best[-1] is not (filled[-2] if len(filled) > 1 else None)
        ):
            return
        bar = best[-1].last_bar()
        if bar is None or not bar.finished or best[-1].dated():
            return
        sizes = {s.size for s in best}
        if len(sizes) == 1 and None not in sizes:
            finding.did_not_grow = True
            return
        cut = (
            len(best) == REPEATS - 1
            and best[-1] is not filled[-1]
            and _cut_short(filled[-1], best[-1])
        )
        if len(best) < REPEATS and not cut:
            return
        first, last = best[0].time, filled[-1].time if cut else best[-1].time
        needed = max(REPEAT_FLOOR_S, REPEAT_BAR_FACTOR * (bar.elapsed_s or 0.0))
        if first is not None and last is not None and last - first < needed:
            return
        finding.repeats = len(best) + cut
        finding.repeat_line = best[0].line


def _in_place(text: str) -> str | tuple[str, float | None]:
    found = find_bar(text)
    return (found[0].label, found[0].total) if found and found[0].label else text


def _restarted(before: Snapshot, now: Snapshot) -> str | None:
    """Return what beside the lines shows that the server was started again between two looks."""
    if _shrank(before, now):
        return "the log became smaller"
    if before.pid is not None and now.pid is not None and before.pid != now.pid:
        return f"the process id changed from {before.pid} to {now.pid}"
    if before.restarts is not None and now.restarts is not None and now.restarts > before.restarts:
        return f"the supervisor's count rose to {now.restarts}"
    if before.uptime is not None and now.uptime is not None and now.uptime < before.uptime:
        return "the container is up for a shorter time than before"
    if now.uptime is not None and any(RESTARTING in text for text in before.texts):
        return "the container is up again"
    return None


def _shrank(before: Snapshot, now: Snapshot) -> bool:
    sizes = [(s.size or "").strip() for s in (before, now)]
    return all(size.isdigit() for size in sizes) and int(sizes[1]) < int(sizes[0])


def _cut_short(cut: Snapshot, whole: Snapshot) -> bool:
    """True when a last snapshot is the beginning of the same text, broken off."""
    text = "\n".join(cut.texts).rstrip(". …")
    return bool(text) and "\n".join(whole.texts).startswith(text)


@dataclass(slots=True)
class Finding:
    """What the snapshots say beyond the lines in them."""

    repeats: int = 0
    repeat_line: int = 0
    falls: list[int] = field(default_factory=list)
    did_not_grow: bool = False
    answered: bool = False
    clock: str = "uptime"
