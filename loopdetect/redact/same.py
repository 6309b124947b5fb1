"""Whether two logs are judged alike, whatever names stand in them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import MappingProxyType
from typing import Final

from loopdetect.model import Cause, Report


def _cause(cause: Cause | None) -> tuple[int, str] | None:
    return (cause.line, cause.reason) if cause else None


# What is compared, by its name for people.
FACTS: Final = MappingProxyType[str, Callable[[Report], object]](
    {
        "server": lambda report: (report.server.name, report.server.version),
        "lines": lambda report: report.lines,
        "kind": lambda report: report.kind,
        "state": lambda report: report.verdict.state,
        "certainty": lambda report: report.verdict.certainty,
        "restarts": lambda report: report.verdict.restarts,
        "crashes": lambda report: report.verdict.crashes,
        "ready seen": lambda report: report.verdict.ready_seen,
        "phase": lambda report: report.verdict.phase,
        "cause": lambda report: _cause(report.verdict.cause),
        "first cause": lambda report: _cause(report.verdict.first_cause),
        "runs": lambda report: [
            (run.first_line, run.last_line, run.phase, run.outcome, run.ready, _cause(run.cause))
            for run in report.runs
        ],
    }
)


def changed(before: Sequence[Report], after: Sequence[Report]) -> list[str]:
    """Return the names of the facts in which the reports of two logs differ."""
    if len(before) != len(after):
        return ["streams"]
    return [
        name
        for name, fact in FACTS.items()
        if any(fact(old) != fact(new) for old, new in zip(before, after, strict=True))
    ]
