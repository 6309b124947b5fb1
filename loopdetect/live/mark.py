"""What was in the log when the wait began: history informs, it does not decide."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from loopdetect.core.fusion import Log
from loopdetect.model import Exit, Outcome, Report, Run, State

BAD: Final = frozenset({Outcome.CRASHED, Outcome.KILLED})
_OF_OUTCOME: Final = {
    Outcome.READY: Log.READY,
    Outcome.LOADING: Log.LOADING,
    Outcome.STALLED: Log.LOADING,
}


@dataclass(frozen=True, slots=True)
class Mark:
    """Where one stream stood: its line, its last run, and the runs that had ended by then.

    Runs up to number `closed` were of processes that write no more.
    """

    line: int = 0
    last_run: int = 0
    over: frozenset[int] = frozenset()
    closed: int = 0


def mark_of(report: Report, *, written_since: bool) -> Mark:
    """Return where the report ends.

    `written_since` says that the last line came after the call already, though it was read with the
    history: then the end of the last run is no history.
    """
    if not report.runs:
        return Mark(report.lines)
    over = frozenset(run.number for run in report.runs if ended(run))
    last = report.runs[-1]
    if written_since:
        return Mark(last.first_line - 1, last.number - 1, over - {last.number})
    return Mark(report.lines, last.number, over)


def ended(run: Run) -> bool:
    """True when the run is over, well or badly."""
    return run.outcome in BAD or run.outcome in (Outcome.STOPPED, Outcome.CUT_OFF)


def bad_ends(report: Report, mark: Mark) -> tuple[Run, ...]:
    """Return the runs that ended badly since."""
    return tuple(
        run
        for run in report.runs
        if run.outcome in BAD and run.number not in mark.over and run.last_line > mark.line
    )


def gave_up(report: Report, mark: Mark) -> bool:
    """True when a supervisor gave up since."""
    return any(e.kind == "gave-up" and e.line > mark.line for e in report.verdict.evidence)


def is_hard(report: Report) -> bool:
    """True when the last run's end is told for certain, not only a failure that nothing followed.

    A download that is tried again looks for a while as if its failure were the end.
    """
    last = report.runs[-1]
    if (
        last.cause is None
        or last.exit != Exit()
        or (report.verdict.restarts or 0) >= len(report.runs)
    ):
        return True
    return any(
        e.kind in ("death", "exit") and e.line >= last.first_line for e in report.verdict.evidence
    )


def state_since(report: Report, mark: Mark) -> Log:
    """Return what the log tells of the run that is waited for."""
    looping = report.verdict.state is State.CRASH_LOOPING
    if looping and (bad_ends(report, mark) or gave_up(report, mark)):
        return Log.LOOPING
    if not report.runs:
        return Log.SILENT
    last = report.runs[-1]
    if last.number <= mark.closed:
        return Log.OVER
    if ended(last) and (last.number in mark.over or last.last_line <= mark.line):
        return Log.OVER
    if last.outcome in BAD:
        return Log.CRASHED
    if last.outcome is Outcome.STOPPED:
        return Log.STOPPED
    if last.outcome is Outcome.STALLED and last.ready:
        return Log.READY
    return _OF_OUTCOME.get(last.outcome, Log.SILENT)
