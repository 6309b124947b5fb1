"""What was in the log when the wait began: history informs, it does not decide."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from loopdetect.core.fusion import Log
from loopdetect.model import Outcome, Report, Run, State

BAD: Final = frozenset({Outcome.CRASHED, Outcome.KILLED})
QUARTER_S: Final = 900.0
SAME_MOMENT_S: Final = 10.0
FARTHEST_ZONE_S: Final = 26 * 3600.0
JUST_S: Final = 3.0
_OF_OUTCOME: Final = {
    Outcome.READY: Log.READY,
    Outcome.LOADING: Log.LOADING,
    Outcome.STALLED: Log.LOADING,
}


@dataclass(frozen=True, slots=True)
class Mark:
    """Where one stream stood: its line, its last run, and the runs that had ended by then."""

    line: int = 0
    last_run: int = 0
    over: frozenset[int] = frozenset()


def mark_of(report: Report, *, just_written: bool) -> Mark:
    """Return where the report ends; a log that began and ended just now is no history."""
    if just_written and len(report.runs) == 1:
        return Mark()
    over = frozenset(run.number for run in report.runs if ended(run))
    return Mark(report.lines, report.runs[-1].number if report.runs else 0, over)


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


def state_since(report: Report, mark: Mark) -> Log:
    """Return what the log tells of the run that is waited for."""
    looping = report.verdict.state is State.CRASH_LOOPING
    if looping and (bad_ends(report, mark) or gave_up(report, mark)):
        return Log.LOOPING
    if not report.runs:
        return Log.SILENT
    last = report.runs[-1]
    if ended(last) and (last.number in mark.over or last.last_line <= mark.line):
        return Log.OVER
    if last.outcome in BAD:
        return Log.CRASHED
    if last.outcome is Outcome.STOPPED:
        return Log.STOPPED
    if last.outcome is Outcome.STALLED and last.ready:
        return Log.READY
    return _OF_OUTCOME.get(last.outcome, Log.SILENT)


def is_just_now(log_time: float | None, modified: float | None, wall: float) -> bool:
    """Was the log written in the last moments, by its file and by its own stamps in any zone?

    A fast failure right before the call belongs to the start that is waited for; an old log that
    was copied here just now does not.
    """
    if modified is None or not 0 <= wall - modified <= JUST_S:
        return False
    if log_time is None:
        return True
    apart = abs(wall - log_time)
    return apart <= FARTHEST_ZONE_S and min(apart % QUARTER_S, -apart % QUARTER_S) <= SAME_MOMENT_S
