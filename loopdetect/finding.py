"""What a check found: values that the check makes and the renderers show."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum


class Level(StrEnum):
    """An error is something wrong; a warning is a log in which nothing was recognised."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Acceptance:
    """Why a known failure is let through, and until which day (ISO date), if not for ever."""

    because: str
    expires: str | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is not as it should be; `line` is a physical line of the log, from 1."""

    path: str
    line: int
    reason: str
    message: str
    fingerprint: str
    stream: str | None = None
    title: str = ""
    hint: str = ""
    level: Level = Level.ERROR
    accepted: Acceptance | None = None

    @property
    def order(self) -> tuple[str, int, str, str]:
        """What findings are sorted by."""
        return (self.path, self.line, self.reason, self.message)


@dataclass(frozen=True, slots=True)
class CheckedLog:
    """One log after its check; `problem` says why it could not be checked to its end."""

    path: str
    states: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    problem: str | None = None
    hint: str | None = None

    @property
    def open(self) -> tuple[Finding, ...]:
        """The findings that nobody has accepted."""
        return tuple(finding for finding in self.findings if finding.accepted is None)

    def under(self, path: str) -> CheckedLog:
        """Return the same under another path."""
        moved = tuple(
            replace(finding, path=path) if finding.path == self.path else finding
            for finding in self.findings
        )
        return replace(self, path=path, findings=moved)
