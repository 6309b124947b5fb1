"""The timeline as numbers that a template turns into SVG; places are in percent of the width."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from loopdetect.model import Outcome, Phase, Report
from loopdetect.render import figures
from loopdetect.render.clock import readable
from loopdetect.render.duration import spoken
from loopdetect.render.marks import LETTERS
from loopdetect.render.segments import Alike, Chart, Lane, ended_words, ticks

# Room at the right for the mark of the end.
PLOT: Final = 97.0
LEAST: Final = 0.7
STRIP_BARS: Final = 240


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
