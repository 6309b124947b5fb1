"""What a log holds besides events, added to its reports: arguments, memory, curves, strange lines."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from loopdetect.cli.known_lines import KnownLines
from loopdetect.model import Report, Run, Unmatched

if TYPE_CHECKING:
    from loopdetect.notable import Notable
    from loopdetect.profiles import Library

UNMATCHED: Final = 20


def annotated(report: Report, notable: Notable, library: Library) -> Report:
    """Return the report with what `notable` found in its stream."""
    from loopdetect.arguments import listed

    rules, stream = KnownLines(library, report.server.name), report.stream
    strange = [e for e in notable.errors(1, report.lines, stream) if not rules.known(e.text)]
    strange.sort(key=lambda item: -item.count)
    runs = [_with_facts(run, notable, stream) for run in report.runs]
    if runs:
        last = runs[-1]
        dumps = notable.dumps(last.first_line, last.last_line, stream)
        runs[-1] = replace(last, arguments=listed(dumps))
    unmatched = tuple(Unmatched(e.line, e.text, e.count) for e in strange[:UNMATCHED])
    return replace(report, runs=tuple(runs), unmatched=unmatched)


def _with_facts(run: Run, notable: Notable, stream: str | None) -> Run:
    first, last = run.first_line, run.last_line
    bars = notable.bars
    progress = run.progress
    if bars is not None:
        progress = tuple(replace(b, points=bars.within(b.label, first, last)) for b in progress)
    memory = notable.free_memory(first, last, stream)
    return replace(run, progress=progress, free_memory_gib=memory)
