"""When a source that is silent is worth another look, and stalls of logs that print no time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from loopdetect.follow.steps import server_title
from loopdetect.model import Certainty, Policy, Report, State
from loopdetect.render.duration import spoken

CLOCKED: Final = frozenset({"wall", "wall-no-year", "time-of-day"})
# A silent source is looked at in fifths of the shortest limit, then ever more seldom.
STEPS: Final = 5
LATER: Final = 1.5


def log_time(reports: Sequence[Report]) -> float | None:
    """Return when the last line was written, on the log's own clock, None if it has no clock."""
    times = [
        run.started_at + run.duration_s
        for report in reports
        if report.clock in CLOCKED
        for run in report.runs[-1:]
        if run.started_at is not None and run.duration_s is not None
    ]
    return max(times, default=None)


def next_look(reports: Sequence[Report], policy: Policy, silent: float) -> float | None:
    """Return after how many more seconds of silence a stall may have come, None if it can't."""
    if not any(report.verdict.state is State.LOADING for report in reports):
        # A server that serves can only be found to hang once, a limit after its last line.
        serving = any(report.verdict.state is State.READY for report in reports)
        return policy.stall_after - silent if serving and silent < policy.stall_after else None
    step = policy.stall_after / STEPS
    if silent < policy.stall_after:
        return step - silent % step
    longest = max([policy.stall_after, *policy.stall_after_by_phase.values()])
    return step if silent <= 2 * longest else silent * (LATER - 1)


@dataclass(slots=True)
class Advance:
    """Since when a stream without a clock has not advanced, on the watcher's clock."""

    point: tuple[object, ...] | None = None
    at: float = 0.0

    def judged(self, report: Report, policy: Policy, now: float) -> Report:
        """Return the report, stalled if it stood still for too long; `now` in seconds."""
        point = report.runs[-1].reached if report.runs else ()
        if point != self.point:
            self.point, self.at = point, now
        verdict = report.verdict
        if report.clock in CLOCKED or verdict.state is not State.LOADING:
            return report
        allowed = policy.stall_after_by_phase.get(verdict.phase, policy.stall_after)
        allowed = max(allowed, policy.stall_after)
        still = now - self.at
        if still < allowed:
            return report
        summary = (
            f"{server_title(report)} stands still in {verdict.phase.spoken}: nothing has advanced for "
            f"{spoken(still)} while it was watched."
        )
        return replace(
            report,
            verdict=replace(
                verdict, state=State.STALLED, certainty=Certainty.LIKELY, summary=summary
            ),
        )
