"""Profiles as values: what is known of one server, rule by rule."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from loopdetect.model import Certainty, Kind, Phase, Shared


class Speaker(StrEnum):
    """Whose words a profile's rules know."""

    SERVER = "server"
    FRAMEWORK = "framework"
    SUPERVISOR = "supervisor"


class Own(StrEnum):
    """What a program that no profile knows says of itself, in words of its own."""

    BEGINS = "begins"
    AT_IT = "at-it"
    COMPLAINS = "complains"
    EXPLAINS = "explains"
    LEAVES = "leaves"


@dataclass(frozen=True, slots=True)
class Rule(Shared):
    """One entry of a profile: how a line is known, and what it tells.

    `holds` are texts of which every match of the pattern holds one, where that can be told.
    """

    id: str
    kind: Kind
    literals: tuple[str, ...]
    pattern: str | None
    level: frozenset[str]
    samples: tuple[str, ...]
    not_samples: tuple[str, ...]
    phase: Phase | None = None
    reason: str | None = None
    certainty: Certainty = Certainty.CERTAIN
    fatal: bool = False
    weak: bool = False
    outside: bool = False
    asked: bool = True
    cancels_ready: bool = False
    repeats: bool = False
    again_after_failure: bool = False
    recovers: bool = False
    order: int = 1
    weight: int = 0
    needs: tuple[str, ...] = ()
    unless_seen: tuple[str, ...] = ()
    while_serving: bool = False
    quotes: bool = False
    summary: str | None = None
    hint: str | None = None
    holds: tuple[str, ...] = ()
    speaker: Speaker = Speaker.SERVER
    own: Own | None = None
    last_word: bool = False
    of_job: bool = False
    retells: bool = False

    @property
    def of_strangers(self) -> bool:
        """True for a rule that counts only where no server is known."""
        return self.own is not None or (self.weak and self.kind is Kind.READY)


@dataclass(frozen=True, slots=True)
class Prefix:
    """What a program's logger puts before the message; `pattern` is anchored at the start."""

    pattern: str
    samples: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Profile:
    """Everything that is known of one server."""

    name: str
    title: str
    extends: tuple[str, ...]
    prefixes: tuple[Prefix, ...]
    rules: tuple[Rule, ...]
    path: str
    main_process: str | None = None
    child_process: str | None = None
    daemon: bool = False
    hosts_engines: bool = False
    frames: tuple[tuple[str, Phase], ...] = ()


@dataclass(frozen=True, slots=True)
class Reason:
    """A failure reason of the closed list."""

    code: str
    kind: str
    title: str
    explanation: str
    hint: str

    @property
    def transient(self) -> bool:
        """True when the next start may well succeed."""
        return self.kind == "transient"
