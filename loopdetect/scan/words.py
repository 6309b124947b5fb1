"""What text and Markdown say alike of groups: cells, places, counts."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from loopdetect.model import State
from loopdetect.render.clock import readable
from loopdetect.render.duration import NONE
from loopdetect.render.escape import visible
from loopdetect.render.figures import counted
from loopdetect.scan.groups import Example, Group, Tally


@dataclass(frozen=True, slots=True)
class Shown:
    """What is to be told: the groups, best first, and how many there are besides."""

    tally: Tally
    groups: tuple[Group, ...]
    more: int


def shown(tally: Tally, top: int | None) -> Shown:
    """Return the first `top` groups, all for None."""
    groups = tally.groups
    chosen = tuple(groups[:top])
    return Shown(tally, chosen, len(groups) - len(chosen))


def cells(groups: tuple[Group, ...]) -> dict[str, list[str]]:
    """Return the table's columns."""
    return {
        "logs": [str(group.logs) for group in groups],
        "runs": [str(group.runs) for group in groups],
        "crashes": [str(group.crashes) for group in groups],
        "server": [server(group) for group in groups],
        "phase": [group.failure.phase.value for group in groups],
        "reason": [visible(group.failure.reason or NONE) for group in groups],
        "now": [states(group.states) for group in groups],
        "first seen": [_time(group, 1) for group in groups],
        "last seen": [_time(group, 2) for group in groups],
    }


def server(group: Group) -> str:
    """Return the server's title."""
    return visible(group.failure.title or group.failure.server or "unknown server")


def _time(group: Group, which: int) -> str:
    times = group.times
    if times is None:
        return NONE
    at = times[1] if which == 1 else times[2]
    return readable(at, times[0]) or NONE


def states(counts: Counter[State]) -> str:
    """Return `12 crash-looping, 3 ready`, worst first."""
    return ", ".join(f"{counts[state]} {state.value}" for state in WORST_FIRST if counts[state])


WORST_FIRST = (
    State.CRASH_LOOPING,
    State.CRASHED,
    State.STALLED,
    State.LOADING,
    State.STOPPED,
    State.READY,
    State.UNKNOWN,
)


def place(example: Example) -> str:
    """Return `path:line` as an editor takes it, with the stream where there are several."""
    file = "standard input" if example.file == "-" else visible(example.file)
    stream = f" [{visible(example.stream)}]" if example.stream else ""
    return f"{file}:{example.file_line}{stream}"


def cause(example: Example) -> str:
    """Return the failure's line, or how the run ended where no line tells why."""
    text = " ".join(example.failure.text.split())
    return text or f"{example.failure.ending}; the cause is not in the log"


def logs_read(tally: Tally) -> str:
    """Return how many logs were read, and how many were not."""
    unread = f"; {tally.unread:,} could not be read" if tally.unread else ""
    streams = sum(tally.states.values())
    several = f" ({streams:,} streams)" if streams != tally.logs else ""
    return f"{tally.logs:,} {'log' if tally.logs == 1 else 'logs'}{several}{unread}"


def rest(told: Shown) -> str | None:
    """Return what is said of the groups that are not shown."""
    parts = []
    if told.more:
        parts.append(f"{counted(told.more, 'more group')} (--top 0 shows all)")
    if told.tally.left_out:
        parts.append(f"{counted(told.tally.left_out, 'failure')} of yet other kinds")
    return "; ".join(parts) or None
