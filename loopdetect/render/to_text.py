"""The report for a person at a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from loopdetect.model import Cause, Report
from loopdetect.render import figures, run_table
from loopdetect.render.clock import column
from loopdetect.render.duration import spoken
from loopdetect.render.escape import visible
from loopdetect.render.options import RenderOptions
from loopdetect.render.paint import BOLD, DIM, OUTCOME_COLORS, RED, STATE_COLORS, Paint, painter
from loopdetect.render.timeline import timeline
from loopdetect.render.width import columns, cut, wrap

EVIDENCE_SHOWN: Final = 12
# A line of a log can be megabytes long; nobody reads more than this of it.
UNCUT: Final = 4000


def to_text(reports: Sequence[Report], options: RenderOptions) -> str:
    """Return one block of text a report."""
    gap = "\n" if options.detail < 0 else "\n\n"
    blocks = ("\n".join(_block(report, options)) for report in reports)
    return gap.join(blocks) + "\n" if reports else ""


def _block(report: Report, options: RenderOptions) -> Iterator[str]:
    paint, width = painter(options.color), options.width
    yield headline(report, paint, width)
    if options.detail < 0:
        return
    yield from wrap(visible(report.verdict.summary), width, "  ")
    loop = figures.loop_sentence(report)
    if loop:
        yield from wrap(loop, width, "  ")
    yield from timeline(report, options)
    yield from _runs(report, options, paint)
    yield from _timings(report, paint)
    if options.detail > 0:
        yield from _bars(report, width, paint)
    yield from _causes(report, width, paint)
    yield from _evidence(report, options, paint)
    for note in report.notes:
        yield ""
        yield from wrap(f"Note: {visible(note)}", width)


def headline(report: Report, paint: Paint, width: int | None = None) -> str:
    """Return source, server, state, certainty, since when and how many starts in one line."""
    verdict = report.verdict
    state = paint(verdict.state.value, STATE_COLORS[verdict.state])
    transcript = "seen in a transcript" if report.kind == "transcript" else None
    facts = [f"{state} ({verdict.certainty.value})", figures.since(report), figures.starts(report)]
    said = ", ".join(fact for fact in (*facts, transcript) if fact)
    source = cut(figures.source_name(report), width and width // 2)
    return f"{paint(source, BOLD)}: {figures.server_name(report)}: {said}"


def _runs(report: Report, options: RenderOptions, paint: Paint) -> Iterator[str]:
    if not report.runs:
        return
    fold = figures.fold(report.runs, everything=options.detail > 0)
    cells: dict[str, list[str]] | None = run_table.table(fold)
    lines: list[str] = []
    while cells:
        lines = grid(cells, run_table.RIGHT)
        if options.width is None or max(map(columns, lines)) + 2 <= options.width:
            break
        cells = run_table.narrower(cells)
    yield ""
    yield paint("Runs", BOLD)
    yield "  " + paint(lines[0], DIM)
    shown = (*fold.head, *fold.tail)
    for row, (run, line) in enumerate(zip(shown, lines[1:], strict=True), start=1):
        ending = figures.ended(run)
        before, found, after = line.rpartition(ending)
        painted = paint(ending, OUTCOME_COLORS[run.outcome]) if found else ""
        yield f"  {before}{painted}{after}".rstrip()
        if fold.hidden and row == len(fold.head):
            yield from wrap(figures.folded(fold.hidden), options.width, "  ")


def _timings(report: Report, paint: Paint) -> Iterator[str]:
    rows = figures.timings(report)
    if not rows:
        return
    cells = {
        "phase": [row.phase.value for row in rows],
        "line": [str(row.line) for row in rows],
        "started": column(row.started_at for row in rows),
        "took": [spoken(row.duration_s) for row in rows],
        "earlier runs": [
            f"{spoken(row.median_s)} (median of {row.earlier})" if row.earlier else "-"
            for row in rows
        ],
    }
    told = {name: cell for name, cell in cells.items() if set(cell) != {"-"}}
    lines = grid(told, frozenset({"line"}))
    yield ""
    which = (
        "Phases" if len(report.runs) == 1 else f"Phases of run {report.runs[-1].number}, the last"
    )
    yield paint(which, BOLD)
    yield "  " + paint(lines[0], DIM)
    yield from (f"  {line}".rstrip() for line in lines[1:])


def _bars(report: Report, width: int | None, paint: Paint) -> Iterator[str]:
    bars = report.runs[-1].progress if report.runs else ()
    if not bars:
        return
    yield ""
    yield paint("Progress of the last run", BOLD)
    for progress in bars:
        where = f"lines {progress.first_line}-{progress.last_line}"
        took = f", {spoken(progress.elapsed_s)}" if progress.elapsed_s is not None else ""
        left = f", {spoken(progress.remaining_s)} left" if progress.remaining_s else ""
        label = visible(progress.label) or "(no label)"
        yield cut(f"  {label}: {figures.bar(progress)}{took}{left} ({where})", width)


def _causes(report: Report, width: int | None, paint: Paint) -> Iterator[str]:
    verdict = report.verdict
    if verdict.cause:
        yield from _cause("Cause", report, verdict.cause, width, paint)
    first = verdict.first_cause
    if first and (verdict.cause is None or first.fingerprint != verdict.cause.fingerprint):
        yield from _cause("The first failure was another one", report, first, width, paint)


def _cause(
    title: str, report: Report, cause: Cause, width: int | None, paint: Paint
) -> Iterator[str]:
    yield ""
    facts = f"line {cause.line}, {visible(cause.reason)}, {cause.certainty.value}"
    yield f"{paint(title, BOLD)} ({facts})"
    number = str(cause.line)
    blank = " " * len(number)
    for text in cause.before:
        yield _quoted(f"    {blank} | ", text, width, paint, DIM)
    for place, text in enumerate(cause.text.split("\n")):
        yield _quoted(f"  > {number if place == 0 else blank} | ", text, width, paint, RED)
    for text in cause.after:
        yield _quoted(f"    {blank} | ", text, width, paint, DIM)
    again = figures.recurrence(report, cause)
    if again:
        yield f"  {again}"
    if cause.hint:
        yield from wrap(f"Hint: {visible(cause.hint)}", width, "  ")


def _quoted(gutter: str, text: str, width: int | None, paint: Paint, code: str) -> str:
    room = UNCUT if width is None else max(width - len(gutter), 20)
    return gutter + paint(cut(visible(text.rstrip()), room), code)


def _evidence(report: Report, options: RenderOptions, paint: Paint) -> Iterator[str]:
    evidence = report.verdict.evidence
    if not evidence:
        return
    shown = evidence if options.detail > 0 else evidence[:EVIDENCE_SHOWN]
    number = max(len(str(item.line)) for item in shown)
    kind = max(len(item.kind) for item in shown)
    yield ""
    yield paint("Evidence", BOLD)
    for item in shown:
        gutter = f"  line {item.line:>{number}}  {item.kind:<{kind}}  "
        yield _quoted(gutter, " ".join(item.text.split()), options.width, paint, DIM)
    if len(shown) < len(evidence):
        yield f"  … {len(evidence) - len(shown)} more (-v shows them)"


def grid(cells: dict[str, list[str]], right: frozenset[str]) -> list[str]:
    """Return a heading line and one line a row, columns aligned."""
    from tabulate import tabulate

    align = ["right" if name in right else "left" for name in cells]
    rows = [list(cells), *zip(*cells.values(), strict=True)]
    text = tabulate(rows, tablefmt="plain", colalign=align, disable_numparse=True)
    return text.split("\n")
