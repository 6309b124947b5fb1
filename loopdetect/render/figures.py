"""What text, Markdown and HTML say alike of a report: names, counts, medians, short cells."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from loopdetect.model import Cause, Outcome, Phase, Progress, Report, Run, State
from loopdetect.render.clock import readable
from loopdetect.render.duration import NONE, spoken
from loopdetect.render.escape import visible

BAD: Final = frozenset({Outcome.CRASHED, Outcome.KILLED})
FOLD_ABOVE: Final = 20
FOLD_KEEPS: Final = 5


@dataclass(frozen=True, slots=True)
class PhaseTiming:
    """One phase of the last run beside the earlier ones; times in seconds."""

    phase: Phase
    line: int
    started_at: float | None
    duration_s: float | None
    median_s: float | None
    earlier: int


@dataclass(frozen=True, slots=True)
class Fold:
    """The runs that a table shows, and what is left out between `head` and `tail`."""

    head: tuple[Run, ...]
    hidden: tuple[Run, ...]
    tail: tuple[Run, ...]


def counted(count: int, noun: str) -> str:
    """Return `1 crash`, `2 crashes`, `3 runs`."""
    plural = "es" if noun.endswith(("sh", "ch", "s")) else "s"
    return f"{count} {noun}{'' if count == 1 else plural}"


def server_name(report: Report) -> str:
    """Return the server's title with its version, where it is known."""
    title = report.server.title or report.server.name or "unknown server"
    return visible(f"{title} {report.server.version}" if report.server.version else title)


def source_name(report: Report) -> str:
    """Return the source as people name it, with its stream."""
    source = "standard input" if report.source == "-" else visible(report.source)
    return f"{source} [{visible(report.stream)}]" if report.stream else source


def since(report: Report) -> str | None:
    """Return since when the state holds, else since which line, else None."""
    at = readable(report.verdict.since, report.clock)
    line = report.verdict.since_line
    if at:
        return f"since {at}" + (f" (line {line})" if line else "")
    return f"since line {line}" if line else None


def starts(report: Report) -> str | None:
    """Return how often the server was started, as far as the log tells."""
    restarts = report.verdict.restarts
    if restarts is not None:
        return counted(restarts + 1, "start") if restarts or report.runs else None
    return f"{counted(len(report.runs), 'start')} seen" if report.runs else None


def bad_runs(report: Report) -> list[Run]:
    """Return the runs that ended by death or an outside kill."""
    return [run for run in report.runs if run.outcome in BAD]


def median(values: Iterable[float | None]) -> float | None:
    """Return the median of the known values, None if there are none."""
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None


def loop_sentence(report: Report) -> str | None:
    """Return how often and where a crash-looping server died, None for other states."""
    verdict, bad = report.verdict, bad_runs(report)
    if verdict.state is not State.CRASH_LOOPING or not bad:
        return None
    total = len(report.runs) if verdict.restarts is None else verdict.restarts + 1
    parts = [f"Started {counted(total, 'time')}, {counted(verdict.crashes, 'crash')}"]
    phases = Counter(run.phase for run in bad)
    if len(phases) == 1:
        where = f"died {'each time ' if len(bad) > 1 else ''}in {next(iter(phases)).spoken}"
    else:
        common = phases.most_common(3)
        where = "died in " + ", ".join(f"{p.value} ({counted(n, 'time')})" for p, n in common)
    usual = median(run.duration_s for run in bad)
    parts.append(where if usual is None else f"{where} after about {spoken(usual)}")
    parts.append(_causes(bad))
    return ", ".join(parts) + "."


def _causes(bad: Sequence[Run]) -> str:
    causes = Counter(_identity(run) for run in bad if run.cause)
    silent = sum(1 for run in bad if run.cause is None)
    if not causes:
        return "cause not in the log"
    said = "same cause" if len(causes) == 1 else f"{len(causes)} different causes"
    return f"{said} ({counted(silent, 'run')} without one)" if silent else said


def _identity(run: Run) -> str | None:
    return run.cause.fingerprint if run.cause else None


def recurrence(report: Report, cause: Cause) -> str | None:
    """Return in how many of the bad runs this cause was found, None if there was only one."""
    bad = bad_runs(report)
    if len(bad) < 2:
        return None
    same = sum(1 for run in bad if _identity(run) == cause.fingerprint)
    if same == len(bad):
        return f"The same in all {same} failed runs."
    return f"Found in {same} of {len(bad)} failed runs." if same else None


def fold(runs: Sequence[Run], everything: bool = False) -> Fold:
    """Return which runs to show when there are many."""
    if everything or len(runs) <= FOLD_ABOVE:
        return Fold(tuple(runs), (), ())
    return Fold(
        tuple(runs[:FOLD_KEEPS]), tuple(runs[FOLD_KEEPS:-FOLD_KEEPS]), tuple(runs[-FOLD_KEEPS:])
    )


def folded(hidden: Sequence[Run]) -> str:
    """Return one line for runs that are not shown."""
    ends = Counter(f"{run.outcome.value} in {run.phase.spoken}{_because(run)}" for run in hidden)
    if len(ends) == 1:
        return f"… {counted(len(hidden), 'more run')}, all the same: {next(iter(ends))}"
    said = ", ".join(f"{count} × {end}" for end, count in ends.most_common(3))
    rest = len(hidden) - sum(count for _, count in ends.most_common(3))
    return f"… {counted(len(hidden), 'more run')}: {said}" + (f", {rest} others" if rest else "")


def _because(run: Run) -> str:
    return f" ({visible(run.cause.reason)})" if run.cause else ""


def timings(report: Report) -> tuple[PhaseTiming, ...]:
    """Return the phases of the last run, each with the median over the earlier runs."""
    if not report.runs:
        return ()
    last, earlier = report.runs[-1], report.runs[:-1]
    spans: dict[Phase, list[float]] = {}
    for run in earlier:
        for span in run.phases:
            if span.duration_s is not None:
                spans.setdefault(span.phase, []).append(span.duration_s)
    return tuple(
        PhaseTiming(
            span.phase,
            span.line,
            span.started_at,
            span.duration_s,
            median(spans.get(span.phase, [])),
            len(spans.get(span.phase, [])),
        )
        for span in last.phases
    )


def bar(progress: Progress) -> str:
    """Return `63/64`, or the count alone where the total is not known."""
    done = f"{progress.done:g}"
    return done if progress.total is None else f"{done}/{progress.total:g}"


def last_bar(run: Run) -> str:
    """Return the run's last progress bar as a cell."""
    return bar(run.progress[-1]) if run.progress else NONE


def ended(run: Run) -> str:
    """Return how the run ended, with its exit status where it is known."""
    if run.exit.signal:
        return f"{run.outcome.value} ({visible(run.exit.signal)})"
    if run.exit.code is not None:
        return f"{run.outcome.value} (exit {run.exit.code})"
    return run.outcome.value


def short_cause(run: Run) -> str:
    """Return the run's cause in one cell."""
    return f"{visible(run.cause.reason)}, line {run.cause.line}" if run.cause else NONE
