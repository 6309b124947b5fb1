"""The metrics: made from the board at the moment that somebody asks.

Label sets are bounded: states, phases and reasons are closed lists, and streams beyond the limit
are only counted.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Final

from loopdetect import __version__
from loopdetect.metrics.board import MAX_STREAMS, Board, Row
from loopdetect.model import Report, State
from loopdetect.render.escape import visible
from loopdetect.render.figures import BAD

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry
    from prometheus_client.core import Metric

OTHER: Final = "other"
STREAM: Final = ("source", "stream")


class Families:
    """A prometheus-client collector."""

    def __init__(
        self, board: Board, reasons: Iterable[str], clock: Callable[[], float] = time.time
    ) -> None:
        self._board = board
        self._reasons = frozenset(reasons)
        self._clock = clock

    def collect(self) -> Iterator[Metric]:
        """Yield every metric."""
        from prometheus_client.core import GaugeMetricFamily, InfoMetricFamily

        rows = self._board.rows()
        yield InfoMetricFamily("loopdetect", "The watcher.", value={"version": __version__})
        yield GaugeMetricFamily("loopdetect_streams", "Streams that are watched.", value=len(rows))
        left_out = max(0, len(rows) - MAX_STREAMS)
        yield GaugeMetricFamily(
            "loopdetect_streams_left_out", "Streams that have no metrics.", value=left_out
        )
        yield from self._of_streams(rows[:MAX_STREAMS])
        yield from self._of_watcher()

    def _of_streams(self, rows: list[Row]) -> Iterator[Metric]:
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        state = GaugeMetricFamily(
            "loopdetect_state", "1 for the state that the server is in.",
            labels=[*STREAM, "server", "state"],
        )  # fmt: skip
        starts = CounterMetricFamily(
            "loopdetect_starts", "Starts of the server in its log.", labels=STREAM
        )
        crashes = CounterMetricFamily(
            "loopdetect_crashes", "Runs that ended badly.", labels=[*STREAM, "reason"]
        )
        ready = GaugeMetricFamily(
            "loopdetect_time_to_ready_seconds", "How long the last ready run took to get ready.",
            labels=STREAM,
        )  # fmt: skip
        phases = GaugeMetricFamily(
            "loopdetect_phase_duration_seconds", "How long each phase of the last run took.",
            labels=[*STREAM, "phase"],
        )  # fmt: skip
        age = GaugeMetricFamily(
            "loopdetect_last_line_age_seconds", "Time since the log last grew.", labels=STREAM
        )
        for row in rows:
            report = row.report
            labels = [visible(report.source), visible(report.stream or "")]
            server = report.server.name or ""
            for each in State:
                value = float(each is report.verdict.state)
                state.add_metric([*labels, server, each.value], value)
            if report.verdict.restarts is not None and report.runs:
                starts.add_metric(labels, report.verdict.restarts + 1)
            for reason, count in self._by_reason(report).items():
                crashes.add_metric([*labels, reason], count)
            waits = [run.ready_after_s for run in report.runs if run.ready_after_s is not None]
            if waits:
                ready.add_metric(labels, waits[-1])
            for span in report.runs[-1].phases if report.runs else ():
                if span.duration_s is not None:
                    phases.add_metric([*labels, span.phase.value], span.duration_s)
            if row.grown_at is not None:
                age.add_metric(labels, max(0.0, self._clock() - row.grown_at))
        yield from (state, starts, crashes, ready, phases, age)

    def _by_reason(self, report: Report) -> Counter[str]:
        counts: Counter[str] = Counter()
        for run in report.runs:
            if run.outcome in BAD:
                reason = run.cause.reason if run.cause else "unknown"
                counts[reason if reason in self._reasons or not run.cause else OTHER] += 1
        return counts

    def _of_watcher(self) -> Iterator[Metric]:
        from prometheus_client.core import CounterMetricFamily

        events = CounterMetricFamily("loopdetect_events", "Events told.", labels=["event"])
        for what, count in sorted(self._board.counted().items()):
            events.add_metric([what], count)
        alerts = CounterMetricFamily(
            "loopdetect_alerts", "Alarms by channel and result.", labels=["channel", "result"]
        )
        for (channel, result), count in sorted(self._board.alerts().items()):
            alerts.add_metric([channel, result], count)
        yield from (events, alerts)


def registry(families: Families) -> CollectorRegistry:
    """Return a registry that holds the families and nothing of the process."""
    from prometheus_client import CollectorRegistry

    made = CollectorRegistry()
    made.register(families)
    return made


def exposition(families: Families) -> str:
    """Return the metrics as Prometheus reads them."""
    from prometheus_client import generate_latest

    return generate_latest(registry(families)).decode()
