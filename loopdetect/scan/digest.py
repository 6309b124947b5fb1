"""The few facts of a report that groups are made of. A failure is the last bad run of a stream.

Two failures are the same where server, phase and the run's `fingerprint` are: the hash of reason
and masked text (numbers, addresses, ids and paths left out) that the report holds too. A run that
died without a word has no fingerprint; there the way in which it ended stands for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from loopdetect.model import FAILED, Phase, Report, Run, SourceFile, State
from loopdetect.render.figures import bad_runs, ended

TEXT_MOST: Final = 1000
# What tells of a death where the cause is not in the log.
DEATHS: Final = frozenset({"death", "exit"})


@dataclass(frozen=True, slots=True)
class Failure:
    """How a stream failed last; times are seconds since 1970 on the log's own clock."""

    server: str | None
    title: str
    phase: Phase
    reason: str | None
    fingerprint: str | None
    ending: str
    text: str
    hint: str
    line: int
    clock: str | None = None
    first_at: float | None = None
    last_at: float | None = None

    @property
    def key(self) -> tuple[str, str, str, str]:
        """What failures of one group share."""
        return (
            self.server or "",
            self.phase.value,
            self.fingerprint or "",
            "" if self.fingerprint else self.ending,
        )


@dataclass(frozen=True, slots=True)
class StreamDigest:
    """One report in short; `failure` is None where there was none, or none that is asked for."""

    stream: str | None
    state: State
    runs: int
    crashes: int
    failure: Failure | None


@dataclass(frozen=True, slots=True)
class LogDigest:
    """All streams of one log, and the files that it is spread over."""

    source: str
    streams: tuple[StreamDigest, ...]
    files: tuple[SourceFile, ...] = ()

    def place(self, line: int) -> tuple[str, int]:
        """Return the file that holds a line of the log, and the line's number within the file."""
        for file in reversed(self.files):
            if file.first_line <= line:
                return file.name, line - file.first_line + 1
        return self.source, line


def log_digest(
    source: str, reports: Sequence[Report], states: frozenset[State] | None = None
) -> LogDigest:
    """Return what groups need of a log; failures only of streams in `states`, or of all."""
    return LogDigest(
        source,
        tuple(_stream(report, states) for report in reports),
        next((report.files for report in reports if report.files), ()),
    )


def _stream(report: Report, states: frozenset[State] | None) -> StreamDigest:
    verdict = report.verdict
    wanted = states is None or verdict.state in states
    return StreamDigest(
        report.stream,
        verdict.state,
        max(len(report.runs), 0 if verdict.restarts is None else verdict.restarts + 1),
        verdict.crashes,
        last_failure(report) if wanted else None,
    )


def last_failure(report: Report) -> Failure | None:
    """Return the failure of the last bad run, else that of the verdict, None if there is none."""
    bad = bad_runs(report)
    if bad:
        return _of_run(report, bad)
    return _of_verdict(report) if report.verdict.state in FAILED else None


def _of_run(report: Report, bad: Sequence[Run]) -> Failure:
    last = bad[-1]
    line, text = _place(report, last)
    same = [run for run in bad if (run.phase, run.fingerprint) == (last.phase, last.fingerprint)]
    times = [at for run in same if (at := _at(run)) is not None]
    return Failure(
        server=report.server.name,
        title=report.server.title,
        phase=last.phase,
        reason=last.cause.reason if last.cause else None,
        fingerprint=last.fingerprint,
        ending=ended(last),
        text=text[:TEXT_MOST],
        hint=last.cause.hint if last.cause else "",
        line=line,
        clock=report.clock,
        first_at=min(times, default=None),
        last_at=max(times, default=None),
    )


def _place(report: Report, run: Run) -> tuple[int, str]:
    """Return the line that tells of the failure, and its text."""
    if run.cause:
        return run.cause.line, run.cause.text
    for evidence in reversed(report.verdict.evidence):
        if evidence.kind in DEATHS and run.first_line <= evidence.line <= run.last_line:
            return evidence.line, evidence.text
    return run.last_line, ""


def _at(run: Run) -> float | None:
    return run.started_at if run.ended_at is None else run.ended_at


def _of_verdict(report: Report) -> Failure:
    """A polling transcript may show a crash loop without one run that can be told."""
    verdict = report.verdict
    cause = verdict.cause
    shown = verdict.evidence[-1].line if verdict.evidence else 1
    return Failure(
        server=report.server.name,
        title=report.server.title,
        phase=verdict.phase,
        reason=cause.reason if cause else None,
        fingerprint=cause.fingerprint if cause else None,
        ending=f"{verdict.state.value} ({verdict.certainty.value})",
        text=cause.text[:TEXT_MOST] if cause else "",
        hint=cause.hint if cause else "",
        line=cause.line if cause else verdict.since_line or shown,
        clock=report.clock,
        first_at=verdict.since,
        last_at=verdict.since,
    )
