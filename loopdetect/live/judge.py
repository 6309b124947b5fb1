"""When is the answer known? Fused evidence over time: grace, settling, tolerance, limits.

A bad end must hold for a moment, since a supervisor may start the server again at once and the true
cause may still be on its way into the log. Readiness must hold for `settle`. Time is an argument.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from loopdetect.core.fusion import Facts, Fused, Health, Log, Port, Process, Writer, fuse
from loopdetect.live.log_watch import LogView
from loopdetect.model import Certainty, State
from loopdetect.probe.seen import HealthSeen, ProcessSeen

GRACE_S: Final = 1.4
BRIEF_S: Final = 0.4
# One soft sign of readiness, from before the call: a new start would have shown itself by then.
DOUBT_S: Final = 10.0


class Ending(StrEnum):
    """Why the wait is over."""

    REACHED = "reached"
    CRASHED = "crashed"
    STOPPED = "stopped"
    CRASH_LOOPING = "crash-looping"
    STALLED = "stalled"
    TIME_LIMIT = "time-limit"
    UNDECIDED = "undecided"


ENDINGS: Final = {
    State.CRASHED: Ending.CRASHED,
    State.STOPPED: Ending.STOPPED,
    State.CRASH_LOOPING: Ending.CRASH_LOOPING,
    State.STALLED: Ending.STALLED,
}
_HOLD_S: Final = {
    Ending.CRASHED: GRACE_S,
    Ending.STOPPED: GRACE_S,
    Ending.CRASH_LOOPING: BRIEF_S,
    Ending.STALLED: 0.0,
}
# A state that is reached on the way to another one also counts.
_PAST: Final = {State.LOADING: (State.LOADING, State.READY)}


@dataclass(frozen=True, slots=True)
class Terms:
    """What is waited for and how long, in seconds; `tolerate` None leaves it to the loop rule."""

    until: State = State.READY
    timeout: float = 900.0
    settle: float = 0.0
    tolerate: int | None = None


@dataclass(frozen=True, slots=True)
class Seen:
    """All evidence at one moment."""

    log: LogView
    health: HealthSeen | None = None
    process: ProcessSeen | None = None
    asked_health: bool = False
    asked_process: bool = False
    rose: bool = False
    outlived: bool = False
    lasting: bool = False
    writer: Writer = Writer.UNKNOWN
    unreachable: str | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    """The end of a wait; `waited_s` since the call, `served_s` how long it was ready before."""

    ending: Ending
    fused: Fused
    seen: Seen
    waited_s: float
    served_s: float | None = None
    settling: bool = False


def facts_of(seen: Seen) -> Facts:
    """Return the evidence in the words of the rules."""
    health = Health.UNASKED
    port = Port.UNKNOWN
    if seen.asked_health:
        health = seen.health.health if seen.health else Health.UNKNOWN
        port = seen.health.port if seen.health else Port.UNKNOWN
    process = Process.UNASKED
    if seen.asked_process:
        process = seen.process.process if seen.process else Process.UNKNOWN
    return Facts(
        log=seen.log.log,
        health=health,
        port=Port.FOREIGN if seen.outlived and port is Port.UNKNOWN else port,
        process=process,
        rose=seen.rose,
        fresh=seen.log.fresh,
        quiet=seen.log.quiet,
        grown=seen.log.grown,
        before=seen.log.before,
        lasting=seen.lasting,
        writer=seen.writer,
    )


class Judge:
    """Holds what was said until it counts."""

    def __init__(self, terms: Terms, called: float) -> None:
        self._terms = terms
        self._called = called
        self._pending: Ending | None = None
        self._since = called
        self._ready_at: float | None = None

    def decide(
        self, seen: Seen, now: float, *, over: bool = False
    ) -> tuple[Fused, Decision | None]:
        """Return what the evidence says, and the decision if there is one.

        `over` says that no more evidence will come.
        """
        fused = self._fused(seen)
        if fused.state is State.READY:
            self._ready_at = now if self._ready_at is None else self._ready_at
        elif fused.state in (State.LOADING, State.UNKNOWN):
            self._ready_at = None
        ending = self._ending(fused, seen, now)
        if ending is not self._pending:
            self._pending, self._since = ending, now
        waited = now - self._called
        limit = waited >= self._terms.timeout
        if ending is None:
            if not (over or limit):
                return fused, None
            last = Ending.UNDECIDED if over else Ending.TIME_LIMIT
            return fused, Decision(last, fused, seen, waited)
        held = now - self._since
        if held >= self._hold(ending, fused, seen):
            return fused, Decision(ending, fused, seen, waited, self._served(ending, now))
        if not (over or limit):
            return fused, None
        if ending is Ending.REACHED and limit and held < self._terms.settle:
            return fused, Decision(Ending.TIME_LIMIT, fused, seen, waited, settling=True)
        return fused, Decision(ending, fused, seen, waited, self._served(ending, now))

    def _served(self, ending: Ending, now: float) -> float | None:
        if ending is Ending.REACHED or self._ready_at is None:
            return None
        return max(0.0, self._since - self._ready_at)

    def _fused(self, seen: Seen) -> Fused:
        if seen.unreachable is not None:
            # Whatever was seen last may be over by now, the good and the bad.
            return Fused(State.UNKNOWN, Certainty.SUSPECTED, "out-of-reach", (), seen.unreachable)
        fused = fuse(facts_of(seen))
        log = seen.log
        if fused.state is State.LOADING and log.log is Log.READY and log.quiet_s >= log.allowed_s:
            return replace(
                fused, state=State.STALLED, certainty=Certainty.LIKELY, rule=f"{fused.rule}-long"
            )
        return fused

    def _ending(self, fused: Fused, seen: Seen, now: float) -> Ending | None:
        terms = self._terms
        if fused.state in _PAST.get(terms.until, (terms.until,)):
            return Ending.REACHED
        ending = ENDINGS.get(fused.state)
        if ending not in (Ending.CRASHED, Ending.CRASH_LOOPING) or terms.tolerate is None:
            return ending
        if fused.rule not in ("log-loops", "log-crashed", "crashed-but-answered") or seen.log.hit:
            return ending
        if seen.log.bad_ends > terms.tolerate:
            return ending
        # Tolerated, as long as something may still start it again.
        return Ending.CRASHED if seen.log.quiet_s >= seen.log.allowed_s else None

    def _hold(self, ending: Ending, fused: Fused, seen: Seen) -> float:
        if ending is Ending.REACHED:
            brief = 0.0 if "health" in fused.decided_by else BRIEF_S
            doubt = DOUBT_S if fused.rule == "log-ready-old" else 0.0
            return max(self._terms.settle, brief, doubt)
        gone = seen.process is not None and seen.process.process is Process.GONE
        if gone and seen.process is not None and seen.process.final:
            return BRIEF_S
        if ending is Ending.CRASHED and self._terms.tolerate is not None:
            return BRIEF_S
        return _HOLD_S[ending]
