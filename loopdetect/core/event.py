"""What the reading of one line told: the unit that the run machine folds."""

from __future__ import annotations

from dataclasses import dataclass, field

from loopdetect.core.progress import Bar
from loopdetect.model import Kind, Phase, Shared
from loopdetect.profiles import Rule


@dataclass(frozen=True, slots=True)
class Failure(Shared):
    """A candidate for the cause: what was said, and how much it explains."""

    line: int
    text: str
    reason: str
    fatal: bool = False
    weak: bool = False
    outside: bool = False
    vague: bool = False
    of_request: bool = False
    until: int = 0
    cancels_ready: bool = False
    while_serving: bool = False
    phase: Phase | None = None
    hint: str | None = None


@dataclass(frozen=True, slots=True)
class Event(Shared):
    """Something recognised at one line.

    `time` is in seconds on the stream's clock, `own` the line's own stamp where another clock was
    chosen, `uptime` seconds since the process started. `ends` marks a program's last word, such as
    an uncaught exception of its main module.
    """

    kind: Kind
    line: int
    text: str
    time: float | None = None
    own: float | None = None
    uptime: float | None = None
    ends: bool = False
    process: str | None = None
    pid: str | None = None
    node: str | None = None
    rule: Rule | None = None
    fields: dict[str, str] = field(default_factory=dict)
    phase: Phase | None = None
    bar: Bar | None = None
    failure: Failure | None = None
    last_time: float | None = None
    words: Failure | None = None
