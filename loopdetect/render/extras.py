"""Facts that a report may hold and that a page shows only where they are there.

Each is read by name, so that a report without it is as good as one where it is empty.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from loopdetect.model import Policy, Progress, Report, Run, Verdict


@dataclass(frozen=True, slots=True)
class Unmatched:
    """A line that looks like an error and that no rule knows, with how often its like came."""

    line: int
    text: str
    count: int


def points(progress: Progress) -> tuple[tuple[float, float], ...]:
    """Return how a bar advanced: (seconds since it began, steps done)."""
    return cast(tuple[tuple[float, float], ...], getattr(progress, "points", ()))


def free_memory(run: Run) -> float | None:
    """Return the free accelerator memory at the run's start, in GiB."""
    return cast("float | None", getattr(run, "free_memory_gib", None))


def arguments(run: Run) -> tuple[tuple[str, str], ...]:
    """Return what the run was started with, as it printed it."""
    return cast(tuple[tuple[str, str], ...], getattr(run, "arguments", ()))


def unmatched(report: Report) -> tuple[Unmatched, ...]:
    """Return the error-like lines that no rule knows, the most frequent first."""
    found = getattr(report, "unmatched", ())
    return tuple(Unmatched(item.line, item.text, item.count) for item in found)


def rule(verdict: Verdict) -> str | None:
    """Return the rule that decided, in one sentence."""
    return cast("str | None", getattr(verdict, "rule", None))


def policy(report: Report) -> Policy | None:
    """Return the numbers that the rules were used with."""
    return cast("Policy | None", getattr(report, "policy", None))
