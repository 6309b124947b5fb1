"""Small charts as numbers that a template turns into SVG, each in a box of 240 by 72."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from loopdetect.model import Phase, Progress, Report, Run
from loopdetect.render import extras, figures
from loopdetect.render.duration import spoken

MULTIPLE_POINTS: Final = 120
# A trend smaller than this is noise.
TREND_RATIO: Final = 1.2
TREND_SECONDS: Final = 2.0
CURVE_STEPS: Final = 24


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
    values = [
        (run.number, value, whole)
        for run in runs
        for value, whole in [read(run)]
        if value is not None
    ]
    top = max((value for _, value, _ in values), default=0.0)
    if len(values) < 2 or top <= 0:
        return None
    size = -(-len(values) // MULTIPLE_POINTS)
    groups = [values[place : place + size] for place in range(0, len(values), size)]
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
        longest = max(at for at, _ in (*own, *usual))
        if longest <= 0:
            continue
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


def _usual(
    curves: Sequence[Sequence[tuple[float, float]]], top: float
) -> list[tuple[float, float]]:
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
