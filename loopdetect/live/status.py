"""What a wait looks like at one moment, for a display."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import Final, Protocol

from loopdetect.core.fusion import Fused, Log
from loopdetect.live.judge import Seen
from loopdetect.live.mark import BAD
from loopdetect.model import Phase, Progress, Report, Run, State
from loopdetect.render.width import cut

FAILURE_SHOWN: Final = 160


@dataclass(frozen=True, slots=True)
class Status:
    """One moment of a wait; times in seconds, `left_s` an estimate with its source."""

    state: State
    why: str
    obvious: bool
    server: str
    phase: Phase
    bar: Progress | None
    elapsed_s: float
    left_s: float | None
    left_from: str
    attempt: int
    died: bool
    last_failure: str
    beside: tuple[str, ...]

    @property
    def essence(self) -> tuple[object, ...]:
        """What makes a change worth a line."""
        return self.state, self.why, self.phase, self.attempt, self.beside


class Display(Protocol):
    """Shows a wait while it lasts."""

    def show(self, status: Status) -> None:
        """Take the newest status."""

    def close(self) -> None:
        """Leave the terminal as it was."""


def status_of(seen: Seen, fused: Fused, now: float, called: float) -> Status:
    """Return what there is to show."""
    report, run = seen.log.report, seen.log.run
    waiting = seen.log.log in (Log.OVER, Log.MISSING)
    elapsed = now - called
    why = fused.why
    if seen.log.log is Log.FAILING and run is not None and run.cause is not None:
        why += ": " + cut(run.cause.text.split("\n")[0], FAILURE_SHOWN)
    moving = run is not None and fused.state is State.LOADING and not waiting
    left, source = estimate(seen, now) if moving else (None, "")
    return Status(
        state=fused.state,
        why=why,
        obvious=fused.rule == "log-loading",
        server=report.server.title if report and report.server.name else "",
        phase=Phase.UNKNOWN if run is None or waiting else run.phase,
        bar=None if run is None or waiting else current_bar(run),
        elapsed_s=elapsed,
        left_s=left,
        left_from=source,
        attempt=len(report.runs) if report and not waiting else 0,
        died=run is not None and run.outcome in BAD,
        last_failure=last_failure(report) if report else "",
        beside=tuple(part.text for part in (seen.health, seen.process) if part is not None),
    )


def current_bar(run: Run) -> Progress | None:
    """Return the bar that moved last, if it is not finished."""
    latest = max(run.progress, key=lambda bar: bar.last_line, default=None)
    return latest if latest and not latest.finished else None


def last_failure(report: Report) -> str:
    """Return why the newest run that is over died; the one that may still recover is not over."""
    runs = report.runs[:-1] if report.verdict.state is State.LOADING else report.runs
    for run in reversed(runs):
        if run.outcome in BAD:
            return (
                run.cause.text if run.cause else f"died in {run.phase.spoken}, cause not in the log"
            )
    return ""


def estimate(seen: Seen, now: float) -> tuple[float | None, str]:
    """Return how long it may still take: by earlier starts in the log, else by the bar itself."""
    report, run = seen.log.report, seen.log.run
    if report is None or run is None or run.ready:
        return None, ""
    earlier = [r.ready_after_s for r in report.runs[:-1] if r.ready_after_s is not None]
    if earlier and seen.log.fresh:
        return max(0.0, median(earlier) - (now - seen.log.run_seen_at)), "by earlier starts"
    bar = current_bar(run)
    if bar is not None and bar.remaining_s:
        return bar.remaining_s, f"of {bar.label or run.phase}"
    return None, ""
