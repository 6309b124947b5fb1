"""The lines that a verdict rests on, as a log that is small enough to paste."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from loopdetect.model import Cause, Report, Run

AROUND: Final = 2
# Of a long crash loop the first and the last runs tell all.
RUNS_AT_EACH_END: Final = 3


def wanted_lines(reports: Sequence[Report]) -> frozenset[int]:
    """Return the numbers of the lines that the reports rest on, with a little round each cause."""
    lines: set[int] = set()
    for report in reports:
        verdict = report.verdict
        lines.update(item.line for item in verdict.evidence)
        lines.update(_around(verdict.cause), _around(verdict.first_cause))
        if verdict.since_line:
            lines.add(verdict.since_line)
        for run in _telling(report.runs):
            lines.update((run.first_line, run.last_line), _around(run.cause))
            lines.update(span.line for span in run.phases)
    lines.discard(0)
    return frozenset(lines)


def excerpt(blocks: Iterable[str], wanted: frozenset[int]) -> Iterator[str]:
    """Yield the wanted lines of a log, and a note wherever some were left out."""
    number = left_out = 0
    for block in blocks:
        for line in _lines(block):
            number += 1
            if number not in wanted:
                left_out += 1
                continue
            yield from _note(left_out)
            left_out = 0
            yield line
    yield from _note(left_out)


def _lines(block: str) -> list[str]:
    lines = [f"{line}\n" for line in block.split("\n")]
    last = lines.pop()[:-1]
    return [*lines, last] if last else lines


def _note(count: int) -> Iterator[str]:
    if count:
        yield f"[... {count} {'line' if count == 1 else 'lines'} left out]\n"


def _telling(runs: Sequence[Run]) -> Sequence[Run]:
    if len(runs) <= 2 * RUNS_AT_EACH_END:
        return runs
    return (*runs[:RUNS_AT_EACH_END], *runs[-RUNS_AT_EACH_END:])


def _around(cause: Cause | None) -> range:
    if cause is None:
        return range(0)
    return range(max(cause.line - AROUND, 1), cause.line + AROUND + 1)
