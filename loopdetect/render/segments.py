"""Where each phase of each run lies on one axis: the geometry that terminal and page share.

How this works: every run is drawn from its own start, so that runs can be held against each other
whenever they happened. The axis is seconds where most runs have times, else lines of the log. It is
long enough for every start-up; a run that served for days, or hung far longer than the others, is
cut at its end and says so.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from loopdetect.model import Outcome, Phase, Run
from loopdetect.render import figures
from loopdetect.render.duration import spoken

SERVING_ROOM: Final = 1.25
# An axis this much longer than the start-ups is worth cutting.
TOO_LONG: Final = 3.0
OUTLIER: Final = 10.0
_TIME_STEPS: Final = (
    1,
    2,
    5,
    10,
    15,
    30,
    60,
    120,
    300,
    600,
    900,
    1800,
    3600,
    7200,
    10800,
    21600,
    43200,
)
_DONE: Final = frozenset({Phase.SERVING, Phase.SHUTDOWN})


@dataclass(frozen=True, slots=True)
class Segment:
    """One phase of one run; `start` and `end` are seconds or lines from the run's start."""

    phase: Phase
    start: float
    end: float
    line: int
    known: bool
    duration_s: float | None


@dataclass(frozen=True, slots=True)
class Lane:
    """One run on the axis; `length` is None where its time is not known."""

    run: Run
    segments: tuple[Segment, ...]
    length: float | None
    ready_at: float | None

    @property
    def start_up(self) -> float:
        """How long the axis must be to show how the run got ready or died."""
        if self.ready_at is not None:
            return self.ready_at
        early = [segment.end for segment in self.segments if segment.phase not in _DONE]
        return max(early, default=self.length or 0.0)


@dataclass(frozen=True, slots=True)
class Alike:
    """Runs that are not drawn; `same` when they went as the one drawn before them."""

    runs: tuple[Run, ...]
    same: bool

    @property
    def label(self) -> str:
        """Their numbers."""
        first, last = self.runs[0].number, self.runs[-1].number
        return str(first) if first == last else f"{first}–{last}"

    @property
    def words(self) -> str:
        """What became of them."""
        if not self.same:
            return figures.folded(self.runs)
        usual = figures.median(run.duration_s for run in self.runs)
        each = f", about {spoken(usual)} each" if usual is not None else ""
        return f"the same ({figures.counted(len(self.runs), 'run')}{each})"


@dataclass(frozen=True, slots=True)
class Chart:
    """The lanes in order, and the axis from 0 to `extent`."""

    lanes: tuple[Lane | Alike, ...]
    extent: float
    by_lines: bool
    cut: bool

    @property
    def drawn(self) -> tuple[Lane, ...]:
        """The lanes without the folded ones."""
        return tuple(lane for lane in self.lanes if isinstance(lane, Lane))


def worth_drawing(runs: Sequence[Run]) -> bool:
    """True when a picture tells more than one line would."""
    return len(runs) > 1 or any(len(run.phases) > 2 for run in runs)


def chart(runs: Sequence[Run], limit: int | None) -> Chart:
    """Return the chart of the runs in at most about `limit` lanes; None draws every run."""
    timed = sum(run.duration_s is not None for run in runs)
    by_lines = timed * 2 < len(runs) or not any(run.duration_s for run in runs)
    make = _by_lines if by_lines else _by_time
    chosen = fold(runs, limit)
    lanes = tuple(make(item) if isinstance(item, Run) else item for item in chosen)
    drawn = [lane for lane in lanes if isinstance(lane, Lane) and lane.length is not None]
    extent = _extent(drawn)
    cut = any((lane.length or 0) > extent * 1.001 for lane in drawn)
    return Chart(lanes, extent, by_lines, cut)


def fold(runs: Sequence[Run], limit: int | None) -> list[Run | Alike]:
    """Return the runs to draw, and what stands for those that are not."""
    if limit is None or len(runs) <= limit:
        return list(runs)
    items: list[Run | Alike] = []
    for group in _groups(runs):
        items.append(group[0])
        if len(group) > 2:
            items.append(Alike(tuple(group[1:]), same=True))
        else:
            items.extend(group[1:])
    if len(items) <= limit:
        return items
    head, tail = items[: limit // 2], items[-(limit // 2) :]
    hidden = [run for item in items[len(head) : -len(tail)] for run in _runs_of(item)]
    if isinstance(tail[0], Alike):
        # Its runs are like one that is not drawn.
        hidden.extend(tail.pop(0).runs)  # type: ignore[union-attr]
    return [*head, Alike(tuple(hidden), same=False), *tail]


def _runs_of(item: Run | Alike) -> tuple[Run, ...]:
    return (item,) if isinstance(item, Run) else item.runs


def _groups(runs: Sequence[Run]) -> list[list[Run]]:
    groups: list[list[Run]] = []
    previous: object = None
    for run in runs:
        key = (run.outcome, run.phase, run.ready, run.cause.fingerprint if run.cause else None)
        if key != previous or not groups:
            groups.append([])
        groups[-1].append(run)
        previous = key
    return groups


def _extent(lanes: Sequence[Lane]) -> float:
    if not lanes:
        return 1.0
    longest = max(lane.length or 0.0 for lane in lanes)
    start_ups = [lane.start_up for lane in lanes if lane.start_up > 0]
    if not start_ups:
        return longest or 1.0
    needed = min(max(start_ups), OUTLIER * statistics.median(start_ups))
    return longest if longest <= TOO_LONG * needed else needed * SERVING_ROOM


def _unknown(run: Run, length: float) -> Segment:
    """Return what stands for a run that shows no phase."""
    return Segment(Phase.UNKNOWN, 0.0, length, run.first_line, True, run.duration_s)


def _by_lines(run: Run) -> Lane:
    count = run.last_line + 1 - run.first_line
    if not run.phases:
        return Lane(run, (_unknown(run, count),), count, None)
    ends = [span.line for span in run.phases[1:]] + [run.last_line + 1]
    segments = tuple(
        Segment(
            span.phase,
            max(0, span.line - run.first_line),
            max(0, end - run.first_line),
            span.line,
            True,
            span.duration_s,
        )
        for span, end in zip(run.phases, ends, strict=True)
    )
    serving = next((s.start for s in segments if s.phase is Phase.SERVING), None)
    return Lane(run, segments, count, serving if run.ready else None)


def _by_time(run: Run) -> Lane:
    starts = _starts(run)
    length = run.duration_s
    if not run.phases and length is not None:
        return Lane(run, (_unknown(run, length),), length, run.ready_after_s)
    segments: list[Segment] = []
    for place, span in enumerate(run.phases):
        begin = starts[place]
        known = begin is not None
        if begin is None:
            begin = segments[-1].end if segments else 0.0
        after = next((start for start in starts[place + 1 :] if start is not None), length)
        if not known:
            end = begin
        elif span.duration_s is not None:
            end = begin + span.duration_s
        else:
            end = after if after is not None else begin
        segments.append(
            Segment(span.phase, begin, max(begin, end), span.line, known, span.duration_s)
        )
    ready = run.ready_after_s
    if ready is None and run.ready:
        ready = next((s.start for s in segments if s.phase is Phase.SERVING and s.known), None)
    return Lane(run, tuple(segments), length, ready)


def _starts(run: Run) -> list[float | None]:
    """Return when each phase began, in seconds from the run's start, where that is known."""
    starts: list[float | None] = []
    for place, span in enumerate(run.phases):
        if span.started_at is not None and run.started_at is not None:
            starts.append(max(0.0, span.started_at - run.started_at))
        elif place == 0:
            starts.append(0.0)
        elif span.phase is Phase.SERVING and run.ready_after_s is not None:
            starts.append(run.ready_after_s)
        else:
            before, took = starts[-1], run.phases[place - 1].duration_s
            starts.append(None if before is None or took is None else before + took)
    return starts


def ticks(extent: float, most: int, by_lines: bool) -> list[tuple[float, str]]:
    """Return at most about `most` round places on the axis, each with its label."""
    steps = _line_steps(extent) if by_lines else _time_steps(extent)
    step = next((step for step in steps if extent / step <= most), extent or 1.0)
    places = [step * number for number in range(int(extent / step) + 1)]
    if by_lines:
        return [(place, f"{place:.0f}" if place else "0") for place in places]
    return [(place, spoken(place) if place else "0") for place in places]


def _line_steps(extent: float) -> list[float]:
    return [factor * 10**power for power in range(len(f"{extent:.0f}") + 1) for factor in (1, 2, 5)]


def _time_steps(extent: float) -> list[float]:
    days = [86400.0 * factor for factor in _line_steps(extent / 86400)]
    return [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, *map(float, _TIME_STEPS), *days]


def ended_words(run: Run) -> str:
    """Return how the run ended and where, in a few words."""
    where = "" if run.outcome in (Outcome.READY, Outcome.STOPPED) else f" in {run.phase.spoken}"
    return f"{figures.ended(run)}{where}"
