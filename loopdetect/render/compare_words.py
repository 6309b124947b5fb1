"""What text and page say alike of two starts."""

from __future__ import annotations

from loopdetect.arguments import ONLY_CHANGED, Change
from loopdetect.compare import Comparison, PhaseChange, Side
from loopdetect.model import Outcome, Phase
from loopdetect.render import figures
from loopdetect.render.duration import NONE, spoken
from loopdetect.render.escape import visible
from loopdetect.render.segments import ended_words


def side_line(side: Side) -> str:
    """Return which run of which log it is, and how it ended."""
    run = side.run
    which = f"run {run.number} of {len(side.report.runs)}"
    lines = f"lines {run.first_line}–{run.last_line}"
    after = f"ready after {spoken(run.ready_after_s)}" if run.ready_after_s is not None else ""
    told = [ended_words(run), after] if run.outcome is not Outcome.READY or not after else [after]
    ready = ", ".join(part for part in told if part)
    lasted = f", lasted {spoken(run.duration_s)}" if run.duration_s is not None else ""
    cause = f", {figures.short_cause(run)}" if run.cause else ""
    return f"{which}, {lines}: {ready}{lasted}{cause}"


def value(change: Change, side: str | None) -> str:
    """Return an argument's value, or what its absence means."""
    if side is None:
        return "(default)" if change.origin == ONLY_CHANGED else "(not printed)"
    return visible(side) if side else "(empty)"


def by_will(comparison: Comparison) -> list[Change]:
    """Return the arguments that somebody set otherwise."""
    return [change for change in comparison.arguments if not change.chance]


def by_chance(comparison: Comparison) -> str | None:
    """Return the arguments that differ in every start, as one line."""
    names = [change.name for change in comparison.arguments if change.chance]
    return ", ".join(names) if names else None


def arguments_line(comparison: Comparison) -> str | None:
    """Return what to say where no argument differs."""
    if comparison.same_arguments:
        return "No argument differs."
    return None if by_will(comparison) else "Nothing that both printed can be compared."


def memory_line(comparison: Comparison) -> str | None:
    """Return how much accelerator memory either start found free, None where one is silent."""
    a, b = comparison.free_memory
    if a is None or b is None:
        return None
    same = comparison.a.report.server.name == comparison.b.report.server.name
    return f"Free accelerator memory: A {a:.3g} GiB, B {b:.3g} GiB" if same else None


def phase_note(comparison: Comparison, change: PhaseChange) -> str:
    """Return what stands out in one phase."""
    parting = comparison.parting
    notes = []
    if change.slower and change.a_s:
        notes.append(f"{(change.b_s or 0) / change.a_s:.1f} × as long")
    elif change.slower:
        notes.append("slower")
    elif change.faster:
        notes.append("faster")
    if change.a_line is None:
        notes.append("only in B")
    elif change.b_line is None and change.phase is not Phase.SHUTDOWN:
        notes.append("only in A")
    if parting is not None and parting.phase is change.phase:
        notes.append("here they part")
    return ", ".join(notes)


def took(line: int | None, seconds: float | None) -> str:
    """Return how long a phase took."""
    return NONE if line is None else spoken(seconds) if seconds is not None else "time not known"
