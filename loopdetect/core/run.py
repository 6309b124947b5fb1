"""The run machine: a fold of events into runs.

One run is open at a time. A start marker opens the next one when the sequence of markers begins
again; everything else adds to the open run: phases and bars move it forward, a ready line makes
it serve, failures are collected as candidates, fatal lines end it, stops and exits say how it
left. What a run was is decided once, when it closes, from all that was collected.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from loopdetect.core import ending, readiness, restarts
from loopdetect.core.event import Event
from loopdetect.core.old_news import is_old_news
from loopdetect.core.open_run import BarState, OpenRun, Span
from loopdetect.core.outcome import settle
from loopdetect.core.restarts import EARLY
from loopdetect.core.strangers import Strangers
from loopdetect.model import PHASE_RANK, Certainty, Kind, Outcome, Phase

MAX_PROCESSES: Final = 256
MAX_BARS: Final = 24
MAX_RUNS: Final = 5000
_ENDS: Final = frozenset({Kind.FAILURE, Kind.CASCADE, Kind.STOP, Kind.EXIT})


class Machine:
    """Folds the events of one stream; `runs` holds the closed ones, `open` the last."""

    def __init__(self) -> None:
        self.runs: list[OpenRun] = []
        self.open: OpenRun | None = None
        self.counter: int | None = None
        self.gave_up: Event | None = None
        self.dropped_runs = 0
        self.starts: set[tuple[str, float | None, str | None]] = set()
        self._last_time: float | None = None
        self.polled = False
        self.anonymous = False
        self.ranks = True
        self._copying = False
        self.container_row: Event | None = None
        self.runs_now: int | None = None
        self.tabled: int | None = None
        self._strangers = Strangers()
        self._latest: float | None = None
        self.main_process: re.Pattern[str] | None = None
        self.child_process: re.Pattern[str] | None = None

    def __deepcopy__(self, memo: dict[int, object]) -> Machine:
        """Copy what may still change: the open run and the lists, not the runs that are over."""
        twin = copy.copy(self)
        twin.runs = list(self.runs)
        twin.open = copy.deepcopy(self.open, memo)
        twin.starts = set(self.starts)
        twin._strangers = copy.deepcopy(self._strangers, memo)
        return twin

    @property
    def all_runs(self) -> list[OpenRun]:
        """The runs that are over and the open one."""
        return self.runs if self.open is None else [*self.runs, self.open]

    def file_ended(self) -> None:
        """The container's file ended: its process is gone, whether it said so or not."""
        if self.open is not None:
            self.open.restart_said = True

    def fold(self, event: Event) -> bool:
        """Add one event; return whether it told anything."""
        if self._is_a_strangers(event):
            return False
        if self._of_child(event):
            if event.failure is None:
                return False
            event = replace(event, failure=replace(event.failure, fatal=False))
        if restarts.is_usage_error(event):
            event = replace(event, ends=True)
        handler = _HANDLERS.get(event.kind)
        before = self.runs[-1] if self.runs else None
        if handler is None or restarts.is_orphan(self.open, before, event):
            if before is not None and restarts.lives_on(before, event):
                before.outcome, before.overlaps = Outcome.UNKNOWN, True
            elif before is not None and handler and restarts.takes_leave(before, event):
                left = self.runs[-1] = copy.copy(before)
                left.outcome = Outcome.STOPPED
            return False
        if is_old_news(self, event):
            return False
        if event.time is not None:
            if self._latest is None or event.time > self._latest:
                self._latest, self._copying = event.time, False
        elif self._copying and event.kind is Kind.EXIT:
            return False  # a copy of the log holds the exit once more
        handler(self, event)
        self._remember_process(event)
        run = self.open
        if run is not None:
            run.last_line = max(run.last_line, event.line)
            if event.time is not None:
                run.last_time = event.time
                if restarts.went_back(run, event.time):
                    run.back_at = event.time
                run.last_times = (*run.last_times[1 - restarts.LAST_TIMES :], event.time)
            if event.uptime is not None:
                run.last_uptime = event.uptime
        if event.time is not None:
            self._last_time = event.time
        return True

    # -- processes

    def _of_child(self, event: Event) -> bool:
        """Does a child say that it ends? The server that started it goes on without it."""
        return (
            event.kind in _ENDS
            and event.process is not None
            and self.child_process is not None
            and self.child_process.fullmatch(event.process) is not None
        )

    def _is_a_strangers(self, event: Event) -> bool:
        """Is it a supervisor's word about another unit or pod of the same machine?"""
        own = event.fields.get("own_pod")
        if own is None:
            return self._strangers.of_unit(event) or self._strangers.of_pod(event)
        rows = self._strangers.name_pod(own)
        if (
            rows is not None
            and not self.runs
            and (self.open is None or restarts.only_supervised(self.open))
        ):
            self.open, self.counter, self.gave_up = None, None, None
            for row in rows:  # what was told before was told of others, but for these
                self.fold(row)
        return True

    def _remember_process(self, event: Event) -> None:
        if (
            event.pid is not None
            and self.open is not None
            and len(self.open.processes) < MAX_PROCESSES
        ):
            self.open.processes.add((event.process, event.pid))

    def polled_restart(self, event: Event, phase: Phase | None) -> None:
        run = self.open
        if run is None or event.kind is Kind.START:
            return
        looks_new = restarts.between_looks if self.polled else restarts.came_anew
        if looks_new(run, event, phase, self.main_process):
            self.open_next(event).marked = True

    def retold(self, run: OpenRun | None, event: Event) -> OpenRun | None:
        """Forget the runs that a supervisor told of, where the program's own log tells of them anew."""
        if run is not None and restarts.is_retold(self.runs, run, event):
            self.counter = max(len(self.runs), self.counter or 0)
            self.runs, self.open, run = [], None, None
        return run

    # -- starts

    def _start(self, event: Event) -> None:
        rule, run = event.rule, self.open
        assert rule is not None
        # No two starts fall into one moment of the same clock: this is a shipper's copy of the line.
        line = (event.text, event.time, event.pid)
        # A clock since the start tells the same moment in every run.
        if event.time is not None and event.time != event.uptime and line in self.starts:
            self._copying = True
            return
        run = self.retold(run, event)
        if run is None:
            self.open_next(event)
        elif set(rule.unless_seen) & run.seen and run.exit is None and not run.restart_said:
            pass  # a worker of the same start
        elif not self.polled and restarts.is_beside(run, event):
            if run.beside_at is None or rule.order <= run.beside_order:
                run.beside_at, run.beside_order = event.time, rule.order
                run.beside_phases.clear()
        elif rule.repeats:
            died = run.ready and run.dead_line is not None
            replaced = self.polled and (
                restarts.is_replaced(run, event, self.main_process)
                or restarts.came_round(run, event)
            )
            if died or replaced or restarts.is_over(run) or restarts.boots_again(run, event):
                self.open_next(event)
        elif not restarts.continues(run, event):
            self.open_next(event)
        run = self.open
        assert run is not None
        if event.time is not None and len(self.starts) < MAX_RUNS:
            self.starts.add(line)
        node = restarts.node_of(event)
        if node is not None:
            run.nodes.add((node, rule.id))
        run.saw(rule)
        if rule.again_after_failure:
            run.booted_at = event.time
        if not rule.repeats:
            run.max_order = max(run.max_order, rule.order)
        if event.pid is not None and run.main is None:
            run.main, run.led = (event.process, event.pid), not rule.repeats
        run.marked = True
        if not run.start_text:
            run.start_text = event.text
        if run.started_at is None:
            run.started_at = event.time
        self.reach(event.phase or Phase.CONFIG, event)

    def begin(self, event: Event) -> None:
        """Start a run for which there is proof beside the log's lines."""
        run = self.open_next(event)
        run.marked, run.start_text = True, event.text

    def open_next(self, event: Event) -> OpenRun:
        before = self.open
        if before is not None:
            if event.last_time is not None:
                before.last_time = max(event.last_time, before.last_time or event.last_time)
            before.last_line = (
                event.line - 1 if event.line > before.first_line else before.last_line
            )
            self.close(before, followed=True)
        number = len(self.runs) + self.dropped_runs + 1
        run = OpenRun(number, event.line, event.time, marked=False, last_line=event.line)
        run.advance_line, run.advance_at = event.line, event.time
        self.open = run
        return run

    def close(self, run: OpenRun, *, followed: bool) -> None:
        settle(run, followed=followed)
        self.runs.append(run)
        self.open = None
        if len(self.runs) > MAX_RUNS:
            del self.runs[MAX_RUNS // 2]
            self.dropped_runs += 1

    # -- moving forward

    def _phase(self, event: Event) -> None:
        phase = event.phase or (event.rule.phase if event.rule else None) or Phase.UNKNOWN
        seen = self.open.seen if self.open is not None else set()
        if event.rule is not None and set(event.rule.unless_seen) & seen:
            return
        self.reach(phase, event)
        step = event.fields.get("step")
        run = self.open
        if step is not None and run is not None and step != run.step and run.dead_line is None:
            run.step = step
            self._advance(run, event)

    def _progress(self, event: Event) -> None:
        bar = event.bar
        assert bar is not None
        run = self.opened(event)
        state = run.bars.get(bar.label)
        if state is None:
            if len(run.bars) < MAX_BARS:
                run.bars[bar.label] = BarState(bar, event.line, event.line)
            moved = True
        else:
            moved = bar.shape != state.bar.shape
            if bar.at_zero and state.bar.done > 0:
                state.first_line = event.line
            state.bar, state.last_line = bar, event.line
        if event.phase is not None:
            self.reach(event.phase, event)
        if moved:
            self._advance(run, event)

    def reach(self, phase: Phase, event: Event) -> None:
        self.polled_restart(event, phase)
        self.after_exit(event)
        run = self.opened(event)
        if event.rule is not None:
            run.saw(event.rule)
        over = run.ready or run.dead_line is not None or run.goodbye_line is not None
        if (
            over
            and phase in EARLY
            and event.kind is not Kind.START
            and restarts.starts_anew(run, phase, event)
        ):
            self._begin_anew(run, event)
            return
        if phase not in run.spans:
            # Bars carry no time of their own: the last one seen is the nearest truth.
            run.spans[phase] = Span(
                phase, event.line, event.time if event.time is not None else self._last_time
            )
            if run.dead_line is None:
                self._advance(run, event)
        if run.dead_line is None and PHASE_RANK[phase] > PHASE_RANK[run.phase]:
            run.phase = phase

    def _begin_anew(self, run: OpenRun, event: Event) -> None:
        """Open the run whose start-up markers were collected in `run.again`."""
        again = run.again
        new = self.open_next(next(iter(again.values())))
        for reached, by in again.items():
            new.spans[reached] = Span(reached, by.line, by.time)
            new.phase = reached
        new.last_line = event.line
        self._advance(new, event)

    def _advance(self, run: OpenRun, event: Event) -> None:
        if event.time is not None:
            if run.advance_at is not None:
                gap = event.time - run.advance_at
                if gap > run.gaps.get(run.phase, 0.0):
                    run.gaps[run.phase] = gap
            run.advance_at = event.time
        run.advance_line = event.line
        run.notices = 0

    def opened(self, event: Event) -> OpenRun:
        run = self.open
        if run is not None:
            return run
        run = self.open_next(event)
        run.started_at = event.time
        return run

    def _heartbeat(self, event: Event) -> None:
        run = self.opened(event)
        run.notices = run.notices + 1
        run.notice_text = event.text
        run.notice_line = event.line

    # -- readiness

    def serve(self, run: OpenRun, event: Event, certainty: Certainty) -> None:
        if run.dead_line is not None or run.stop_line is not None:
            return
        run.goodbye_line = None  # a worker that left was followed by another
        if run.ready_line is None:
            # uvicorn's lines carry no time: the last one seen is the nearest truth.
            at = event.time if event.time is not None else self._last_time
            run.ready_line, run.ready_at, run.ready_certainty = event.line, at, certainty
            run.ready_text = event.text
            if run.advance_at is not None and at is not None:
                run.advance_at = max(run.advance_at, at)
            self.reach(Phase.SERVING, event)
            run.phase = Phase.SERVING

    def after_exit(self, event: Event) -> None:
        run = self.open
        if run is not None and not self.polled and restarts.speaks_after_exit(run, event):
            self.open_next(event)

    # -- the end

    def finish(self, last_line: int) -> list[OpenRun]:
        """Return all runs, the last one settled as the log's end shows it."""
        if self.open is None:
            return list(self.runs)
        self.open.last_line = max(self.open.last_line, last_line)
        self.open.anonymous = self.anonymous and not self.polled  # looks repeat what there is
        settle(self.open, followed=False)
        return [*self.runs, self.open]


_HANDLERS: Final[dict[Kind, Callable[[Machine, Event], None]]] = {
    Kind.START: Machine._start,
    Kind.PHASE: Machine._phase,
    Kind.PROGRESS: Machine._progress,
    Kind.HEARTBEAT: Machine._heartbeat,
    Kind.READY: readiness.ready,
    Kind.ALIVE: readiness.alive,
    Kind.FAILURE: ending.failure,
    Kind.CASCADE: ending.cascade,
    Kind.STOP: ending.stop,
    Kind.EXIT: ending.exit,
    Kind.RESTART: ending.restart,
    Kind.GAVE_UP: ending.gave_up,
}
