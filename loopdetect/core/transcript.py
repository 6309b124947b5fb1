"""Polling transcripts: what a wait loop printed while it looked at a log and at a health check.

How this works: the text is cut into snapshots at the loop's own stamps. What a snapshot shows that
the one before did not is fed to the ordinary stream, on the clock of the stamps. A few facts that
only snapshots have are added: health codes, file sizes, words such as READY, a bar that fell back,
and the same finished bar over and over, which is either a log that did not grow or a start-up that
comes to the same point each time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from loopdetect.core.between import Stopped, loads_again, over
from loopdetect.core.envelope import peel, uncoloured
from loopdetect.core.facts import take_facts
from loopdetect.core.frames import AGAIN, Again, masked, parting, slept
from loopdetect.core.heads import head_of
from loopdetect.core.late import Late
from loopdetect.core.line import Line
from loopdetect.core.looks import CODE_LINE, LOGGED, is_answer
from loopdetect.core.polling import (
    BLANK,
    CI_MARK,
    CI_STAMP,
    GUTTER,
    LIST_OPENS,
    PROMPT,
    QUOTE,
    REPEATS,
    RULE,
    SLEEP,
    TRACE,
    coded,
    marks_of,
    peeled,
    prompted,
    rewrapped,
    traced,
    unquoted,
)
from loopdetect.core.progress import find_bar
from loopdetect.core.repeats import Finding as Finding
from loopdetect.core.repeats import count_repeats
from loopdetect.core.sayings import hints, says_ready
from loopdetect.core.snapshot import (
    Known,
    Snapshot,
    all_run,
    headed,
    without_own_end,
    without_rows,
    without_titles,
    without_what_is_dumped,
)
from loopdetect.core.stamps import clock_of, is_mark, stamp_of, time_in, wrapped
from loopdetect.core.stream import Stream
from loopdetect.core.timestamp import CLOCKS, DAY, Frame, Stamp
from loopdetect.model import Kind, Phase

# A sign that a loop puts before a line that it shows.
BRANCH: Final = Late(r"^\s*(?:[└├╰]─+>?|[↳➜▸»→]|>(?= )) *(?=\S)")
# Where the lines of a log were joined to one.
JOINED: Final = Late(r"(?<=\S) +(?=\(\w+ pid=\d+\) )")
# What a `tail` may end in without a new line: dots, or a bar that is drawn in place.
GLUE: Final = Late(r"(?<!\.)\.{4,}(?=[^\s.])|(?:it/s|s/it|B/s)(?:, [^\]\r]{0,80})?\](?=\S)")
MAX_GLUED: Final = 4000
MAX_SNAPSHOTS: Final = 20000
MAX_LINES: Final = 400_000
MAX_TAIL: Final = 400
MAX_OWN: Final = 60


class Transcript:
    """The snapshots of one transcript, in order."""

    def __init__(self, sample: bytes = b"") -> None:
        self.snapshots: list[Snapshot] = []
        self._line = 1
        self._kept = 0
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
        self._gutter = any(line.startswith("  ⎿") for line in lines)
        # Where times stand alone, a server's own stamps are no stamps of the loop's.
        self._marked = bool(marks_of(lines))
        header = None if self._prompted else parting(lines, stamps >= REPEATS)
        self._again = Again() if header == AGAIN else None
        own = [line for line in lines if masked(line) == header]
        self._header = None if any(stamp_of(x) or is_mark(x) for x in own) else header
        timed = sum(
            (stamp_of(x) or (None,))[0] is not None or clock_of(x) is not None for x in lines
        )
        head = None if self._prompted or self._header else head_of(lines)
        self._head = head if head is not None and head.count > timed else None
        self._listing = False
        self._passed = 0.0
        self._traced = traced(lines)
        self._wrapped = rewrapped(lines)
        indents = [len(line) - len(line.lstrip(" ")) for line in shown if not says_ready(line)]
        self._indent = min(indents, default=0) if stamped else 0
        ruled = any(RULE.match(line) for line in lines)
        parted = stamped or self._prompted or bool(self._header or self._head)
        self._between = None if parted else RULE if ruled else BLANK

    def feed(self, region: bytes) -> None:
        """Add whole physical lines."""
        for raw in region.split(b"\n")[: region.count(b"\n") + (not region.endswith(b"\n"))]:
            for text in self._unglued(uncoloured(raw.decode("utf-8", "replace"))):
                self._take(text)
            self._line += 1

    def _unglued(self, text: str) -> tuple[str, ...]:
        """Part a log's last line, that had no end yet, from the loop's own words behind it."""
        for match in GLUE.finditer(text) if len(text) <= MAX_GLUED else ():
            rest = text[match.end() :]
            if stamp_of(rest) or clock_of(rest) or (self._head and self._head.read(rest)):
                return text[: match.end()], rest
        return (text,)

    def _take(self, text: str) -> None:
        if self._peeled:
            text = CI_STAMP.sub("", text, 1)
            text = "" if CI_MARK.match(text) else text
        text = GUTTER.sub("", text, 1) if self._gutter and GUTTER.match(text) else text
        text = self._unquoted(text)
        inner = wrapped(text) if self._wrapped else None
        if inner is not None:
            self._rewrapped(inner)
            return
        text = QUOTE.sub("", BRANCH.sub("", text, 1), 1)
        stamped = self._beginning(text)
        if SLEEP.match(text) or (PROMPT.match(text) and not self._prompted):
            return
        trace = TRACE.match(text) if self._traced else None
        if stamped is not None and len(self.snapshots) < MAX_SNAPSHOTS:
            self.snapshots.append(Snapshot(self._line, self._onward(stamped[0])))
            if self._head is not None:
                self.snapshots[-1].health = self._head.answer(text)
            text = self._joined(stamped[1])
        elif trace is not None:
            if self.snapshots:
                take_facts(self.snapshots[-1], text[trace.end() :])
            return
        elif self._indent and not text[: self._indent].strip():
            text = text[self._indent :]
        if not self.snapshots:
            self.snapshots.append(Snapshot(self._line, None))
        snapshot = self.snapshots[-1]
        if len(snapshot.lines) < MAX_OWN or hints(text):
            text = take_facts(snapshot, text)
        if text and self._kept < MAX_LINES:
            self._kept += 1
            snapshot.lines.append((self._line, text))

    def _joined(self, text: str) -> str:
        """Keep all but the last of the lines that a loop joined to one; return that."""
        *before, last = JOINED.sub("\n", text).split("\n")
        cut = text.lstrip().startswith(("...", "…"))
        if before and not cut and not LOGGED.search(before[0]):
            return text  # the loop's own words
        for part in before:
            self._kept += 1
            self.snapshots[-1].lines.append((self._line, part))
        return last

    def _rewrapped(self, inner: tuple[Stamp, bool, str]) -> None:
        """Take a line of a script's own log: all that it wrote at one moment is one look."""
        stamp, shown, text = inner
        seconds, text = self._on_clock(stamp, text)
        time = self._onward(seconds)
        new = not self.snapshots or self.snapshots[-1].time != time
        if new and len(self.snapshots) < MAX_SNAPSHOTS:
            self.snapshots.append(Snapshot(self._line, time))
        text = text if shown else take_facts(self.snapshots[-1], text)
        if text and self._kept < MAX_LINES:
            self._kept += 1
            self.snapshots[-1].lines.append((self._line, text))

    def _unquoted(self, text: str) -> str:
        """Take the quotes off lines that a playbook prints as a list of strings."""
        if self._listing and text.strip() in ("]", "],"):
            self._listing = False
        elif self._listing:
            return unquoted(text)
        elif LIST_OPENS.match(text):
            self._listing = True
        return text

    def _beginning(self, text: str) -> tuple[float | None, str] | None:
        """Return the time that a line begins a look with, and what follows; None within a look."""
        if self._head is not None:
            found = self._head.read(text)
            if found is None:
                return None
            stamp, on_clock, rest = found
            if stamp is None:
                return None, rest
            return self._on_clock(stamp, rest) if on_clock else (stamp.seconds, rest)
        if self._again is not None:
            return (None, text) if self._again.goes_back(text) else None
        if self._header is not None:
            if masked(text) != self._header:
                return None
            shown = time_in(text)
            if shown is not None:
                return self._on_clock(shown, "")
            self._passed += slept(text)
            return self._passed or None, ""
        stamped = self._typed(text) if self._prompted else self._stamp(text)
        if stamped is not None and self._clocked is None:
            self._clocked = False
        if stamped is not None or self._prompted or self._clocked is False:
            return stamped
        clocked = clock_of(text) if not self._marked or is_mark(text) else None
        return self._on_clock(*clocked) if clocked is not None else None

    def _on_clock(self, stamp: Stamp, rest: str) -> tuple[float, str]:
        self._clocked = True
        self._frame = min(self._frame, stamp.frame)
        return stamp.seconds, rest

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

    # -- judging

    def play(self, stream: Stream) -> Finding:
        """Feed what each snapshot shows anew to `stream`; return what only the snapshots tell."""
        finding = Finding(clock=CLOCKS[self._frame] if self._clocked else "uptime")
        seen: list[str] = []
        fallen: dict[tuple[str, float | None], float] = {}
        if self.snapshots:
            without_own_end(self.snapshots[-1])
            without_what_is_dumped(self.snapshots)
            without_rows(self.snapshots)
            without_titles(self.snapshots)
        known = Known(any(s.pid or s.restarts is not None for s in self.snapshots))
        stream.recognise(peel(text).text for snapshot in self.snapshots for text in snapshot.texts)
        for snapshot in self.snapshots:
            was_alive = known.alive
            sign = known.restarted(snapshot)
            if sign is not None or not (seen and seen[-1] in snapshot.texts):
                stream.finish()  # a traceback does not go on from one look to another that is not joined
            if sign is not None:
                stream.note_restart(snapshot.line, sign)
                seen = []
            stamp = Stamp(snapshot.time, Frame.FULL) if snapshot.time is not None else None
            joined = bool(seen) and seen[-1] in snapshot.texts and find_bar(seen[-1]) is None
            fresh = headed(list(self._fresh(snapshot, seen)))
            if not joined and loads_again(stream, snapshot, fresh):
                stream.note_restart(fresh[0][0], "it starts again after its death")
            for line, text in fresh:
                inner = replace(peel(text), stamp=stamp, stream=None)
                run = stream.machine.open
                dead = run.dead_line if run is not None else None
                if joined or (dead is not None and dead >= snapshot.line):
                    # What stands behind a death in one look was written one after the other.
                    stream.machine.polled = False
                    stream.take(Line(line, inner, hit=True))
                    stream.machine.polled = True
                else:
                    stream.take_polled(Line(line, inner, hit=True))
            run = stream.machine.open
            if run is not None and not stream.machine.runs and not self.snapshots[0].lines:
                run.marked = True  # the first look showed an empty log, so this is its first start
            if run is not None and (run.dead_line is not None or run.exit is not None):
                stream.finish()  # what it said last is over, and not the next run's
            if snapshot.texts:
                seen = snapshot.texts
            if stamp is not None:
                stream.last_time = stream.clock.seconds(stamp)
            if known.alive is False and was_alive is not False:
                over(snapshot, stream, stamp)
            self._bar_fell(snapshot, fallen, finding, stream)
            self._health(snapshot, stream, stamp, finding)
        count_repeats(self.snapshots, finding)
        if any(s.time is not None for s in self.snapshots):
            stream.clock = Stopped(stream.clock)
        return finding

    def _fresh(self, snapshot: Snapshot, seen: list[str]) -> Iterator[tuple[int, str]]:
        texts = snapshot.texts
        # A bar that was drawn anew in its place is the same line, and yet has something new to tell.
        before, now = [_in_place(text) for text in seen], [_in_place(text) for text in texts]
        longest = min(len(seen), len(texts))
        sizes = (longest, *range(min(longest - 1, MAX_TAIL), 0, -1)) if longest else ()
        keep = next((size for size in sizes if before[-size:] == now[:size]), 0)
        if not keep and before and before[-1] in now:
            end = now.index(before[-1]) + 1
            both = min(end, len(before))
            # A longer tail shows what was seen, and before it what was not; a mere last word that comes again is new.
            keep = end if before[-both:] == now[end - both : end] else 0
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
        gone = not up and snapshot.health == 0 and finding.answered
        if gone and run is not None and run.ready and not asked:
            stream.note(Kind.CASCADE, snapshot.line, "the health check is refused again", stamp)


def _in_place(text: str) -> str | tuple[str, float | None]:
    found = find_bar(text)
    return (found[0].label, found[0].total) if found and found[0].label else text


def _slept(text: str) -> float:
    match = SLEEP.match(text) or PROMPT.match(text)
    return float(match["s"] or 0) if match else 0.0
