"""The no-advance streak: is a server that keeps being started getting anywhere?"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from loopdetect.core.fingerprint import fingerprint, kinship
from loopdetect.core.open_run import OpenRun
from loopdetect.core.run import Machine
from loopdetect.model import PHASE_RANK, Outcome, Policy
from loopdetect.profiles import Library

BAD: Final = frozenset({Outcome.CRASHED, Outcome.KILLED})


@dataclass(slots=True)
class Streak:
    """Bad runs in a row, none of which got further than those before it."""

    bad: list[OpenRun] = field(default_factory=list)
    top: int = -1
    ready: bool = False

    def add(self, run: OpenRun, *, polled: bool) -> None:
        """Count a bad run; getting further than all before starts the count anew.

        Looks at a log from time to time catch any phase: there only readiness is an advance.
        """
        rank = PHASE_RANK[run.phase]
        if self.bad and rank > self.top and (run.ready or not polled):
            self.bad, self.ready = [], False
        self.bad.append(run)
        self.top = max(self.top, rank)
        self.ready = self.ready or run.ready


def run_fingerprint(run: OpenRun) -> str | None:
    """Return the fingerprint of a run's failure, or None if nothing is known of it."""
    told = _told(run)
    return fingerprint(*told) if told else None


def run_kinship(run: OpenRun) -> str | None:
    """Return what makes this run's failure the same as another's, or None if nothing is known."""
    told = _told(run)
    return kinship(*told) if told else None


def _told(run: OpenRun) -> tuple[str, str] | None:
    """Where the cause is not in the log, the program's own word of its death still tells runs apart."""
    if run.cause is not None:
        return run.cause.reason, run.cause.text
    if run.outcome in BAD and run.dead_line is not None and run.dead_text:
        return "unknown", run.dead_text
    return None


def median(values: list[float]) -> float:
    """Return the middle of some values (`statistics` alone takes 2 ms to import)."""
    ordered, half = sorted(values), len(values) // 2
    return ordered[half] if len(values) % 2 else (ordered[half - 1] + ordered[half]) / 2


def stable_after(runs: list[OpenRun], policy: Policy) -> float:
    """Return how long a run must have served to count as stable, in seconds."""
    if policy.stable_after is not None:
        return policy.stable_after
    waits = [w for w in (ready_after(r) for r in runs) if w is not None]
    if not waits:
        return (
            policy.stable_if_never_ready if not any(r.ready for r in runs) else policy.stable_floor
        )
    return min(max(2 * median(waits), policy.stable_floor), policy.stable_ceiling)


def ready_after(run: OpenRun) -> float | None:
    """Return how long the run took to get ready, in seconds."""
    if run.ready_at is None or run.started_at is None or not run.marked:
        return None
    return max(0.0, run.ready_at - run.started_at)


def is_stable(run: OpenRun, needed: float) -> bool:
    """True when the run served long enough to end a streak."""
    if not run.ready:
        return False
    end = run.dead_at if run.outcome in BAD and run.dead_at is not None else run.last_time
    if end is not None and run.ready_at is not None:
        return end - run.ready_at >= needed
    if end is not None and run.started_at is not None:
        return end - run.started_at >= needed and run.answered
    return run.answered


def current_streak(runs: list[OpenRun], policy: Policy, *, polled: bool) -> Streak:
    """Fold the runs of one stream into the streak that stands at the log's end."""
    needed = stable_after(runs, policy)
    streak = Streak()
    for run in runs:
        if run.outcome is Outcome.STOPPED or is_stable(run, needed):
            streak = Streak()
        elif run.outcome in BAD:
            streak.add(run, polled=polled)
        elif run.outcome is Outcome.READY and not streak.ready:
            streak = Streak()
    return streak


def is_loop(streak: Streak, machine: Machine, library: Library, policy: Policy) -> bool:
    """True when one of the rules for a crash loop holds."""
    return loop_rule(streak, machine, library, policy) is not None


def loop_rule(streak: Streak, machine: Machine, library: Library, policy: Policy) -> str | None:
    """Return the rule that makes it a loop: a supervisor's word, the same failure often enough
    (a transient one oftener), or enough of mixed ones; None where there is no loop.
    """
    bad = streak.bad
    if machine.gave_up is not None:
        return "A supervisor says so itself."
    if bad and (machine.counter or 0) >= policy.loop_after:
        return f"A supervisor counted {machine.counter} restarts; {policy.loop_after} are enough."
    marks = Counter(mark for mark in map(run_kinship, bad) if mark is not None)
    for run in bad:
        count = marks[run_kinship(run) or ""]
        reason = library.reasons.get(run.cause.reason) if run.cause else None
        transient = reason is not None and reason.transient
        needed = policy.loop_after_transient if transient else policy.loop_after
        if count >= needed:
            return f"{count} bad runs with one failure and no advance; {needed} are enough."
    if len(bad) >= policy.loop_after_mixed:
        return f"{len(bad)} bad runs and no advance; {policy.loop_after_mixed} are enough."
    return None
