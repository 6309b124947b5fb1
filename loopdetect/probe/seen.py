"""What a probe saw at one moment, and what a probe is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from loopdetect.core.fusion import Health, Port, Process
from loopdetect.model import Exit


@dataclass(frozen=True, slots=True)
class HealthSeen:
    """One answer of a health check; `status` is the HTTP status where there was one."""

    health: Health
    text: str
    status: int | None = None
    port: Port = Port.UNKNOWN
    owner: str = ""


@dataclass(frozen=True, slots=True)
class ProcessSeen:
    """One look at a process; `started` is when, in seconds since 1970.

    `final` says that nobody will start it again under this name; `exit` is how it left.
    """

    process: Process
    text: str
    pid: int | None = None
    final: bool = True
    started: float | None = None
    exit: Exit | None = None


class HealthProbe(Protocol):
    """Asks whether a server answers; never raises."""

    def __call__(self) -> HealthSeen:
        """Return what was seen just now."""


class ProcessProbe(Protocol):
    """Asks whether a process lives; never raises."""

    def __call__(self) -> ProcessSeen:
        """Return what was seen just now."""
