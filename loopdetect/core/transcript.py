"""Polling transcripts: what a wait loop printed while it looked at a log and at a health check.

How this works: the text is cut into snapshots at the loop's own stamps. What a snapshot shows that
the one before did not is fed to the ordinary stream, on the clock of the stamps. A few facts that
only snapshots have are added: health codes, file sizes, words such as READY, a bar that fell back,
and the same finished bar over and over, which is either a log that did not grow or a start-up that
comes to the same point each time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Final

from loopdetect.core.envelope import peel, uncoloured
from loopdetect.core.line import Line
from loopdetect.core.looks import (
    BODIES,
    CHATTER,
    CODE_LINE,
    GAVE_UP,
    HEALTH,
    HEALTH_AT_END,
    HEALTHY,
    LISTED,
    MEMORY,
    NOT_YET,
    PID,
    PROCESS,
    READY,
    RESTARTS,
    SIZE,
    WORD,
    is_answer,
    uptime_of,
)
from loopdetect.core.polling import (
    BLANK,
    CI_MARK,
    CI_STAMP,
    PROMPT,
    REPEATS,
    RULE,
    SLEEP,
    clock_of,
    coded,
    peeled,
    prompted,
    stamp_of,
)
from loopdetect.core.progress import find_bar
from loopdetect.core.snapshot import (
    Snapshot,
    all_run,
    cut_short,
    headed,
    restarted,
    without_own_end,
)
from loopdetect.core.stream import Stream
from loopdetect.core.timestamp import CLOCKS, DAY, Frame, Stamp
from loopdetect.model import Kind, Phase

MAX_SNAPSHOTS: Final = 20000
MAX_LINES: Final = 200
REPEAT_FLOOR_S: Final = 120.0
REPEAT_BAR_FACTOR: Final = 5.0


class Transcript:
    """The snapshots of one transcript, in order."""

    def __init__(self, sample: bytes = b"") -> None:
        self.snapshots: list[Snapshot] = []
        self._line = 1
        self._clocked: bool | None = None
        self._frame = Frame.FULL
        raw = [uncoloured(raw.decode("utf-8", "replace")) for raw in sample.split(b"\n")]
        lines = peeled(raw)
        self._peeled = lines != raw
        self._coded = coded(lines)
        self._slept = 0.0 if any(_slept(line) for line in lines) else None
        shown = [line for line in lines if line.strip() and not (stamp_of(line) or clock_of(line))]
        stamps = sum(bool(stamp_of(line) or clock_of(line)) for line in lines)
        stamped = stamps > 0
        # Stamps beside the prompts tell more than the prompts do.
        self._prompted = stamps < REPEATS and prompted(lines)
        indents = [len(line) - len(line.lstrip(" ")) for line in shown if not READY.match(line)]
        self._indent = min(indents, default=0) if stamped else 0
        ruled = any(RULE.match(line) for line in lines)
        self._between = None if stamped or self._prompted else RULE if ruled else BLANK

    def feed(self, region: bytes) -> None:
        """Add whole physical lines."""
        for raw in region.split(b"\n")[: region.count(b"\n") + (not region.endswith(b"\n"))]:
            self._take(uncoloured(raw.decode("utf-8", "replace")))
            self._line += 1

    def _take(self, text: str) -> None:
        if self._peeled:
            text = CI_STAMP.sub("", text, 1)
            text = "" if CI_MARK.match(text) else text
        stamped = self._typed(text) if self._prompted else self._stamp(text)
        if SLEEP.match(text) or (PROMPT.match(text) and not self._prompted):
            return
        if stamped is not None and self._clocked is None:
            self._clocked = False
        free = stamped is None and self._clocked is not False and not self._prompted
        clocked = clock_of(text) if free else None
        if clocked is not None:
            self._clocked = True
            self._frame = min(self._frame, clocked[0].frame)
            stamped = clocked[0].seconds, clocked[1]
        if stamped is not None and len(self.snapshots) < MAX_SNAPSHOTS:
            self.snapshots.append(Snapshot(self._line, self._onward(stamped[0])))
            text = stamped[1]
        elif self._indent and not text[: self._indent].strip():
            text = text[self._indent :]
        if not self.snapshots:
            self.snapshots.append(Snapshot(self._line, None))
        snapshot = self.snapshots[-1]
        text = self._facts(snapshot, text)
        if text and len(snapshot.lines) < MAX_LINES:
            snapshot.lines.append((self._line, text))

    def _stamp(self, text: str) -> tuple[float | None, str] | None:
        if self._between and self._between.match(text):
            return None, ""
        if self._coded and CODE_LINE.match(text):
            return None, text
        if self._between is BLANK and is_answer(text):
            return None, text
        return stamp_of(text)

    def _typed(self, text: str) -> tuple[float | None, str] | None:
        """Begin a look at each command that looks; what was slept before it tells the time."""
        if self._slept is not None:
            self._slept += _slept(text)
        return (self._slept, "") if PROMPT.match(text) else None

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
        memory, process = MEMORY.match(text), PROCESS.match(text)
        if memory:
            snapshot.memory = (snapshot.memory or 0) + int(memory["used"])
            return ""
        if process and "grep " in process["command"]:
            return ""
        if process and snapshot.pid is None:
            snapshot.pid = process["pid"]
        chatter = CHATTER.match(text)
        if chatter:
            snapshot.health = int(chatter["code"]) if chatter["code"] else snapshot.health
            return ""
        for pattern, code in BODIES if snapshot.health is None else ():
            if len(text) < 400 and pattern.search(text):
                snapshot.health = code
                return ""
        if snapshot.uptime is None:
            snapshot.uptime = uptime_of(text)
            snapshot.ready |= snapshot.uptime is not None and HEALTHY in text
        listed = LISTED.match(text)
        if listed and snapshot.size is None:
            snapshot.size = listed["value"]
            return ""
        if NOT_YET.match(text):
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
        if self.snapshots:
            without_own_end(self.snapshots[-1])
        stream.recognise(peel(text).text for snapshot in self.snapshots for text in snapshot.texts)
        for snapshot, before in zip(self.snapshots, [None, *self.snapshots], strict=False):
            sign = restarted(before, snapshot) if before is not None else None
            if sign is not None:
                stream.note_restart(snapshot.line, sign)
                seen = []
            stamp = Stamp(snapshot.time, Frame.FULL) if snapshot.time is not None else None
            for line, text in headed(list(self._fresh(snapshot, seen))):
                inner = replace(peel(text), stamp=stamp, stream=None)
                stream.take_polled(Line(line, inner, hit=True))
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
        up = (
            snapshot.ready
            or all_run(snapshot.texts)
            or (snapshot.health is not None and 200 <= snapshot.health < 300)
        )
        if up:
            stream.note(Kind.READY, snapshot.line, "the health check answered", stamp)
            finding.answered = True
        run = stream.machine.open
        asked = run is not None and (run.stop_line is not None or run.goodbye_line is not None)
        if not up and snapshot.health == 0 and run is not None and run.ready and not asked:
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
            and cut_short(filled[-1], best[-1])
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


def _slept(text: str) -> float:
    match = SLEEP.match(text) or PROMPT.match(text)
    return float(match["s"] or 0) if match else 0.0


@dataclass(slots=True)
class Finding:
    """What the snapshots say beyond the lines in them."""

    repeats: int = 0
    repeat_line: int = 0
    falls: list[int] = field(default_factory=list)
    did_not_grow: bool = False
    answered: bool = False
    clock: str = "uptime"
