"""The report as one page for a browser, a phone or paper."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from loopdetect.model import Cause, Report, Run, State
from loopdetect.render import extras, figures, html_charts, html_timeline, run_table
from loopdetect.render.html_page import page
from loopdetect.render.options import RenderOptions
from loopdetect.render.reckoning import reckoning
from loopdetect.render.segments import chart, worth_drawing

LANES: Final = 48
# Rows of the table of runs, shared out where there are many reports.
ROWS: Final = 240
SECTIONS: Final = 100
OVERVIEW: Final = 2000
UNMATCHED: Final = 20
EVIDENCE: Final = 24
# Which report somebody should look at first.
WORST: Final = MappingProxyType(
    {
        state: rank
        for rank, state in enumerate(
            (
                State.CRASH_LOOPING,
                State.CRASHED,
                State.STALLED,
                State.UNKNOWN,
                State.LOADING,
                State.STOPPED,
                State.READY,
            )
        )
    }
)


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell of a sortable table; `key` is what it is sorted by."""

    text: str
    key: str


@dataclass(frozen=True, slots=True)
class Table:
    """A sortable table, with words for the rows that are not in it."""

    headings: tuple[tuple[str, bool], ...]
    rows: tuple[tuple[Cell, ...], ...]
    folded: str | None


@dataclass(frozen=True, slots=True)
class Section:
    """All that the page says of one report."""

    number: int
    report: Report
    source: str
    server: str
    facts: tuple[str, ...]
    loop: str | None
    causes: tuple[tuple[str, Cause, str | None], ...]
    timeline: html_timeline.Timeline | None
    strip: html_timeline.Strip | None
    multiples: tuple[html_charts.Multiple, ...]
    curves: tuple[html_charts.Curve, ...]
    bars: tuple[html_charts.BarRow, ...]
    timings: tuple[figures.PhaseTiming, ...]
    runs: Table | None
    evidence_left: int
    unmatched: tuple[extras.Unmatched, ...]
    arguments: tuple[tuple[str, str], ...]
    reckoning: tuple[tuple[str, str], ...]


def to_html(reports: Sequence[Report], options: RenderOptions) -> str:
    """Return one page for all reports, the worst first."""
    ranked = sorted(reports, key=lambda report: WORST[report.verdict.state])
    share = max(len(ranked[:SECTIONS]), 1)
    sections = [
        _section(number, report, share) for number, report in enumerate(ranked[:SECTIONS], 1)
    ]
    listed = [
        (number, report, figures.source_name(report), figures.server_name(report))
        for number, report in enumerate(ranked[:OVERVIEW], 1)
    ]
    return page(
        "report.html.j2",
        sections=sections,
        listed=listed if len(ranked) > 1 else [],
        count=len(ranked),
        unlisted=len(ranked) - len(listed),
        title=_title(ranked),
        logs=figures.counted(len(ranked), "log"),
        evidence_shown=EVIDENCE,
        NONE="-",
    )


def _title(ranked: Sequence[Report]) -> str:
    if len(ranked) == 1:
        report = ranked[0]
        return f"{figures.source_name(report)}: {report.verdict.state.value}"
    return figures.counted(len(ranked), "log")


def _section(number: int, report: Report, share: int) -> Section:
    runs = report.runs
    lanes = max(LANES // share, 8)
    drawn = worth_drawing(runs)
    facts = (
        f"certainty: {report.verdict.certainty.value}",
        figures.since(report),
        figures.starts(report),
        figures.counted(report.lines, "line") if report.lines else None,
        "seen in a transcript" if report.kind == "transcript" else None,
    )
    unmatched = extras.unmatched(report)
    return Section(
        number=number,
        report=report,
        source=figures.source_name(report),
        server=figures.server_name(report),
        facts=tuple(fact for fact in facts if fact),
        loop=figures.loop_sentence(report),
        causes=_causes(report),
        timeline=html_timeline.timeline(chart(runs, lanes)) if drawn else None,
        strip=html_timeline.strip(report),
        multiples=html_charts.multiples(report),
        curves=html_charts.curves(report),
        bars=html_charts.bar_rows(report),
        timings=figures.timings(report),
        runs=_runs(runs, max(ROWS // share, 10)) if runs else None,
        evidence_left=max(len(report.verdict.evidence) - EVIDENCE, 0),
        unmatched=unmatched[:UNMATCHED],
        arguments=extras.arguments(runs[-1]) if runs else (),
        reckoning=tuple(reckoning(report)),
    )


def _causes(report: Report) -> tuple[tuple[str, Cause, str | None], ...]:
    verdict = report.verdict
    found: list[tuple[str, Cause, str | None]] = []
    if verdict.cause:
        found.append(("Cause", verdict.cause, figures.recurrence(report, verdict.cause)))
    first = verdict.first_cause
    if first and (verdict.cause is None or first.fingerprint != verdict.cause.fingerprint):
        found.append(
            ("The first failure was another one", first, figures.recurrence(report, first))
        )
    return tuple(found)


def _runs(runs: Sequence[Run], limit: int) -> Table:
    fold = figures.Fold(tuple(runs), (), ())
    if len(runs) > limit:
        half = limit // 2
        fold = figures.Fold(tuple(runs[:half]), tuple(runs[half:-half]), tuple(runs[-half:]))
    shown = (*fold.head, *fold.tail)
    cells = run_table.table(fold)
    keys = {name: [_key(name, run) for run in shown] for name in cells}
    rows = tuple(
        tuple(Cell(cells[name][place], keys[name][place]) for name in cells)
        for place in range(len(shown))
    )
    folded = None
    if fold.hidden:
        folded = (
            f"The first {len(fold.head)} and the last {len(fold.tail)} of {len(runs)} runs. "
            f"Between them: {figures.folded(fold.hidden).removeprefix('… ')}."
        )
    return Table(tuple((name, name in NUMERIC) for name in cells), rows, folded)


NUMERIC: Final = frozenset({"run", "lines", "started", "ready after", "lasted"})


def _key(name: str, run: Run) -> str:
    """Return what a cell is sorted by; empty where nothing is known."""
    values = {
        "run": run.number,
        "lines": run.first_line,
        "started": run.started_at,
        "ready after": run.ready_after_s,
        "lasted": run.duration_s,
    }
    if name in NUMERIC:
        value = values[name]
        return "" if value is None else f"{value:.3f}"
    if name == "cause":
        return run.cause.reason if run.cause else ""
    return run_table.COLUMNS[name]([run])[0]
