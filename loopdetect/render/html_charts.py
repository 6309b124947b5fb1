"""Charts as numbers that a template turns into SVG; places are in percent of the width."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from loopdetect.model import Outcome, Phase, Progress, Report, Run
from loopdetect.render import extras, figures
from loopdetect.render.clock import readable
from loopdetect.render.duration import spoken
from loopdetect.render.marks import LETTERS
from loopdetect.render.segments import Alike, Chart, Lane, ended_words, ticks

# Room at the right for the mark of the end.
PLOT: Final = 97.0
LEAST: Final = 0.7
MULTIPLE_POINTS: Final = 120
STRIP_BARS: Final = 240
# A trend smaller than this is noise.
TREND_RATIO: Final = 1.2
TREND_SECONDS: Final = 2.0
CURVE_STEPS: Final = 24


@dataclass(frozen=True, slots=True)
class Block:
    """One phase of one lane."""

    phase: str
    letter: str
    x: float
    width: float
    label: str


@dataclass(frozen=True, slots=True)
class Row:
    """One lane of the timeline, or words for runs that are not drawn."""

    label: str
    words: str
    blocks: tuple[Block, ...] = ()
    ready_x: float | None = None
    end_x: float | None = None
    outcome: str = ""
    cut: bool = False


@dataclass(frozen=True, slots=True)
class Timeline:
    """Everything that the timeline shows."""

    rows: tuple[Row, ...]
    ticks: tuple[tuple[float, str], ...]
    by_lines: bool
    cut: bool
    phases: tuple[tuple[str, str], ...]
    outcomes: tuple[str, ...]
    ready: bool


def timeline(picture: Chart) -> Timeline:
    """Return the timeline of a chart."""
    drawn = picture.drawn
    used = {segment.phase for lane in drawn for segment in lane.segments}
    ends = {lane.run.outcome for lane in drawn}
    return Timeline(
        rows=tuple(_row(lane, picture) for lane in picture.lanes),
        ticks=tuple(
            (at / picture.extent * PLOT, label)
            for at, label in ticks(picture.extent, 6, picture.by_lines)
        ),
        by_lines=picture.by_lines,
        cut=picture.cut,
        phases=tuple((phase.value, LETTERS[phase]) for phase in Phase if phase in used),
        outcomes=tuple(end.value for end in Outcome if end in ends),
        ready=any(lane.ready_at is not None for lane in drawn),
    )


def _row(lane: Lane | Alike, picture: Chart) -> Row:
    if isinstance(lane, Alike):
        return Row(f"runs {lane.label}" if len(lane.runs) > 1 else f"run {lane.label}", lane.words)
    extent, run = picture.extent, lane.run
    shown = [segment for segment in lane.segments if segment.start <= extent] or lane.segments[:1]
    places = _spread([segment.start / extent * PLOT for segment in shown])
    blocks = []
    for number, segment in enumerate(shown):
        x = places[number]
        last = number + 1 == len(shown)
        end = min(segment.end / extent * PLOT, PLOT) if last else places[number + 1]
        width = max(end - x, LEAST)
        if not last and segment.known:
            width = max(min(width, segment.end / extent * PLOT - x), LEAST)
        blocks.append(
            Block(
                segment.phase.value,
                LETTERS[segment.phase],
                x,
                width if segment.known else LEAST,
                f"run {run.number}, {segment.phase.value}: "
                f"{_took(segment.duration_s, segment.known)}, from line {segment.line}",
            )
        )
    end = lane.length if lane.length is not None else (shown[-1].end if shown else 0.0)
    cut = end > extent * 1.001
    edge = max((block.x + block.width for block in blocks), default=0.0)
    took = f"{lane.length:.0f} lines" if picture.by_lines else spoken(run.duration_s)
    ready_x = None if lane.ready_at is None else min(lane.ready_at / extent * PLOT, PLOT)
    return Row(
        label=f"run {run.number}",
        words=f"{ended_words(run)}{', ' + took if took != '-' else ''}",
        blocks=tuple(blocks),
        ready_x=ready_x,
        end_x=PLOT if cut else max(edge, end / extent * PLOT),
        outcome=run.outcome.value,
        cut=cut,
    )


def _took(seconds: float | None, known: bool) -> str:
    if seconds is not None:
        return spoken(seconds)
    return "its length is not in the log" if known else "its time is not in the log"


def _spread(places: Sequence[float]) -> list[float]:
    """Move places apart, so that even the shortest phase can be seen."""
    spread: list[float] = []
    for place in places:
        spread.append(max(place, spread[-1] + LEAST if spread else 0.0))
    limit = PLOT
    for number in range(len(spread) - 1, -1, -1):
        spread[number] = min(spread[number], limit - LEAST)
        limit = spread[number]
    return spread


@dataclass(frozen=True, slots=True)
class Strip:
    """The runs on the log's own clock."""

    bars: tuple[tuple[float, float, str, str], ...]
    first: str
    last: str
    label: str


def strip(report: Report) -> Strip | None:
    """Return when the runs happened, None where the log does not tell or one run is all."""
    known = [
        (run, run.started_at, run.started_at + run.duration_s)
        for run in report.runs
        if run.started_at is not None and run.duration_s is not None
    ]
    if len(known) < 2:
        return None
    start, end = known[0][1], max(until for _, _, until in known)
    if end <= start:
        return None
    size = -(-len(known) // STRIP_BARS)
    bars = []
    for place in range(0, len(known), size):
        group = known[place : place + size]
        x = (group[0][1] - start) / (end - start) * 100
        until = (max(item[2] for item in group) - start) / (end - start) * 100
        worst = next((run for run, _, _ in group if run.outcome in figures.BAD), group[-1][0])
        numbers = f"run {group[0][0].number}"
        if len(group) > 1:
            numbers = f"runs {group[0][0].number}–{group[-1][0].number}"
        at = readable(group[0][1], report.clock) or ""
        words = f"{numbers}, from {at}: {ended_words(worst)}"
        bars.append((x, max(until - x, 0.25), worst.outcome.value, words))
    first, last = readable(start, report.clock) or "", readable(end, report.clock) or ""
    label = f"{figures.counted(len(known), 'run')} from {first} to {last}"
    return Strip(tuple(bars), first, last, label)


@dataclass(frozen=True, slots=True)
class Multiple:
    """One number over the runs, as points in a box of 240 by 72."""

    title: str
    line: str
    points: tuple[tuple[float, float, bool, str], ...]
    low: str
    high: str
    words: str
    warn: bool


def multiples(report: Report) -> tuple[Multiple, ...]:
    """Return time to ready, time per phase, and free memory, over the runs."""
    runs = report.runs
    found = [_multiple("time to ready", runs, lambda run: (run.ready_after_s, True), spoken)]
    for phase in Phase:
        if phase is not Phase.SERVING:
            found.append(_multiple(phase.value, runs, _duration_in(phase), spoken))
    found.append(
        _multiple(
            "free memory at the start",
            runs,
            lambda run: (extras.free_memory(run), True),
            lambda value: f"{value:.3g} GiB",
            shrinks=True,
        )
    )
    return tuple(item for item in found if item is not None)


def _duration_in(phase: Phase) -> Callable[[Run], tuple[float | None, bool]]:
    def read(run: Run) -> tuple[float | None, bool]:
        span = next((span for span in run.phases if span.phase is phase), None)
        if span is None:
            return None, True
        return span.duration_s, not (run.outcome in figures.BAD and span is run.phases[-1])

    return read


def _multiple(
    title: str,
    runs: Sequence[Run],
    read: Callable[[Run], tuple[float | None, bool]],
    say: Callable[[float], str],
    shrinks: bool = False,
) -> Multiple | None:
    values = [(run.number, value, whole) for run in runs for value, whole in [read(run)] if value is not None]
    if len(values) < 2:
        return None
    size = -(-len(values) // MULTIPLE_POINTS)
    groups = [values[place : place + size] for place in range(0, len(values), size)]
    top = max(value for _, value, _ in values) or 1.0
    points = []
    for number, group in enumerate(groups):
        usual = statistics.median(value for _, value, _ in group)
        runs_said = f"run {group[0][0]}"
        if len(group) > 1:
            runs_said = f"runs {group[0][0]}–{group[-1][0]} (median)"
        x = 6 + number * 228 / max(len(groups) - 1, 1)
        whole = any(item[2] for item in group)
        died = "" if whole else ", the run died in it"
        points.append((x, 66 - usual / top * 60, whole, f"{runs_said}: {say(usual)}{died}"))
    complete = [value for _, value, whole in values if whole]
    words, warn = _trend(complete, say, shrinks)
    return Multiple(
        title,
        " ".join(f"{x:.1f},{y:.1f}" for x, y, _, _ in points),
        tuple(points),
        say(min(value for _, value, _ in values)),
        say(top),
        words if complete else f"died in it each time, after {say(values[-1][1])} in the last run",
        warn,
    )


def _trend(values: Sequence[float], say: Callable[[float], str], shrinks: bool) -> tuple[str, bool]:
    """Return what the values do over time, and whether somebody should look."""
    if len(values) < 2:
        return (f"{say(values[0])} in the one run that got through" if values else ""), False
    third = max(len(values) // 3, 1)
    early, late = statistics.median(values[:third]), statistics.median(values[-third:])
    low, high = min(early, late), max(early, late)
    steady = high < low * TREND_RATIO or (not shrinks and high - low < TREND_SECONDS)
    if steady:
        return f"steady, {say(statistics.median(values))} (median)", False
    grows = late > early
    word = ("grows" if grows else "shrinks") if shrinks else ("slower" if grows else "faster")
    return f"{word}: {say(early)} at first, {say(late)} lately", grows is not shrinks


@dataclass(frozen=True, slots=True)
class Curve:
    """One bar of the last run as a line in a box of 240 by 72, beside the usual one."""

    title: str
    line: str
    usual: str | None
    words: str
    longest: str


def curves(report: Report) -> tuple[Curve, ...]:
    """Return the bars of the last run that have points."""
    if not report.runs:
        return ()
    found = []
    for bar in report.runs[-1].progress:
        own = extras.points(bar)
        top = bar.total or max((done for _, done in own), default=0.0)
        if len(own) < 2 or top <= 0:
            continue
        earlier = [
            extras.points(other)
            for run in report.runs[:-1]
            for other in run.progress
            if other.label == bar.label and len(extras.points(other)) > 1
        ]
        usual = _usual(earlier, top)
        longest = max([at for at, _ in own] + [at for at, _ in usual]) or 1.0
        end = usual[-1][0] if usual else None
        beside = f"; earlier runs (median of {len(earlier)}): {spoken(end)}" if usual else ""
        found.append(
            Curve(
                bar.label or "(no label)",
                _polyline(own, longest, top),
                _polyline(usual, longest, top) if usual else None,
                f"{figures.bar(bar)} after {spoken(own[-1][0])}{beside}",
                spoken(longest),
            )
        )
    return tuple(found)


def _polyline(points: Sequence[tuple[float, float]], longest: float, top: float) -> str:
    return " ".join(
        f"{6 + at / longest * 228:.1f},{66 - min(done / top, 1) * 60:.1f}" for at, done in points
    )


def _usual(curves: Sequence[Sequence[tuple[float, float]]], top: float) -> list[tuple[float, float]]:
    """Return the median time at which each share of the steps was done."""
    usual = []
    for step in range(CURVE_STEPS + 1):
        done = top * step / CURVE_STEPS
        times = [at for at in (_time_at(curve, done) for curve in curves) if at is not None]
        if times and len(times) * 2 >= len(curves):
            usual.append((statistics.median(times), done))
    return usual if len(usual) > 1 else []


def _time_at(curve: Sequence[tuple[float, float]], done: float) -> float | None:
    before: tuple[float, float] | None = None
    for at, so_far in curve:
        if so_far >= done:
            if before is None or so_far == before[1]:
                return at
            share = (done - before[1]) / (so_far - before[1])
            return before[0] + share * (at - before[0])
        before = (at, so_far)
    return None


@dataclass(frozen=True, slots=True)
class BarRow:
    """One progress bar of the last run, beside the earlier ones."""

    label: str
    done: str
    share: float | None
    took: str
    usual: str
    lines: str


def bar_rows(report: Report) -> tuple[BarRow, ...]:
    """Return the bars of the last run."""
    if not report.runs:
        return ()
    earlier: dict[str, list[float]] = {}
    for run in report.runs[:-1]:
        for bar in run.progress:
            if bar.elapsed_s is not None and bar.finished:
                earlier.setdefault(bar.label, []).append(bar.elapsed_s)
    return tuple(_bar_row(bar, earlier.get(bar.label, [])) for bar in report.runs[-1].progress)


def _bar_row(bar: Progress, earlier: Sequence[float]) -> BarRow:
    usual = figures.median(earlier)
    return BarRow(
        bar.label or "(no label)",
        figures.bar(bar),
        min(bar.done / bar.total, 1.0) * 100 if bar.total else None,
        spoken(bar.elapsed_s),
        f"{spoken(usual)} (median of {len(earlier)})" if usual is not None else "-",
        f"{bar.first_line}–{bar.last_line}",
    )
