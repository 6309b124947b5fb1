"""Values that every part of loopdetect shares: words, events, runs, verdicts, reports.

Nothing here does anything. The closed lists are the ones scripts may rely on; values are
spelled in kebab-case exactly as the JSON report prints them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Final, Self


class Shared:
    """A value that never changes: copies of what holds it share it."""

    __slots__ = ()

    def __deepcopy__(self, memo: object) -> Self:
        return self


class State(StrEnum):
    """What a server is doing at the end of its log."""

    LOADING = "loading"
    READY = "ready"
    STALLED = "stalled"
    STOPPED = "stopped"
    CRASHED = "crashed"
    CRASH_LOOPING = "crash-looping"
    UNKNOWN = "unknown"


# A server that is in one of these has failed and is not coming up.
FAILED: Final = frozenset({State.CRASHED, State.CRASH_LOOPING})


class Certainty(StrEnum):
    """How much a claim rests on: a program's own words, several soft signs, or one."""

    CERTAIN = "certain"
    LIKELY = "likely"
    SUSPECTED = "suspected"


class Outcome(StrEnum):
    """How one run ended, or what it is doing now."""

    READY = "ready"
    LOADING = "loading"
    STALLED = "stalled"
    STOPPED = "stopped"
    CRASHED = "crashed"
    KILLED = "killed"
    CUT_OFF = "cut-off"
    UNKNOWN = "unknown"


class Phase(StrEnum):
    """How far a start-up got; the members stand in the order of a start-up."""

    UNKNOWN = "unknown"
    CONFIG = "config"
    DOWNLOAD = "download"
    DEVICE_INIT = "device-init"
    DIST_INIT = "dist-init"
    LOAD_WEIGHTS = "load-weights"
    LOAD_DRAFT = "load-draft"
    LORA_LOAD = "lora-load"
    COMPILE = "compile"
    KV_CACHE = "kv-cache"
    GRAPH_CAPTURE = "graph-capture"
    WARMUP = "warmup"
    BIND = "bind"
    SERVING = "serving"
    SHUTDOWN = "shutdown"

    @property
    def spoken(self) -> str:
        """The phase as a sentence names it after "in"."""
        return "an unknown phase" if self is Phase.UNKNOWN else self.value


PHASE_RANK: Final = MappingProxyType({phase: rank for rank, phase in enumerate(Phase)})


class Kind(StrEnum):
    """What a recognised line tells; also the table names in a profile."""

    IDENTIFY = "identify"
    START = "start"
    PHASE = "phase"
    PROGRESS = "progress"
    READY = "ready"
    ALIVE = "alive"
    HEARTBEAT = "heartbeat"
    FAILURE = "failure"
    CASCADE = "cascade"
    HARMLESS = "harmless"
    REQUEST_ERROR = "request-error"
    STOP = "stop"
    EXIT = "exit"
    RESTART = "restart"
    GAVE_UP = "gave-up"


@dataclass(frozen=True, slots=True)
class Progress:
    """One progress bar: `done` of `total` steps, times in seconds; `points` are (time, done)."""

    label: str
    done: float
    total: float | None
    elapsed_s: float | None
    remaining_s: float | None
    first_line: int
    last_line: int
    points: tuple[tuple[float, float], ...] = ()

    @property
    def finished(self) -> bool:
        """True when the last step was reported."""
        return self.total is not None and self.done >= self.total


@dataclass(frozen=True, slots=True)
class Evidence:
    """A line that supports a claim."""

    line: int
    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class Cause:
    """The line that is the true root of a failure, with what to do about it."""

    line: int
    text: str
    reason: str
    hint: str
    certainty: Certainty
    fingerprint: str
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Exit:
    """How the process left, where something said so; `signal` is a name such as SIGKILL."""

    code: int | None = None
    signal: str | None = None


@dataclass(frozen=True, slots=True)
class PhaseSpan:
    """One phase of one run; `started_at` is seconds since 1970 on the log's own clock."""

    phase: Phase
    line: int
    started_at: float | None
    duration_s: float | None


@dataclass(frozen=True, slots=True)
class Run:
    """One life of the server, from its start to its end."""

    number: int
    first_line: int
    last_line: int
    started_at: float | None
    ended_at: float | None
    duration_s: float | None
    phase: Phase
    ready_after_s: float | None
    ready: bool
    outcome: Outcome
    exit: Exit
    cause: Cause | None
    fingerprint: str | None
    phases: tuple[PhaseSpan, ...] = ()
    progress: tuple[Progress, ...] = ()
    arguments: tuple[tuple[str, str], ...] = ()
    free_memory_gib: float | None = None

    @property
    def reached(self) -> tuple[object, ...]:
        """What changes when the run gets further: heartbeats and repeated notices do not."""
        bars = tuple((bar.label, bar.done, bar.total) for bar in self.progress)
        return (
            self.number,
            tuple(span.phase for span in self.phases),
            bars,
            self.ready,
            self.outcome,
        )


@dataclass(frozen=True, slots=True)
class Server:
    """Which program wrote the log."""

    name: str | None
    title: str
    version: str | None


@dataclass(frozen=True, slots=True)
class Verdict:
    """What loopdetect says of one stream, with what it rests on."""

    state: State
    certainty: Certainty
    summary: str
    restarts: int | None
    crashes: int
    ready_seen: bool | None
    phase: Phase
    cause: Cause | None
    first_cause: Cause | None
    evidence: tuple[Evidence, ...]
    since: float | None = None
    since_line: int | None = None
    rule: str | None = None


@dataclass(frozen=True, slots=True)
class Unmatched:
    """A line that looks like an error and that no rule knows, with how often its like came."""

    line: int
    text: str
    count: int


@dataclass(frozen=True, slots=True)
class SourceFile:
    """One file of a history that is spread over several; lines count through all of them."""

    name: str
    first_line: int


@dataclass(frozen=True, slots=True)
class Report:
    """Everything that is known of one stream of one source."""

    source: str
    stream: str | None
    kind: str
    lines: int
    bytes: int
    server: Server
    verdict: Verdict
    runs: tuple[Run, ...]
    clock: str | None = None
    notes: tuple[str, ...] = ()
    files: tuple[SourceFile, ...] = ()
    unmatched: tuple[Unmatched, ...] = ()
    policy: Policy | None = None


@dataclass(frozen=True, slots=True)
class Policy(Shared):
    """The numbers that the rules use; times in seconds."""

    loop_after: int = 2
    loop_after_mixed: int = 3
    loop_after_transient: int = 3
    stable_after: float | None = None
    stable_floor: float = 120.0
    stable_ceiling: float = 1800.0
    stable_if_never_ready: float = 600.0
    stall_after: float = 300.0
    stall_after_by_phase: MappingProxyType[Phase, float] = field(
        default_factory=lambda: MappingProxyType(
            {Phase.COMPILE: 2700.0, Phase.GRAPH_CAPTURE: 900.0}
        )
    )
    stall_gap_factor: float = 3.0
    notices_before_floor_falls: int = 5
