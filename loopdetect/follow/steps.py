"""The steps of one run that were not told yet: phases, bars, readiness, in the log's order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from loopdetect.follow.happened import Manner, Memory, What
from loopdetect.model import Outcome, Phase, Progress, Report, Run
from loopdetect.render.duration import spoken
from loopdetect.render.figures import BAD, bar

OVER: Final = BAD | {Outcome.STOPPED, Outcome.CUT_OFF}
UNTOLD: Final = frozenset({Phase.SERVING, Phase.UNKNOWN})


@dataclass(frozen=True, slots=True)
class Step:
    """One step forward, and the line that shows it."""

    line: int
    what: What
    text: str
    phase: Phase


def steps(run: Run, memory: Memory, manner: Manner, now: float, title: str) -> list[Step]:
    """Return the new steps of a run, and note in the memory that they are told.

    In a crash loop that was told of, only readiness is news. `now` in seconds since 1970.
    """
    found = [*_phases(run, memory), *_ready(run, memory, title)]
    if not memory.loop and not run.ready and run.outcome not in OVER:
        found += _progress(run, memory, manner, now)
    return sorted(found, key=lambda step: step.line)


def _phases(run: Run, memory: Memory) -> Iterator[Step]:
    for place, span in enumerate(run.phases):
        name = span.phase.value
        if name in memory.phases or span.phase in UNTOLD:
            continue
        memory.phases.append(name)
        # A run's first phase is told by its start.
        if memory.loop or (span.phase is Phase.CONFIG and place == 0):
            continue
        spent = ""
        before = run.phases[place - 1] if place else None
        if before is not None and before.duration_s is not None:
            spent = f" after {spoken(before.duration_s)} in {before.phase.spoken}"
        yield Step(span.line, What.PHASE, f"{name}{spent}", span.phase)


def _ready(run: Run, memory: Memory, title: str) -> Iterator[Step]:
    if run.ready and not memory.ready:
        memory.ready = True
        after = f" after {spoken(run.ready_after_s)}" if run.ready_after_s is not None else ""
        line = next((span.line for span in run.phases if span.phase is Phase.SERVING), None)
        yield Step(line or run.first_line, What.READY, f"{title} is ready{after}", Phase.SERVING)
    elif not run.ready and not memory.over:
        memory.ready = False


def _progress(run: Run, memory: Memory, manner: Manner, now: float) -> Iterator[Step]:
    """Thinned: a bar that moved a good piece, or for a good while, or came to its end."""
    if not run.progress:
        return
    newest = max(run.progress, key=lambda progress: progress.last_line)
    share = share_done(newest)
    if memory.bar != newest.label or share < memory.bar_share:
        memory.bar, memory.bar_share, memory.bar_at = newest.label, 0.0, now
    moved, waited = share - memory.bar_share, now - memory.bar_at
    finished = newest.finished and memory.bar_share < 1.0
    far = moved >= manner.progress_share and waited >= manner.progress_least
    if not (finished or far or (moved > 0 and waited >= manner.progress_every)):
        return
    memory.bar_share, memory.bar_at = share, now
    left = f", {spoken(newest.remaining_s)} left" if newest.remaining_s else ""
    text = f"{newest.label}: {bar(newest)}{left}"
    yield Step(newest.last_line, What.PROGRESS, text, run.phase)


def server_title(report: Report) -> str:
    """Return how the server is called."""
    return report.server.title if report.server.name else "the server"


def share_done(progress: Progress) -> float:
    """Return how much of a bar is done, 0 to 1."""
    if not progress.total or progress.total <= 0:
        return 0.0
    return min(progress.done / progress.total, 1.0)


def dropped_runs(report: Report) -> int:
    """Return how many runs the report counts but does not hold."""
    return max(0, report.runs[-1].number - len(report.runs)) if report.runs else 0


def death_text(report: Report, run: Run) -> str:
    """Return where, how and why a run died."""
    where = "while serving" if run.ready else f"in {run.phase.spoken}"
    how = "was killed from outside" if run.outcome is Outcome.KILLED else "died"
    lasted = f" after {spoken(run.duration_s)}" if run.duration_s is not None else ""
    status = ""
    if run.exit.signal or run.exit.code is not None:
        status = f" ({run.exit.signal or f'exit {run.exit.code}'})"
    why = f": {run.cause.reason}: {run.cause.text}" if run.cause else "; the log holds no cause"
    return f"{server_title(report)} {how} {where}{lasted}{status}{why}"
