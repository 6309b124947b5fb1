"""The verdict on a polling transcript: what the lines tell, and what only the looks at them tell."""

from __future__ import annotations

from dataclasses import replace

from loopdetect.core.transcript import Finding
from loopdetect.model import Certainty, Evidence, Phase, Report, State

DOUBT = (
    "A log that did not grow looks the same. To tell: look twice at the file's size or at the process id, "
    "and ask for the health check's status code instead of its body."
)


def with_snapshots(report: Report, finding: Finding) -> Report:
    """Return the report with what the snapshots add to it."""
    verdict = report.verdict
    notes = report.notes
    if finding.repeats and verdict.state in (State.LOADING, State.STALLED, State.UNKNOWN):
        evidence = (*verdict.evidence, Evidence(finding.repeat_line, "repeated-snapshot", ""))
        verdict = replace(
            verdict,
            state=State.CRASH_LOOPING,
            certainty=Certainty.SUSPECTED,
            summary=f"{finding.repeats} looks in a row show the same finished bar and no sign of readiness: the start-up "
            f"seems to begin again each time. {DOUBT}",
            restarts=finding.repeats - 1,
            evidence=evidence,
            phase=Phase.LOAD_WEIGHTS if verdict.phase is Phase.UNKNOWN else verdict.phase,
        )
        notes = (*notes, DOUBT)
    elif finding.did_not_grow and verdict.state in (State.LOADING, State.UNKNOWN):
        verdict = replace(
            verdict,
            state=State.LOADING,
            summary=f"{verdict.summary} The log's size does not change: it did not grow.",
        )
    elif finding.same_process and verdict.state in (State.LOADING, State.UNKNOWN):
        verdict = replace(
            verdict,
            state=State.LOADING,
            summary=f"{verdict.summary} Each look shows the same process: it was not started again.",
        )
    if len(finding.falls) >= 2 and verdict.state in (State.LOADING, State.STALLED, State.UNKNOWN):
        verdict = replace(
            verdict,
            state=State.CRASH_LOOPING,
            certainty=Certainty.LIKELY,
            summary=f"The same bar fell back {len(finding.falls)} times and nothing later was ever reached: "
            "the start-up begins again and again.",
            restarts=max(verdict.restarts or 0, len(finding.falls)),
            evidence=(
                *verdict.evidence,
                *(Evidence(line, "bar-fell-back", "") for line in finding.falls[:12]),
            ),
            phase=Phase.LOAD_WEIGHTS if verdict.phase is Phase.UNKNOWN else verdict.phase,
        )
    if verdict.ready_seen is None:
        verdict = replace(verdict, ready_seen=finding.answered)
    clock = finding.clock if report.clock is not None else None
    return replace(report, kind="transcript", verdict=verdict, notes=notes, clock=clock)
