"""What a watch shows of each stream: state, phase, bar, since, restarts, last cause."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from loopdetect.metrics.board import Row
from loopdetect.model import Report, State
from loopdetect.render.clock import iso, readable
from loopdetect.render.duration import NONE, spoken
from loopdetect.render.escape import visible
from loopdetect.render.figures import bar
from loopdetect.render.width import columns, cut

# What needs eyes first.
ORDER: Final = (
    State.CRASH_LOOPING,
    State.CRASHED,
    State.STALLED,
    State.LOADING,
    State.STOPPED,
    State.UNKNOWN,
    State.READY,
)
HEADINGS: Final = ("source", "server", "state", "phase", "bar", "since", "restarts", "last cause")
# What goes first where the terminal is narrow.
DISPENSABLE: Final = ("server", "bar", "restarts", "since", "phase")
BAR: Final = 8
LONGEST_SOURCE: Final = 34
LEAST_CAUSE: Final = 24
LONGEST_CAUSE: Final = 120


@dataclass(frozen=True, slots=True)
class Cells:
    """One row of the table as texts that are safe to print."""

    state: State
    texts: dict[str, str]


def cells(row: Row, prefix: str = "") -> Cells:
    """Return the row; `prefix` is left out of the source's name."""
    report = row.report
    verdict = report.verdict
    restarts = NONE if verdict.restarts is None else str(verdict.restarts)
    certainty = "?" if verdict.certainty.value == "suspected" else ""
    return Cells(
        verdict.state,
        {
            "source": source_name(report, prefix),
            "server": visible(report.server.title) if report.server.name else NONE,
            "state": f"{verdict.state.value}{certainty}",
            "phase": NONE if verdict.phase.value == "unknown" else verdict.phase.value,
            "bar": _bar(report),
            "since": _since(report),
            "restarts": restarts,
            "last cause": _cause(report),
        },
    )


def table(rows: Sequence[Row]) -> list[Cells]:
    """Return all rows, the worst first; the folder that all share is left out of their names."""
    prefix = shared_folder([row.report.source for row in rows])
    ranked = sorted(rows, key=lambda row: (ORDER.index(row.report.verdict.state),))
    return [cells(row, prefix) for row in ranked]


def fitted(found: Sequence[Cells], width: int | None) -> dict[str, int]:
    """Return the columns that fit in `width`, each with its own width."""
    names = [
        name
        for name in HEADINGS
        if name in ("source", "state") or any(row.texts[name] != NONE for row in found)
    ]
    sizes = {
        name: max([columns(name), *(columns(row.texts[name]) for row in found)]) for name in names
    }
    if "last cause" in sizes:
        sizes["last cause"] = min(sizes["last cause"], LONGEST_CAUSE)
    if width is None:
        return sizes
    sizes["source"] = min(sizes["source"], max(width // 3, 8), LONGEST_SOURCE)
    for gone in (None, *DISPENSABLE):
        sizes.pop(gone or "", None)
        others = sum(size + 2 for name, size in sizes.items() if name != "last cause")
        if others + LEAST_CAUSE <= width or ("last cause" not in sizes and others <= width):
            break
    if "last cause" in sizes:
        sizes["last cause"] = max(min(sizes["last cause"], width - others), 8)
    return sizes


def lines(found: Sequence[Cells], width: int | None) -> list[tuple[str, State | None]]:
    """Return the table as lines of text, each with its row's state; the first is the heading."""
    sizes = fitted(found, width)
    heading = "  ".join(_padded(name, size) for name, size in sizes.items())
    out: list[tuple[str, State | None]] = [(heading.rstrip(), None)]
    for row in found:
        text = "  ".join(_padded(row.texts[name], size) for name, size in sizes.items())
        out.append((text.rstrip(), row.state))
    return out


def tally(found: Sequence[Cells]) -> str:
    """Return `3 ready, 1 loading`."""
    counts = Counter(row.state for row in found)
    return ", ".join(f"{counts[state]} {state.value}" for state in ORDER if counts[state])


def source_name(report: Report, prefix: str = "") -> str:
    """Return the name of a source with its stream."""
    name = "stdin" if report.source == "-" else visible(report.source.removeprefix(prefix))
    return f"{name} [{visible(report.stream)}]" if report.stream else name


def _padded(text: str, size: int) -> str:
    shown = cut(text, size)
    return shown + " " * max(0, size - columns(shown))


def _bar(report: Report) -> str:
    run = report.runs[-1] if report.runs else None
    if run is None or not run.progress or run.ready or report.verdict.state is not State.LOADING:
        return NONE
    newest = max(run.progress, key=lambda progress: progress.last_line)
    if not newest.total or newest.total <= 0:
        return bar(newest)
    full = round(BAR * min(newest.done / newest.total, 1.0))
    left = f" {spoken(newest.remaining_s)}" if newest.remaining_s else ""
    return f"{'█' * full}{'░' * (BAR - full)} {bar(newest)}{left}"


def _since(report: Report) -> str:
    verdict = report.verdict
    at = readable(verdict.since, report.clock)
    if at is None:
        return f"line {verdict.since_line}" if verdict.since_line else NONE
    today = (iso(verdict.since, report.clock) or "")[:10]
    last = report.runs[-1] if report.runs else None
    ended = iso(last.started_at, report.clock) if last else None
    return at[-8:] if ended and ended[:10] == today and len(at) > 8 else at


def _cause(report: Report) -> str:
    cause = report.verdict.cause
    return f"{visible(cause.reason)}: {visible(cause.text)}" if cause else NONE


def shared_folder(names: Sequence[str]) -> str:
    """Return the beginning of all names that is their common folder, with its separator."""
    folders = [os.path.dirname(name) for name in names if name != "-"]
    if len(folders) < 2 or len({os.path.isabs(folder) for folder in folders}) > 1:
        return ""
    folder = os.path.commonpath(folders) if all(folders) else ""
    return folder.rstrip(os.sep) + os.sep if folder else ""
