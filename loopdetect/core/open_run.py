"""A run while it is read: everything that was collected about it so far."""

from __future__ import annotations

from dataclasses import dataclass, field

from loopdetect.core.event import Event, Failure
from loopdetect.core.progress import Bar
from loopdetect.model import Certainty, Exit, Outcome, Phase
from loopdetect.profiles.schema import Rule, Speaker


@dataclass(slots=True)
class Span:
    """A phase in an open run."""

    phase: Phase
    line: int
    time: float | None


@dataclass(slots=True)
class BarState:
    """A bar in an open run."""

    bar: Bar
    first_line: int
    last_line: int


@dataclass(slots=True)
class OpenRun:
    """A run that is being read, or was."""

    number: int
    first_line: int
    started_at: float | None
    marked: bool
    last_line: int = 0
    last_time: float | None = None
    last_times: tuple[float, ...] = ()
    back_at: float | None = None
    beside_at: float | None = None
    beside_order: int = 0
    beside_phases: set[Phase] = field(default_factory=set)
    last_uptime: float | None = None
    seen: set[str] = field(default_factory=set)
    spoke_itself: bool = False  # not only its supervisor did
    retold: bool = False
    max_order: int = -1
    start_text: str = ""
    nodes: set[tuple[str, str]] = field(default_factory=set)
    recovered_line: int = 0
    booted_at: float | None = None
    spans: dict[Phase, Span] = field(default_factory=dict)
    phase: Phase = Phase.UNKNOWN
    bars: dict[str, BarState] = field(default_factory=dict)
    ready_line: int | None = None
    ready_at: float | None = None
    ready_text: str = ""
    ready_certainty: Certainty = Certainty.CERTAIN
    ready_cancelled: bool = False
    answered: bool = False
    failures: list[Failure] = field(default_factory=list)
    dead_line: int | None = None
    dead_at: float | None = None
    dead_phase: Phase | None = None
    dead_text: str = ""
    outside: bool = False
    stop_line: int | None = None
    stop_text: str = ""
    stop_phase: Phase | None = None
    goodbye_line: int | None = None
    exit: Exit | None = None
    exit_line: int | None = None
    exit_text: str = ""
    exit_at: float | None = None
    exit_rule: str = ""
    exit_is_last: bool = False
    exit_asked: bool = False
    last_said: Failure | None = None
    restart_said: bool = False
    advance_line: int = 0
    advance_at: float | None = None
    step: str = ""
    notices: int = 0
    notice_text: str = ""
    notice_line: int | None = None
    gaps: dict[Phase, float] = field(default_factory=dict)
    again: dict[Phase, Event] = field(default_factory=dict)
    processes: set[tuple[str | None, str]] = field(default_factory=set)
    last_words: dict[str, str] = field(default_factory=dict)
    last_own: float | None = None
    spoke_last: bool = False
    anonymous: bool = False
    main: tuple[str | None, str] | None = None
    led: bool = False  # `main` is the process of which a start has one
    overlaps: bool = False
    outcome: Outcome = Outcome.UNKNOWN
    certainty: Certainty = Certainty.CERTAIN
    cause: Failure | None = None
    best: Failure | None = None

    def saw(self, rule: Rule) -> None:
        """Note a rule that spoke for a line of this run."""
        self.seen.add(rule.id)
        self.spoke_itself = self.spoke_itself or rule.speaker is not Speaker.SUPERVISOR
        self.retold = self.retold or rule.retells

    @property
    def ready(self) -> bool:
        """True when the run was reachable at some time."""
        return self.ready_line is not None

    @property
    def serving(self) -> bool:
        """True while the run answers requests and nothing spoke of its end."""
        return self.ready and self.answered and self.dead_line is None and not self.ended

    @property
    def ended(self) -> bool:
        """True when something said that the process is gone or going."""
        return (
            self.exit is not None
            or self.restart_said
            or self.goodbye_line is not None
            or self.stop_line is not None
        )
