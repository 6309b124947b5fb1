"""The verdict in one or two plain sentences."""

from __future__ import annotations

from collections import Counter

from loopdetect.core.open_run import OpenRun
from loopdetect.core.run import Machine
from loopdetect.core.streak import BAD, Streak, median, ready_after
from loopdetect.model import Cause, Outcome, Phase, Server, State


def summarise(
    state: State,
    server: Server,
    runs: list[OpenRun],
    streak: Streak,
    cause: Cause | None,
    machine: Machine,
    stalled_for: float | None,
    phase: Phase,
) -> str:
    """Say what happened, how often, where, and why."""
    name = server.title if server.name else "The program"
    last = runs[-1] if runs else None
    why = f": {cause.text}" if cause else ""
    if last is None:
        return "Nothing in this log tells of a server's start, readiness or end."
    if state is State.CRASH_LOOPING:
        return _loop(name, runs, streak, cause, machine)
    failed = sum(r.outcome in BAD for r in runs[:-1])
    before = ""
    if failed:
        before = f" (attempt {len(runs)}; {failed} of the {len(runs) - 1} starts before it failed)"
    if state is State.READY:
        took = ready_after(last)
        after = f" after {duration(took)}" if took is not None else ""
        return (
            f"{name} became ready{after}{before}." if last.marked else f"{name} is serving{before}."
        )
    if state is State.STALLED:
        return f"{name} stands still in {phase.spoken}: nothing has advanced for {duration(stalled_for or 0)}{before}."
    if state is State.LOADING:
        tail = ""
        if before and runs[-2].cause is not None:
            tail = f" The last one failed: {runs[-2].cause.text}"
        return f"{name} is loading, so far in {phase.spoken}{before}.{tail}"
    if state is State.STOPPED:
        return f"{name} was stopped on request{_life(last, phase)}{before}."
    if state is State.CRASHED:
        return _crash(name, last, why, phase) + (
            f" Earlier starts: {failed} failed." if failed else ""
        )
    return f"{name}: the log does not hold enough to say what it is doing."


def _life(last: OpenRun, phase: Phase) -> str:
    """Say how far a run had come that was stopped."""
    if not last.ready and not last.marked and phase is Phase.UNKNOWN:
        return ""  # the log begins too late to tell
    if not last.ready:
        return f" in {phase.spoken}, before it was ready"
    took = ready_after(last)
    return f"; it had become ready after {duration(took)}" if took is not None else ""


def _crash(name: str, last: OpenRun, why: str, phase: Phase) -> str:
    where = "while serving" if last.ready else f"in {phase.spoken}"
    if last.outcome is Outcome.KILLED:
        return f"{name} was killed from outside {where}{why or '; the log does not say by whom'}."
    if not why:
        return f"{name} died {where}; the cause is not in this log."
    return f"{name} crashed {where}{why}"


def _loop(
    name: str, runs: list[OpenRun], streak: Streak, cause: Cause | None, machine: Machine
) -> str:
    starts = len(runs) + machine.dropped_runs
    times = f"{starts} times" if starts != 1 else "once"
    if machine.counter is not None and machine.counter >= starts:
        times += f" in this log ({machine.counter} restarts by the supervisor's count)"
    phases = Counter(r.phase.spoken for r in streak.bad)
    bad = len(streak.bad)
    where = ""
    if phases:
        common, count = phases.most_common(1)[0]
        where = (
            f" and died each time in {common}"
            if count == bad
            else f" and died mostly in {common} ({count} of {bad})"
        )
    lives = [
        r.last_time - r.started_at
        for r in streak.bad
        if r.last_time is not None and r.started_at is not None and r.last_time >= r.started_at
    ]
    after = f" after about {duration(median(lives))}" if lives else ""
    why = f": {cause.text}" if cause else "; the cause is not in this log"
    return f"{name} was started {times}{where}{after}{why}"


def duration(seconds: float) -> str:
    """Write seconds as people say them: 8 min 50 s."""
    if seconds < 10:
        return f"{seconds:.1f} s".replace(".0 s", " s")
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s" if whole % 60 else f"{whole // 60} min"
    hours, rest = divmod(whole, 3600)
    return f"{hours} h {rest // 60} min"
