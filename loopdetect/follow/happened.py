"""The words and values of a watched stream's story."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

from loopdetect.model import Phase, State


class What(StrEnum):
    """What happened."""

    STATE = "state"
    START = "start"
    PHASE = "phase"
    PROGRESS = "progress"
    READY = "ready"
    ERROR = "error"
    CRASH = "crash"
    STOPPED = "stopped"
    RESTART = "restart"
    CRASH_LOOP = "crash-loop"
    STALL = "stall"
    RECOVERY = "recovery"
    REMINDER = "reminder"
    APPEARED = "appeared"
    GONE = "gone"
    ROTATED = "rotated"
    TRUNCATED = "truncated"
    UNREADABLE = "unreadable"
    END = "end"


@dataclass(frozen=True, slots=True)
class Manner:
    """How much is told; times in seconds.

    A death is told once the log is silent for `hold`, at the latest after `hold_most`, so that its
    cause can follow. Somebody is alarmed once it stands for `settle`, so that a restart at once
    makes no noise of its own.
    """

    hold: float = 0.25
    hold_most: float = 3.0
    settle: float = 10.0
    remind: float = 3600.0
    progress_every: float = 30.0
    progress_share: float = 0.25
    progress_least: float = 1.0


@dataclass(frozen=True, slots=True)
class Happened:
    """One event; `at` is when it was seen, in seconds since 1970. `alarm` is for those who act."""

    id: str
    at: float
    source: str
    stream: str | None
    what: What
    text: str
    state: State
    phase: Phase
    run: int | None = None
    line: int | None = None
    reason: str | None = None
    alarm: bool = False
    previous: State | None = None


@dataclass(slots=True)
class Memory:
    """What was told of one stream."""

    begun: bool = False
    count: int = 0
    bytes: int = 0
    run: int = 0
    phases: list[str] = field(default_factory=list)
    ready: bool = False
    over: bool = False
    error: str | None = None
    state: str = "unknown"
    bar: str | None = None
    bar_share: float = 0.0
    bar_at: float = 0.0
    loop: bool = False
    stalled: bool = False
    failed: int = 0
    alarmed: str | None = None
    alarmed_at: float = 0.0
    pending_since: float | None = None
    death_since: float | None = None
    death: int | None = None
    death_bytes: int = 0
    silent_since: float = 0.0
    soft: bool = False

    def saved(self) -> dict[str, Any]:
        """Return it as plain data."""
        return asdict(self)

    @classmethod
    def loaded(cls, data: dict[str, Any]) -> Memory:
        """Return what `saved` gave; keys of other versions are left out."""
        return cls(**{key: value for key, value in data.items() if key in cls.__slots__})
