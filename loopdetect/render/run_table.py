"""The table of runs: which columns, and which of them fit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from loopdetect.model import Run
from loopdetect.render.clock import column
from loopdetect.render.duration import NONE, spoken
from loopdetect.render.figures import Fold, ended, last_bar, short_cause

Column = Callable[[Sequence[Run]], list[str]]

COLUMNS: Final[dict[str, Column]] = {
    "run": lambda runs: [str(run.number) for run in runs],
    "lines": lambda runs: [f"{run.first_line}-{run.last_line}" for run in runs],
    "started": lambda runs: column(run.started_at for run in runs),
    "phase": lambda runs: [run.phase.value for run in runs],
    "progress": lambda runs: [last_bar(run) for run in runs],
    "ready after": lambda runs: [spoken(run.ready_after_s) for run in runs],
    "lasted": lambda runs: [spoken(run.duration_s) for run in runs],
    "ended": lambda runs: [ended(run) for run in runs],
    "cause": lambda runs: [short_cause(run) for run in runs],
}

RIGHT: Final = frozenset({"run"})
# What goes first when the terminal is narrow.
DISPENSABLE: Final = ("progress", "started", "lines", "lasted", "ready after", "cause")


def table(fold: Fold) -> dict[str, list[str]]:
    """Return the columns, by heading, that say something about the shown runs."""
    runs = (*fold.head, *fold.tail)
    cells = {name: make(runs) for name, make in COLUMNS.items()}
    return {name: column for name, column in cells.items() if set(column) != {NONE}}


def narrower(cells: dict[str, list[str]]) -> dict[str, list[str]] | None:
    """Return the table without its least needed column, None if all that are left are needed."""
    gone = next((name for name in DISPENSABLE if name in cells), None)
    return {name: column for name, column in cells.items() if name != gone} if gone else None
