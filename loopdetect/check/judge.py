"""Reports as findings: what differs from an expectation, or from a healthy server."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from loopdetect.core.fingerprint import fingerprint
from loopdetect.expectation import Expectation, Mismatch, compare, state_line
from loopdetect.finding import Finding, Level
from loopdetect.model import FAILED, Report, State

BAD: Final = FAILED | {State.STALLED}
UNKNOWN_HINT: Final = (
    'Give a log of an inference server, or expect it: state = "unknown" beside the file.'
)


def judge(
    path: str,
    reports: Sequence[Report],
    expectation: Expectation | None,
    states: frozenset[State] | None,
) -> tuple[Finding, ...]:
    """Return what is wrong with one log.

    Its expectation decides, else the `states` that are expected, else that it is not bad.
    """
    if expectation is None:
        return tuple(
            _of_state(path, report, _said(states)) for report in reports if _wrong(report, states)
        )
    by_stream = {report.stream: report for report in reports}
    mismatches = compare(expectation, reports)
    broken = {item.stream for item in mismatches if item.key == "state"}
    found: list[Finding] = []
    for item in mismatches:
        report = by_stream.get(item.stream)
        if item.key == "state" and report is not None:
            found.append(_of_state(path, report, item.expected))
        elif item.stream not in broken:
            found.append(_of_key(path, item))
    return tuple(found)


def state_names(reports: Iterable[Report]) -> tuple[str, ...]:
    """Return the state of each stream."""
    return tuple(report.verdict.state.value for report in reports)


def _wrong(report: Report, states: frozenset[State] | None) -> bool:
    state = report.verdict.state
    if states is None:
        return state in BAD or state is State.UNKNOWN
    return state not in states


def _said(states: frozenset[State] | None) -> str | None:
    return " or ".join(state.value for state in State if state in states) if states else None


def _of_state(path: str, report: Report, expected: str | None) -> Finding:
    verdict = report.verdict
    state = verdict.state
    cause = verdict.cause if state in BAD else None
    reason = cause.reason if cause else state.value
    where = f" ({report.stream})" if report.stream else ""
    wanted = f", expected {expected}" if expected else ""
    return Finding(
        path=path,
        line=state_line(report),
        reason=reason,
        message=f"{state.value}{wanted}{where}: {verdict.summary}",
        fingerprint=cause.fingerprint if cause else fingerprint(f"state {state.value}", ""),
        stream=report.stream,
        title=f"{report.server.title or 'server'} is {state.value}",
        hint=cause.hint if cause else UNKNOWN_HINT if state is State.UNKNOWN else "",
        level=Level.WARNING if state is State.UNKNOWN else Level.ERROR,
    )


def _of_key(path: str, item: Mismatch) -> Finding:
    where = f" ({item.stream})" if item.stream else ""
    reason = f"unexpected-{item.key.replace('_', '-')}"
    return Finding(
        path=path,
        line=item.line,
        reason=reason,
        message=f"{item.message}{where}",
        fingerprint=fingerprint(f"{reason} {item.expected} {item.actual}", ""),
        stream=item.stream,
        title="not what the expectation says",
        hint="If the log is right, refresh its expectation: loopdetect check --update LOG.",
    )
