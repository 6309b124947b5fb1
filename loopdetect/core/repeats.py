"""Looks that show the same finished bar again and again: a start-up that begins anew, or a log that stands."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, field
from typing import Final

from loopdetect.core.polling import REPEATS
from loopdetect.core.snapshot import Snapshot, cut_short

REPEAT_FLOOR_S: Final = 120.0
REPEAT_BAR_FACTOR: Final = 5.0


@dataclass(slots=True)
class Finding:
    """What the snapshots say beyond the lines in them."""

    repeats: int = 0
    repeat_line: int = 0
    falls: list[int] = field(default_factory=list)
    did_not_grow: bool = False
    same_process: bool = False
    answered: bool = False
    clock: str = "uptime"


def count_repeats(snapshots: list[Snapshot], finding: Finding) -> None:
    """Count identical snapshots that end in a finished bar without date or pid."""
    if any(s.ready or (s.health or 0) // 100 == 2 for s in snapshots):
        return
    filled = [s for s in snapshots if s.lines]
    best: list[Snapshot] = []
    current: list[Snapshot] = []
    for snapshot in filled:
        if current and snapshot.texts == current[-1].texts:
            current.append(snapshot)
        else:
            current = [snapshot]
        if len(current) > len(best):
            best = list(current)
    if len(best) < 2 or (
        best[-1] is not (filled[-1] if filled else None)
        and best[-1] is not (filled[-2] if len(filled) > 1 else None)
    ):
        return
    bar = best[-1].last_bar()
    if bar is None or not bar.finished or best[-1].dated():
        return
    if _same({s.size for s in best}):
        finding.did_not_grow = True
        return
    up = [s.uptime for s in best if s.uptime is not None]
    ages = len(up) == len(best) and up == sorted(up) and up[0] < up[-1]
    if _same({s.pid for s in best}) or _same({s.restarts for s in best}) or ages:
        finding.same_process = True
        return
    cut = (
        len(best) == REPEATS - 1 and best[-1] is not filled[-1] and cut_short(filled[-1], best[-1])
    )
    if len(best) < REPEATS and not cut:
        return
    first, last = best[0].time, filled[-1].time if cut else best[-1].time
    needed = max(REPEAT_FLOOR_S, REPEAT_BAR_FACTOR * (bar.elapsed_s or 0.0))
    if first is not None and last is not None and last - first < needed:
        return
    finding.repeats = len(best) + cut
    finding.repeat_line = best[0].line


def _same(values: Set[object]) -> bool:
    """True when all looks showed one and the same value."""
    return len(values) == 1 and None not in values
