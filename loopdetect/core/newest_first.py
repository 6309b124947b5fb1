"""Logs that a viewer printed newest line first: noticed, turned round, line numbers kept true."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

from loopdetect.core.envelope import ANSI
from loopdetect.core.timestamp import Frame, parse
from loopdetect.model import Cause, Evidence, Report, Run

MAX_TURNED: Final = 64 * 1024 * 1024
ENOUGH: Final = 4
NOTE: Final = "The log is newest line first; it was read from its end."
_DATED: Final = re.compile(
    r"\d{4}[-/]\d\d[-/]\d\d|\d\d-\d\d \d\d:|\d\d/\d\d/\d{4}|[A-Z][a-z]{2} [ \d]\d \d\d:"
)


def is_newest_first(sample: bytes) -> bool:
    """True when the times at the head of the lines only ever fall."""
    falls = 0
    last: float | None = None
    for raw in sample.split(b"\n")[:-1]:
        text = ANSI.sub("", raw[:120].decode("utf-8", "replace"))
        match = _DATED.search(text[:60])
        stamp = parse(text[match.start() :]) if match else None
        if stamp is None or stamp.frame is Frame.DAY_TIME:
            continue
        if last is not None and stamp.seconds > last + 1.0:
            return False
        if last is not None and stamp.seconds < last:
            falls += 1
        last = stamp.seconds
    return falls >= ENOUGH


def turned(data: bytes) -> bytes:
    """Return the physical lines in the opposite order."""
    lines = data.split(b"\n")
    if lines and not lines[-1]:
        lines.pop()
    return b"\n".join(reversed(lines)) + b"\n"


def renumbered(report: Report) -> Report:
    """Give a report on the turned log the line numbers of the log as it is."""
    total = report.lines

    def at(line: int) -> int:
        return total + 1 - line

    def cause_at(cause: Cause | None) -> Cause | None:
        return replace(cause, line=at(cause.line)) if cause else None

    def run_at(run: Run) -> Run:
        return replace(
            run,
            first_line=at(run.last_line),
            last_line=at(run.first_line),
            cause=cause_at(run.cause),
            phases=tuple(replace(span, line=at(span.line)) for span in run.phases),
            progress=tuple(
                replace(p, first_line=at(p.last_line), last_line=at(p.first_line))
                for p in run.progress
            ),
        )

    verdict = report.verdict
    return replace(
        report,
        runs=tuple(run_at(run) for run in report.runs),
        notes=(*report.notes, NOTE),
        verdict=replace(
            verdict,
            cause=cause_at(verdict.cause),
            first_cause=cause_at(verdict.first_cause),
            since_line=at(verdict.since_line) if verdict.since_line is not None else None,
            evidence=tuple(Evidence(at(e.line), e.kind, e.text) for e in verdict.evidence),
        ),
    )
