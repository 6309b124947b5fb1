"""The wait itself: look at the log, look at the probes, judge, show, sleep, again."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Protocol

from loopdetect.core.fusion import Health, Log, Process, Writer
from loopdetect.live.judge import Decision, Judge, Seen, Terms
from loopdetect.live.log_watch import QUIET_S, LogView, LogWatch
from loopdetect.live.status import Display, status_of
from loopdetect.live.tail import Tail
from loopdetect.probe.seen import HealthSeen, ProcessSeen
from loopdetect.probe.writers import started_at, writer_by_start, writer_of

STEP_S: Final = 0.1
MAX_CHUNKS: Final = 16
# A log may be a little behind what the server does.
LAG_S: Final = 2.0
# A process that is older than this was not started for this call.
LONGEST_START_S: Final = 3.0


class Clock(Protocol):
    """Where time comes from."""

    def now(self) -> float:
        """Return seconds on a clock that only goes on."""

    def called_at(self) -> float:
        """Return when the command was called, in seconds since 1970."""

    def sleep(self, seconds: float) -> None:
        """Let time pass."""


class RealClock:
    """The machine's clock."""

    def now(self) -> float:
        """Return seconds on a clock that only goes on."""
        return time.monotonic()

    def called_at(self) -> float:
        """Return when the command was called, in seconds since 1970."""
        now = time.time()
        started = started_at(os.getpid()) or now
        return started if 0 <= now - started <= LONGEST_START_S else now

    def sleep(self, seconds: float) -> None:
        """Let time pass."""
        time.sleep(seconds)


HealthLook = Callable[[], tuple[int, HealthSeen | None]]
ProcessLook = Callable[[], tuple[int, ProcessSeen | None]]


@dataclass(slots=True)
class Wait:
    """One wait; `health` and `process` give the number of looks so far and the latest one.

    `own` says that the process is started for this wait: no run before it ended with it.
    `out_of_reach` tells why nothing can be seen just now, None while all is in sight.
    """

    tail: Tail
    log: LogWatch
    terms: Terms
    display: Display
    clock: Clock
    called: float
    health: HealthLook | None = None
    process: ProcessLook | None = None
    history: bool = True
    writers: Callable[[str, float], Writer] = writer_of
    own: bool = False
    out_of_reach: Callable[[], str | None] | None = None
    _lost_at: float | None = field(default=None, init=False)
    _down_at: float | None = field(default=None, init=False)
    _up_since: float | None = field(default=None, init=False)
    _bad: int = field(default=0, init=False)
    _bad_at: float | None = field(default=None, init=False)
    _writer: Writer = field(default=Writer.UNKNOWN, init=False)
    _writer_at: float | None = field(default=None, init=False)
    _ended: bool = field(default=False, init=False)

    def run(self) -> Decision:
        """Return when the answer is known; raises SourceError."""
        self.begin()
        return self.go_on(Judge(self.terms, self.called))

    def begin(self) -> None:
        """Read what the log holds already, which is history; raises SourceError."""
        while self.read():
            pass
        self.log.mark(self.clock.called_at() if self.history else None, closed=self.own)

    def go_on(self, judge: Judge) -> Decision:
        """Return when the judge knows the answer; raises SourceError."""
        while True:
            began = self.clock.now()
            decision = self.step(judge)
            if decision is not None:
                return decision
            # A look at a long history costs more than one at a short one: most of the time is idle.
            self.clock.sleep(max(STEP_S, 3 * (self.clock.now() - began)))

    def step(self, judge: Judge) -> Decision | None:
        """Look once, judge and show; raises SourceError."""
        seen = self._look()
        now = self.clock.now()
        fused, decision = judge.decide(seen, now, over=self._ended)
        if decision is None:
            self.display.show(status_of(seen, fused, now, self.called))
        return decision

    def read(self) -> bool:
        """Read what there is; True when there is more and the time allows to go on."""
        for _ in range(MAX_CHUNKS):
            look = self.tail.look()
            self.log.feed(look, self.clock.now())
            self._ended = self._ended or look.ended
            if not look.more:
                return False
        return self.clock.now() - self.called < self.terms.timeout

    def _look(self) -> Seen:
        # Probes first: whatever a process wrote before it was seen gone is in the log that follows.
        health = self.health() if self.health else (0, None)
        process = self.process() if self.process else (0, None)
        lost = self.out_of_reach() if self.out_of_reach else None
        self.read()
        now = self._in_sight(lost)
        gone = process[1] is not None and process[1].process in (Process.GONE, Process.STOPPED)
        view = self.log.view(now, gone=gone)
        if view.bad_ends > self._bad:
            self._bad, self._bad_at = view.bad_ends, now
        return Seen(
            log=view,
            health=health[1] if lost is None else None,
            process=process[1] if lost is None else None,
            asked_health=self.health is not None,
            asked_process=self.process is not None,
            rose=self._rose(health[1], view.run_seen_at, now),
            outlived=self._outlived(),
            writer=self._who_writes(view, process[1], now),
            unreachable=lost,
            lasting=self._up_since is not None and now - self._up_since > QUIET_S,
        )

    def _in_sight(self, lost: str | None) -> float:
        """Return the time, which for the log stands still while it cannot be seen."""
        now = self.clock.now()
        if lost is not None:
            self._lost_at = now if self._lost_at is None else self._lost_at
            return self._lost_at
        if self._lost_at is not None:
            self.log.excuse(now - self._lost_at)
            self._lost_at = None
        return now

    def _who_writes(self, view: LogView, process: ProcessSeen | None, now: float) -> Writer:
        """Ask whose log it is, while a ready line from before the call is all that it holds."""
        if view.log is not Log.READY or view.fresh or view.grown or view.modified is None:
            return Writer.UNKNOWN
        if process is not None and process.started is not None:
            return writer_by_start(process.started, view.modified)
        if self.process is None and (self._writer_at is None or now - self._writer_at >= 1.0):
            self._writer = self.writers(self.tail.name, view.modified)
            self._writer_at = now
        return self._writer

    def _rose(self, health: HealthSeen | None, run_seen_at: float, now: float) -> bool:
        if health is None:
            return False
        if health.health is Health.DOWN:
            self._down_at, self._up_since = now, None
        elif health.health is Health.UP and self._up_since is None:
            self._up_since = now
        since = self._up_since
        return self._down_at is not None and since is not None and since >= run_seen_at - LAG_S

    def _outlived(self) -> bool:
        """True when what answers has done so since before the last bad end: another server."""
        return (
            self._up_since is not None
            and self._bad_at is not None
            and self._up_since < self._bad_at
        )
