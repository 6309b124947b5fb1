"""Two starts held against each other: what was set otherwise, what got slower, where they part."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from loopdetect.arguments import Change, changes, read
from loopdetect.model import PHASE_RANK, Outcome, Phase, Report, Run
from loopdetect.notable import ErrorLine, Notable

# A phase is slower when it took this much longer, by both measures.
SLOWER_RATIO: Final = 1.25
SLOWER_SECONDS: Final = 2.0
MAX_ERRORS: Final = 40
# What a launcher prints before the line that opens the run.
BEFORE_START: Final = 20
_BAD: Final = frozenset({Outcome.CRASHED, Outcome.KILLED})


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two starts, with the log it is from."""

    report: Report
    run: Run
    notable: Notable


@dataclass(frozen=True, slots=True)
class PhaseChange:
    """One phase on both sides; a line is None where the run did not get to it."""

    phase: Phase
    a_line: int | None
    b_line: int | None
    a_s: float | None
    b_s: float | None
    slower: bool
    faster: bool


@dataclass(frozen=True, slots=True)
class Parting:
    """The first phase in which the two go different ways."""

    phase: Phase
    line: int
    sentence: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """Everything that differs between A and B; memory in GiB.

    `same_arguments` is None where it can't be said.
    """

    a: Side
    b: Side
    arguments: tuple[Change, ...]
    same_arguments: bool | None
    phases: tuple[PhaseChange, ...]
    parting: Parting | None
    errors: tuple[ErrorLine, ...]
    errors_left: int
    free_memory: tuple[float | None, float | None]
    notes: tuple[str, ...]


def good_run(report: Report, before: int | None = None) -> Run | None:
    """Return the last run that got ready, else the last one; only runs before line `before`."""
    runs = [run for run in report.runs if before is None or run.first_line < before]
    ready = [run for run in runs if run.ready]
    return ready[-1] if ready else (runs[-1] if runs else None)


def compare(a: Side, b: Side, harmless: Callable[[str], bool] = lambda text: False) -> Comparison:
    """Return how B differs from A; `harmless` says which error-like lines mean nothing."""
    set_a, set_b = _arguments(a), _arguments(b)
    both = set(set_a) & set(set_b)
    differing = changes(set_a, set_b)
    errors = [line for line in _new_errors(a, b) if not harmless(line.text)]
    return Comparison(
        a=a,
        b=b,
        arguments=tuple(sorted(differing, key=lambda change: change.chance)),
        same_arguments=not [c for c in differing if not c.chance] if both else None,
        phases=phase_changes(a.run, b.run),
        parting=parting(a.run, b.run),
        errors=tuple(errors[:MAX_ERRORS]),
        errors_left=max(len(errors) - MAX_ERRORS, 0),
        free_memory=(_free_memory(a), _free_memory(b)),
        notes=tuple(_notes(a, b, set_a, set_b)),
    )


def _arguments(side: Side) -> dict[str, dict[str, str]]:
    run, stream = side.run, side.report.stream
    return read(side.notable.dumps(run.first_line, run.last_line, stream))


def _free_memory(side: Side) -> float | None:
    return side.notable.free_memory(side.run.first_line, side.run.last_line, side.report.stream)


def _new_errors(a: Side, b: Side) -> Iterable[ErrorLine]:
    early = max(a.run.first_line - BEFORE_START, 1)
    known = {item.shape for item in a.notable.errors(early, a.run.last_line, a.report.stream)}
    found = b.notable.errors(b.run.first_line, b.run.last_line, b.report.stream)
    return (item for item in found if item.shape not in known)


def phase_changes(a: Run, b: Run) -> tuple[PhaseChange, ...]:
    """Return every phase that either run got to, in the order of a start-up."""
    left = {span.phase: span for span in a.phases}
    right = {span.phase: span for span in b.phases}
    lines_a, lines_b = _reached(a), _reached(b)
    found = []
    for phase in Phase:
        one, other = left.get(phase), right.get(phase)
        if phase not in lines_a and phase not in lines_b:
            continue
        a_s = one.duration_s if one else None
        b_s = other.duration_s if other else None
        judged = phase not in (Phase.SERVING, Phase.SHUTDOWN)
        found.append(
            PhaseChange(
                phase,
                lines_a.get(phase),
                lines_b.get(phase),
                a_s,
                b_s,
                judged and not _died_in(a, phase) and _longer(b_s, a_s),
                judged and not _died_in(b, phase) and _longer(a_s, b_s),
            )
        )
    return tuple(found)


def _died_in(run: Run, phase: Phase) -> bool:
    return run.outcome in _BAD and bool(run.phases) and run.phases[-1].phase is phase


def _longer(one: float | None, other: float | None) -> bool:
    if one is None or other is None:
        return False
    return one >= other * SLOWER_RATIO and one - other >= SLOWER_SECONDS


def parting(a: Run, b: Run) -> Parting | None:
    """Return where B leaves the way that A took, None where it does not."""
    left, right = _reached(a), _reached(b)
    ended = _ended(b)
    only = sorted(
        (set(left) ^ set(right)) - {Phase.SHUTDOWN, Phase.UNKNOWN}, key=PHASE_RANK.__getitem__
    )
    if not only:
        if a.outcome is b.outcome or b.outcome is Outcome.READY:
            return None
        return Parting(b.phase, _line(b), f"Both got as far as {b.phase.value}; then B {ended}.")
    first = only[0]
    if PHASE_RANK[first] > PHASE_RANK[b.phase]:
        there = ended.replace(f" in {b.phase.value}", " there", 1)
        way = f"Both got to {b.phase.value}. A went on to {first.value}; B {there}."
        return Parting(b.phase, _line(b), way)
    if first in left:
        after = f"B went on without it and {ended}" if b.outcome in _BAD else "B did not"
        return Parting(
            first, _line(b), f"A went through {first.value} (line {left[first]}); {after}."
        )
    way = f"B went through {first.value} (line {right[first]}), A did not"
    return Parting(first, right[first], f"{way}; B {ended}." if b.outcome in _BAD else f"{way}.")


def _reached(run: Run) -> dict[Phase, int]:
    """Return each phase's line; a failure can tell of a phase that printed nothing else."""
    lines = {span.phase: span.line for span in run.phases}
    lines.setdefault(run.phase, run.cause.line if run.cause else run.last_line)
    return lines


def _ended(run: Run) -> str:
    words = {
        Outcome.READY: "got ready",
        Outcome.LOADING: f"is still in {run.phase.value}",
        Outcome.STALLED: f"stands still in {run.phase.value}",
        Outcome.STOPPED: "was stopped",
        Outcome.CRASHED: f"crashed in {run.phase.value}",
        Outcome.KILLED: f"was killed in {run.phase.value}",
        Outcome.CUT_OFF: "is cut off there in its log",
        Outcome.UNKNOWN: "ended there, for all that the log tells",
    }
    because = f" ({run.cause.reason}, line {run.cause.line})" if run.cause else ""
    return words[run.outcome] + because


def _line(run: Run) -> int:
    if run.cause:
        return run.cause.line
    spans = [span.line for span in run.phases if span.phase is run.phase]
    return spans[0] if spans else run.last_line


def _notes(
    a: Side, b: Side, set_a: dict[str, dict[str, str]], set_b: dict[str, dict[str, str]]
) -> Iterable[str]:
    if a.report.server.name != b.report.server.name:
        yield (
            f"A was written by {_title(a)}, B by {_title(b)}: only what both print can be compared."
        )
    elif a.report.server.version != b.report.server.version:
        yield f"The versions differ: A is {_title(a)}, B is {_title(b)}."
    if not a.run.ready and b.run.ready:
        yield "B got ready and A did not: are they the wrong way round?"
    elif not a.run.ready:
        yield "No run of A got ready; its last one is used."
    missing = [name for name, found in (("A", set_a), ("B", set_b)) if not found]
    if missing:
        yield f"{' and '.join(missing)} did not print arguments that could be read."
    if a.notable.overflowed or b.notable.overflowed:
        yield "There are more error-like lines than can be kept; some new ones may be missing."


def _title(side: Side) -> str:
    server = side.report.server
    title = server.title or server.name or "an unknown server"
    return f"{title} {server.version}" if server.version else title


def pairs(a: Sequence[Report], b: Sequence[Report]) -> list[tuple[Report, Report]]:
    """Return the streams to compare: those of one name, else the first that has runs."""
    left = {report.stream: report for report in a if report.runs}
    right = {report.stream: report for report in b if report.runs}
    shared = [name for name in left if name in right]
    if shared:
        return [(left[name], right[name]) for name in shared]
    if not left or not right:
        return []
    return [(next(iter(left.values())), next(iter(right.values())))]
