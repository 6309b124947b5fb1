"""The report for a pull request, a chat or a job summary."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from loopdetect.model import Cause, Report
from loopdetect.render import figures, run_table
from loopdetect.render.duration import spoken
from loopdetect.render.escape import code_span, markdown, visible
from loopdetect.render.options import RenderOptions
from loopdetect.render.width import cut

LINE_CUT: Final = 400


def to_markdown(reports: Sequence[Report], options: RenderOptions) -> str:
    """Return one section a report."""
    return "\n".join("\n".join(_section(report, options)) + "\n" for report in reports)


def _section(report: Report, options: RenderOptions) -> Iterator[str]:
    verdict = report.verdict
    facts = [verdict.certainty.value, figures.since(report), figures.starts(report)]
    yield f"## {code_span(figures.source_name(report))}: {verdict.state.value}"
    yield ""
    yield f"**{markdown(figures.server_name(report))}**: " + ", ".join(f for f in facts if f)
    yield ""
    yield markdown(verdict.summary)
    loop = figures.loop_sentence(report)
    if loop:
        yield ""
        yield markdown(loop)
    if options.detail < 0:
        return
    yield from _runs(report, options)
    yield from _timings(report)
    if verdict.cause:
        yield from _cause("Cause", report, verdict.cause)
    first = verdict.first_cause
    if first and (verdict.cause is None or first.fingerprint != verdict.cause.fingerprint):
        yield from _cause("The first failure was another one", report, first)
    yield from _evidence(report)
    for note in report.notes:
        yield ""
        yield f"> {markdown(note)}"


def _runs(report: Report, options: RenderOptions) -> Iterator[str]:
    if not report.runs:
        return
    fold = figures.fold(report.runs, everything=options.detail > 0)
    cells = run_table.table(fold)
    rows = _rows(cells)
    yield ""
    yield "### Runs"
    yield ""
    yield from rows[: 2 + len(fold.head)]
    if fold.hidden:
        yield f"| {markdown(figures.folded(fold.hidden))} |" + " |" * (len(cells) - 1)
    yield from rows[2 + len(fold.head) :]


def _timings(report: Report) -> Iterator[str]:
    timings = figures.timings(report)
    if not timings:
        return
    yield ""
    yield f"### Phases of run {report.runs[-1].number}"
    yield ""
    yield from _rows(
        {
            "phase": [row.phase.value for row in timings],
            "line": [str(row.line) for row in timings],
            "took": [spoken(row.duration_s) for row in timings],
            "median of earlier runs": [spoken(row.median_s) for row in timings],
        }
    )


def _rows(cells: dict[str, list[str]]) -> list[str]:
    head = [f"| {' | '.join(cells)} |", "|" + " --- |" * len(cells)]
    body = zip(*cells.values(), strict=True)
    return head + [f"| {' | '.join(map(markdown, row))} |" for row in body]


def _cause(title: str, report: Report, cause: Cause) -> Iterator[str]:
    lines = [*cause.before, *cause.text.split("\n"), *cause.after]
    shown = [cut(visible(line.rstrip()), LINE_CUT) for line in lines]
    fence = "```"
    while any(fence in line for line in shown):
        fence += "`"
    yield ""
    facts = f"line {cause.line}, {code_span(cause.reason)}, {cause.certainty.value}"
    yield f"### {title}: {facts}"
    yield ""
    yield f"{fence}text"
    yield from shown
    yield fence
    again = figures.recurrence(report, cause)
    if again:
        yield ""
        yield again
    if cause.hint:
        yield ""
        yield f"**Hint:** {markdown(cause.hint)}"


def _evidence(report: Report) -> Iterator[str]:
    if not report.verdict.evidence:
        return
    yield ""
    yield "### Evidence"
    yield ""
    for item in report.verdict.evidence:
        text = code_span(cut(" ".join(item.text.split()), LINE_CUT))
        yield f"- line {item.line}, {markdown(item.kind)}: {text}"
