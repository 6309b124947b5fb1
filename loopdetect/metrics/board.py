"""The latest report of every stream, and what was counted, for whoever asks from any thread."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from loopdetect.follow.happened import Happened
from loopdetect.model import Report

MAX_STREAMS: Final = 500


@dataclass(frozen=True, slots=True)
class Row:
    """One stream; `grown_at` is when its source last grew, in seconds since 1970."""

    report: Report
    grown_at: float | None


class Board:
    """Holds rows by source and stream."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._rows: dict[str, dict[str | None, Row]] = {}
        self._events: Counter[str] = Counter()
        self._alerts: Callable[[], dict[tuple[str, str], int]] = dict

    def count_alerts(self, alerts: Callable[[], dict[tuple[str, str], int]]) -> None:
        """Say who knows how many alarms were sent and failed: (channel, result) -> number."""
        self._alerts = alerts

    def put(self, source: str, reports: Iterable[Report], grown_at: float | None) -> None:
        """Replace the rows of a source."""
        rows = {report.stream: Row(report, grown_at) for report in reports}
        with self._lock:
            self._rows[source] = rows

    def drop(self, source: str) -> None:
        """Forget a source."""
        with self._lock:
            self._rows.pop(source, None)

    def count(self, events: Iterable[Happened]) -> None:
        """Count events by what they were."""
        with self._lock:
            self._events.update(event.what.value for event in events if not event.alarm)

    def rows(self) -> list[Row]:
        """Return all rows, by source."""
        with self._lock:
            return [row for rows in self._rows.values() for row in rows.values()]

    def counted(self) -> dict[str, int]:
        """Return how many events there were of each kind."""
        with self._lock:
            return dict(self._events)

    def alerts(self) -> dict[tuple[str, str], int]:
        """Return how many alarms there were by (channel, result)."""
        return self._alerts()
