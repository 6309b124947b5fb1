"""Log, health check and process, put together: one table says who is believed when they disagree.

The rules are read from the top and the first that fits decides, so the order is the order of trust:
a supervisor that gave up, a process that is gone, a bad end in the log, a port that another process
answers on, and only then signs of readiness. Nothing here knows of time; a rule judges one moment.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from loopdetect.model import Certainty, State


class Log(StrEnum):
    """What the log tells at this moment of the run that is waited for."""

    MISSING = "missing"
    SILENT = "silent"
    OVER = "over"
    LOADING = "loading"
    FAILING = "failing"
    READY = "ready"
    STALLED = "stalled"
    STOPPED = "stopped"
    CRASHED = "crashed"
    LOOPING = "crash-looping"


class Health(StrEnum):
    """What the health check tells: 2xx is up, anything else is down."""

    UNASKED = "unasked"
    UNKNOWN = "unknown"
    UP = "up"
    DOWN = "down"


class Port(StrEnum):
    """Whose process answers on the health check's port, where that can be seen."""

    UNKNOWN = "unknown"
    OURS = "ours"
    FOREIGN = "foreign"


class Process(StrEnum):
    """What the operating system or the supervisor tells of the process."""

    UNASKED = "unasked"
    UNKNOWN = "unknown"
    ALIVE = "alive"
    RESTARTING = "restarting"
    STOPPED = "stopped"
    GONE = "gone"
    GAVE_UP = "gave-up"


class Writer(StrEnum):
    """Whether the process that wrote the log still has it open, or only one started since."""

    UNKNOWN = "unknown"
    SAME = "same"
    NEWER = "newer"


@dataclass(frozen=True, slots=True)
class Facts:
    """One moment of all evidence.

    `rose`: health was seen down since this run began; `fresh`: the run began after the call;
    `quiet`: nothing in the log has advanced for a while; `grown`: the log grew since the call;
    `before`: the log holds bad ends; `lasting`: health has been up for a while.
    """

    log: Log
    health: Health = Health.UNASKED
    port: Port = Port.UNKNOWN
    process: Process = Process.UNASKED
    rose: bool = False
    fresh: bool = True
    quiet: bool = False
    grown: bool = True
    before: bool = False
    lasting: bool = False
    writer: Writer = Writer.UNKNOWN


@dataclass(frozen=True, slots=True)
class Fused:
    """What all evidence together says, which rule decided, and on which evidence."""

    state: State
    certainty: Certainty
    rule: str
    decided_by: tuple[str, ...]
    why: str


@dataclass(frozen=True, slots=True)
class FusionRule:
    """Fits facts whose every field is in the set named; an empty set fits all."""

    id: str
    state: State
    certainty: Certainty
    decided_by: tuple[str, ...]
    why: str
    log: frozenset[Log] = frozenset()
    health: frozenset[Health] = frozenset()
    port: frozenset[Port] = frozenset()
    process: frozenset[Process] = frozenset()
    writer: frozenset[Writer] = frozenset()
    rose: bool | None = None
    fresh: bool | None = None
    quiet: bool | None = None
    grown: bool | None = None
    before: bool | None = None
    lasting: bool | None = None

    def fits(self, facts: Facts) -> bool:
        """True when the rule speaks of these facts."""
        sets = (
            (self.log, facts.log),
            (self.health, facts.health),
            (self.port, facts.port),
            (self.process, facts.process),
            (self.writer, facts.writer),
        )
        flags = (
            (self.rose, facts.rose),
            (self.fresh, facts.fresh),
            (self.quiet, facts.quiet),
            (self.grown, facts.grown),
            (self.before, facts.before),
            (self.lasting, facts.lasting),
        )
        return all(not wanted or value in wanted for wanted, value in sets) and all(
            wanted is None or value is wanted for wanted, value in flags
        )


_C, _L, _S = Certainty.CERTAIN, Certainty.LIKELY, Certainty.SUSPECTED
_UP: Final = frozenset({Health.UP})
_GONE: Final = frozenset({Process.GONE})
# A server may exit as if nothing was wrong after its engine died.
_ENDED: Final = frozenset({Process.GONE, Process.STOPPED})
_UNHEARD: Final = frozenset({Health.UNASKED})
_UNTOLD: Final = frozenset({Log.MISSING, Log.SILENT, Log.OVER})
_COMING: Final = frozenset({Log.LOADING, Log.FAILING, Log.STALLED})
_LOG, _HEALTH, _PROCESS, _PORT = "log", "health", "process", "port"

RULES: Final[tuple[FusionRule, ...]] = (
    FusionRule(
        "supervisor-gave-up", State.CRASH_LOOPING, _C, (_PROCESS,),
        "the supervisor gave up starting it again",
        process=frozenset({Process.GAVE_UP}),
    ),
    FusionRule(
        "log-loops", State.CRASH_LOOPING, _C, (_LOG,), "the log shows it dying again and again",
        log=frozenset({Log.LOOPING}),
    ),
    FusionRule(
        "gone-as-asked", State.STOPPED, _C, (_LOG, _PROCESS),
        "the process is gone and the log tells of a stop that somebody asked for",
        log=frozenset({Log.STOPPED}), process=_ENDED,
    ),
    FusionRule(
        "gone-crashed", State.CRASHED, _C, (_LOG, _PROCESS),
        "the log tells of its death and the process is gone",
        log=frozenset({Log.CRASHED}), process=_ENDED,
    ),
    FusionRule(
        "gone-failing", State.CRASHED, _C, (_LOG, _PROCESS),
        "a failure is the last that the log tells, and the process is gone",
        log=frozenset({Log.FAILING}), process=_GONE,
    ),
    FusionRule(
        "gone-but-answered", State.CRASHED, _L, (_PROCESS,),
        "the process is gone; the health check is answered by another one",
        health=_UP, process=_GONE,
    ),
    FusionRule(
        "gone-untold", State.CRASHED, _C, (_PROCESS,),
        "the process is gone, though the log does not tell of its end",
        process=_GONE,
    ),
    FusionRule(
        "unit-stopped", State.STOPPED, _C, (_PROCESS,),
        "it was stopped, or ended by itself; the log tells of no failure",
        process=frozenset({Process.STOPPED}),
    ),
    FusionRule(
        "crashed-restarting", State.LOADING, _L, (_LOG, _PROCESS),
        "it crashed, and the supervisor starts it again",
        log=frozenset({Log.CRASHED, Log.STOPPED}), process=frozenset({Process.RESTARTING}),
    ),
    FusionRule(
        "crashed-but-answered", State.CRASHED, _L, (_LOG,),
        "the log tells of its death; a health check that still succeeds does not outweigh that",
        log=frozenset({Log.CRASHED}), health=_UP,
    ),
    FusionRule(
        "log-crashed", State.CRASHED, _C, (_LOG,), "the log tells of its death",
        log=frozenset({Log.CRASHED}),
    ),
    FusionRule(
        "log-stopped", State.STOPPED, _C, (_LOG,),
        "the log tells of a stop that somebody asked for",
        log=frozenset({Log.STOPPED}),
    ),
    FusionRule(
        "log-of-an-earlier-life", State.LOADING, _L, (_PROCESS,),
        "the log says ready, but the process was started after its last line",
        log=frozenset({Log.READY}), writer=frozenset({Writer.NEWER}), fresh=False, grown=False,
    ),
    FusionRule(
        "foreign-port-ready", State.LOADING, _L, (_PORT,),
        "the log says ready, but another process answers on the port",
        log=frozenset({Log.READY}), health=_UP, port=frozenset({Port.FOREIGN}),
    ),
    FusionRule(
        "ready-and-up", State.READY, _C, (_LOG, _HEALTH),
        "the log and the health check agree",
        log=frozenset({Log.READY}), health=_UP,
    ),
    FusionRule(
        "ready-not-up", State.LOADING, _L, (_HEALTH,),
        "the log says ready, but the health check does not succeed",
        log=frozenset({Log.READY}), health=frozenset({Health.DOWN, Health.UNKNOWN}),
    ),
    FusionRule(
        "log-ready-alive", State.READY, _C, (_LOG, _PROCESS),
        "the log says ready and the process lives",
        log=frozenset({Log.READY}), health=_UNHEARD, process=frozenset({Process.ALIVE}),
    ),
    FusionRule(
        "log-ready-held", State.READY, _L, (_LOG, _PROCESS),
        "the log said so before the wait began, and the process that wrote it still has it open",
        log=frozenset({Log.READY}), health=_UNHEARD, writer=frozenset({Writer.SAME}), fresh=False,
        grown=False,
    ),
    FusionRule(
        "log-ready-old", State.READY, _S, (_LOG,),
        "the log said so before the wait began, and nothing contradicts it; "
        "--health or --pid would tell for certain",
        log=frozenset({Log.READY}), health=_UNHEARD, fresh=False, grown=False,
    ),
    FusionRule(
        "log-ready", State.READY, _L, (_LOG,), "the log says ready",
        log=frozenset({Log.READY}), health=_UNHEARD,
    ),
    FusionRule(
        "foreign-port", State.LOADING, _L, (_PORT,),
        "the health check succeeds, but another process answers on the port",
        health=_UP, port=frozenset({Port.FOREIGN}),
    ),
    FusionRule(
        "own-port-up", State.READY, _C, (_HEALTH, _PORT),
        "the health check succeeds, and it is the process itself that answers",
        health=_UP, port=frozenset({Port.OURS}),
    ),
    FusionRule(
        "up-after-down", State.READY, _L, (_HEALTH,),
        "the health check succeeds since this start, though the log does not say ready",
        health=_UP, rose=True,
    ),
    FusionRule(
        "up-in-silence", State.READY, _S, (_HEALTH,),
        "the health check keeps succeeding and the log, of an unknown server, tells nothing else",
        log=frozenset({Log.SILENT}), health=_UP, lasting=True,
    ),
    FusionRule(
        "up-and-standing-still", State.READY, _S, (_HEALTH,),
        "the health check succeeds and nothing in the log moves any more",
        log=_COMING, health=_UP, fresh=False, quiet=True, before=False,
    ),
    FusionRule(
        "up-too-early", State.LOADING, _L, (_LOG,),
        "the health check succeeded before this start: something else may answer on the port",
        log=frozenset({Log.LOADING, Log.FAILING}), health=_UP,
    ),
    FusionRule(
        "log-stalled", State.STALLED, _L, (_LOG,), "nothing in the log has advanced for too long",
        log=frozenset({Log.STALLED}),
    ),
    FusionRule(
        "log-failing", State.LOADING, _S, (_LOG,),
        "the log shows a failure that it may still recover from",
        log=frozenset({Log.FAILING}),
    ),
    FusionRule(
        "log-loading", State.LOADING, _L, (_LOG,), "the log shows it loading",
        log=frozenset({Log.LOADING}),
    ),
    FusionRule(
        "up-but-nothing-started", State.UNKNOWN, _S, (_LOG,),
        "the health check succeeds, but the log shows no start: something else may answer",
        log=_UNTOLD, health=_UP,
    ),
    FusionRule(
        "alive-unlogged", State.LOADING, _S, (_PROCESS,),
        "the process lives; the log tells nothing yet",
        log=_UNTOLD, process=frozenset({Process.ALIVE, Process.RESTARTING}),
    ),
    FusionRule(
        "nothing-yet", State.UNKNOWN, _S, (), "nothing has started yet",
        log=_UNTOLD,
    ),
)  # fmt: skip


def fuse(facts: Facts, rules: Iterable[FusionRule] = RULES) -> Fused:
    """Return what the facts of one moment say together."""
    for rule in rules:
        if rule.fits(facts):
            return Fused(rule.state, rule.certainty, rule.id, rule.decided_by, rule.why)
    raise LookupError(f"no rule for {facts}")
