"""How the progress bars of a log advanced, as points for a curve; memory stays bounded."""

from __future__ import annotations

from collections import deque
from typing import Final

from loopdetect.core.progress import find_bar

MAX_LABELS: Final = 48
# Series of one label that are kept, the latest; each is thinned to about this many points.
MAX_SERIES: Final = 60
MAX_POINTS: Final = 64

_Point = tuple[int, float, float]


class BarPoints:
    """Collects (line, seconds, done) of every bar by its label."""

    def __init__(self) -> None:
        self._series: dict[str, deque[list[_Point]]] = {}

    def take(self, line: int, text: str) -> None:
        """Read one state of a bar, if the text holds one that tells its time."""
        found = find_bar(text)
        if found is None or found[0].elapsed_s is None:
            return
        bar = found[0]
        kept = self._series.get(bar.label)
        if kept is None:
            if len(self._series) >= MAX_LABELS:
                return
            kept = self._series[bar.label] = deque(maxlen=MAX_SERIES)
        point = (line, float(found[0].elapsed_s or 0.0), bar.done)
        if not kept or bar.at_zero or point[1] < kept[-1][-1][1]:
            kept.append([point])
        elif bar.done > kept[-1][-1][2]:
            kept[-1].append(point)
            if len(kept[-1]) > MAX_POINTS:
                del kept[-1][1:-1:2]

    def within(self, label: str, first: int, last: int) -> tuple[tuple[float, float], ...]:
        """Return the longest series of a label between two lines, as (seconds, done)."""
        series = [
            points
            for name, kept in self._series.items()
            if name.endswith(label)
            for points in kept
            if first <= points[0][0] and points[-1][0] <= last
        ]
        longest = max(series, key=len, default=[])
        return tuple((seconds, done) for _, seconds, done in longest)
