"""The run machine: a fold of events into runs.

One run is open at a time. A start marker opens the next one when the sequence of markers begins
again; everything else adds to the open run: phases and bars move it forward, a ready line makes
it serve, failures are collected as candidates, fatal lines end it, stops and exits say how it
left. What a run was is decided once, when it closes, from all that was collected.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from loopdetect.core.event import Event, Failure
from loopdetect.core.fingerprint import mask
from loopdetect.core.progress import Bar
from loopdetect.model import PHASE_RANK, Certainty, Exit, Kind, Outcome, Phase

MAX_FAILURES: Final = 64
MAX_PROCESSES: Final = 256
MAX_BARS: Final = 24
MAX_RUNS: Final = 5000
CONCURRENT_S: Final = 3.0
SYMPTOMS: Final = frozenset({"worker-died", "engine-died", "killed-signal", "peer-died"})
BURST_LINES: Final = 400
SAME_STORY_LINES: Final = 12
_EARLY: Final = frozenset(
    {Phase.CONFIG, Phase.DOWNLOAD, Phase.DEVICE_INIT, Phase.DIST_INIT, Phase.LOAD_WEIGHTS}
)
_ASKED_SIGNALS: Final = frozenset({"SIGTERM", "SIGINT", "SIGHUP"})
SIGNALS: Final = {
    1: "SIGHUP", 2: "SIGINT", 3: "SIGQUIT", 4: "SIGILL", 5: "SIGTRAP", 6: "SIGABRT", 7: "SIGBUS",
    8: "SIGFPE", 9: "SIGKILL", 11: "SIGSEGV", 13: "SIGPIPE", 15: "SIGTERM",
}  # fmt: skip
_SIGNAL_WORDS: Final = {
    "killed": "SIGKILL", "terminated": "SIGTERM", "segmentation fault": "SIGSEGV", "aborted": "SIGABRT",
    "abort": "SIGABRT", "bus error": "SIGBUS", "illegal instruction": "SIGILL", "interrupt": "SIGINT",
    "quit": "SIGQUIT", "hangup": "SIGHUP", "floating point exception": "SIGFPE", "segv": "SIGSEGV",
    "out of memory": "SIGKILL",
}  # fmt: skip
_CRASH_SIGNALS: Final = {
    "SIGSEGV": "segfault", "SIGABRT": "abort", "SIGBUS": "segfault", "SIGILL": "illegal-instruction",
    "SIGFPE": "abort", "SIGTRAP": "abort",
}  # fmt: skip


def signal_name(text: str) -> str | None:
    """Return SIGKILL for '9', 'KILL', '9/KILL', 'SIGKILL' or 'Killed'; None if it is no signal."""
    word = text.strip().lower()
    if word in _SIGNAL_WORDS:
        return _SIGNAL_WORDS[word]
    match = re.match(r"-?(\d+)", word)
    if match:
        return SIGNALS.get(int(match[1]))
    name = "SIG" + word.removeprefix("sig").upper()
    return name if name in SIGNALS.values() else None


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
    """A run that is being read, or was; see `close`."""

    number: int
    first_line: int
    started_at: float | None
    marked: bool
    last_line: int = 0
    last_time: float | None = None
    last_uptime: float | None = None
    seen: set[str] = field(default_factory=set)
    max_order: int = -1
    start_text: str = ""
    start_pid: str | None = None
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
    exit_asked: bool = False
    last_said: Failure | None = None
    restart_said: bool = False
    advance_line: int = 0
    advance_at: float | None = None
    notices: int = 0
    notice_text: str = ""
    notice_line: int | None = None
    gaps: dict[Phase, float] = field(default_factory=dict)
    again: dict[Phase, Event] = field(default_factory=dict)
    processes: set[tuple[str | None, str]] = field(default_factory=set)
    last_words: dict[str, str] = field(default_factory=dict)
    last_own: float | None = None
    spoke_last: bool = False
    outcome: Outcome = Outcome.UNKNOWN
    certainty: Certainty = Certainty.CERTAIN
    cause: Failure | None = None
    best: Failure | None = None

    @property
    def ready(self) -> bool:
        """True when the run was reachable at some time."""
        return self.ready_line is not None

    @property
    def ended(self) -> bool:
        """True when something said that the process is gone or going."""
        return self.exit is not None or self.restart_said or self.goodbye_line is not None or self.stop_line is not None


class Machine:
    """Folds the events of one stream; `runs` holds the closed ones, `open` the last."""

    def __init__(self) -> None:
        self.runs: list[OpenRun] = []
        self.open: OpenRun | None = None
        self.counter: int | None = None
        self.gave_up: Event | None = None
        self.dropped_runs = 0
        self._starts: set[tuple[str, float | None, str | None]] = set()
        self._last_time: float | None = None
        self.polled = False
        self.anonymous = False
        self.main_process: re.Pattern[str] | None = None

    def __deepcopy__(self, memo: dict[int, object]) -> Machine:
        """Copy what may still change: the open run and the lists, not the runs that are over."""
        twin = copy.copy(self)
        twin.runs = list(self.runs)
        twin.open = copy.deepcopy(self.open, memo)
        twin._starts = set(self._starts)
        return twin

    def fold(self, event: Event) -> None:
        """Add one event."""
        handler = _HANDLERS.get(event.kind)
        if handler is None or self._of_another_run(event):
            return
        handler(self, event)
        self._remember_process(event)
        run = self.open
        if run is not None:
            run.last_line = max(run.last_line, event.line)
            if event.time is not None:
                run.last_time = event.time
            if event.uptime is not None:
                run.last_uptime = event.uptime
        if event.time is not None:
            self._last_time = event.time

    # -- processes

    def _of_another_run(self, event: Event) -> bool:
        """True for a late line of a process that belonged to the run before (an orphan)."""
        if event.pid is None or not self.runs or self.open is None:
            return False
        who = (event.process, event.pid)
        return who in self.runs[-1].processes and who not in self.open.processes and bool(self.open.processes)

    def _remember_process(self, event: Event) -> None:
        if event.pid is not None and self.open is not None and len(self.open.processes) < MAX_PROCESSES:
            self.open.processes.add((event.process, event.pid))

    def _polled_restart(self, event: Event, phase: Phase | None) -> None:
        """In the snapshots of a polling loop a start may fall between two looks: see it by what it left."""
        run = self.open
        if not self.polled or run is None or event.kind is Kind.START:
            return
        names = {name for name, _ in run.processes}
        new_pid = (
            event.pid is not None
            and event.process is not None
            and self.main_process is not None
            and self.main_process.fullmatch(event.process) is not None
            and event.process in names
            and (event.process, event.pid) not in run.processes
        )
        fell = (
            phase is not None
            and PHASE_RANK[Phase.UNKNOWN] < PHASE_RANK[phase] <= PHASE_RANK[Phase.DIST_INIT]
            and PHASE_RANK[run.phase] >= PHASE_RANK[Phase.LOAD_WEIGHTS]
        )
        again = (
            run.dead_line is not None
            and event.rule is not None
            and event.rule.id in run.last_words
            and run.last_words[event.rule.id] != event.text
            and (event.own is None or run.last_own is None or event.own - run.last_own > CONCURRENT_S)
        )
        clock_fell = event.uptime is not None and run.last_uptime is not None and event.uptime < run.last_uptime
        if new_pid or fell or again or clock_fell:
            self._begin(event)
            assert self.open is not None
            self.open.marked = True

    # -- starts

    def _start(self, event: Event) -> None:
        rule, run = event.rule, self.open
        assert rule is not None
        copy = (event.text, event.time, event.pid)
        if _distinct(event) and copy in self._starts:
            return  # a shipper's copy of the same line
        if run is None:
            self._begin(event)
        elif set(rule.unless_seen) & run.seen and run.exit is None and not run.restart_said:
            pass  # a worker of the same start
        elif rule.repeats:
            if self._is_over(run):
                self._begin(event)
        elif not self._continues(event, run):
            self._begin(event)
        run = self.open
        assert run is not None
        if _distinct(event) and len(self._starts) < MAX_RUNS:
            self._starts.add(copy)
        run.seen.add(rule.id)
        if not rule.repeats:
            run.max_order = max(run.max_order, rule.order)
        run.marked = True
        if not run.start_text:
            run.start_text = event.text
        if run.started_at is None:
            run.started_at = event.time
        self._reach(event.phase or Phase.CONFIG, event)

    def begin(self, event: Event) -> None:
        """Start a run for which there is proof beside the log's lines."""
        self._begin(event)
        assert self.open is not None
        self.open.marked, self.open.start_text = True, event.text

    def _is_over(self, run: OpenRun) -> bool:
        return run.exit is not None or run.restart_said or (run.stop_line is not None) or (
            run.goodbye_line is not None and run.ready
        )

    def _continues(self, event: Event, run: OpenRun) -> bool:
        """Is this marker the next one of the start sequence that the open run is in?"""
        rule = event.rule
        assert rule is not None
        if self._is_over(run) or run.dead_line is not None:
            return False
        early = PHASE_RANK[run.phase] <= PHASE_RANK[Phase.CONFIG] and not run.failures
        gap = None
        if event.time is not None and run.started_at is not None:
            gap = event.time - run.started_at
        if rule.order > run.max_order and rule.id not in run.seen:
            return not run.ready
        if rule.order < run.max_order and rule.order == 0 and early and rule.id not in run.seen:
            return gap is None or abs(gap) <= CONCURRENT_S  # a supervisor's word a moment after the program's first
        # The same marker again within moments, nothing in between: nodes that share one log.
        return early and gap is not None and 0 <= gap <= CONCURRENT_S and rule.order > 0 and rule.id in run.seen and run.exit is None

    def _begin(self, event: Event) -> None:
        before = self.open
        if before is not None:
            if event.last_time is not None:
                before.last_time = max(event.last_time, before.last_time or event.last_time)
            before.last_line = event.line - 1 if event.line > before.first_line else before.last_line
            self._close(before, followed=True)
        number = len(self.runs) + self.dropped_runs + 1
        self.open = OpenRun(number, event.line, event.time, marked=False, last_line=event.line)
        self.open.advance_line, self.open.advance_at = event.line, event.time
        self.open.start_pid = event.pid

    def _close(self, run: OpenRun, *, followed: bool) -> None:
        settle(run, followed=followed)
        self.runs.append(run)
        self.open = None
        if len(self.runs) > MAX_RUNS:
            del self.runs[MAX_RUNS // 2]
            self.dropped_runs += 1

    # -- moving forward

    def _phase(self, event: Event) -> None:
        phase = event.phase or (event.rule.phase if event.rule else None) or Phase.UNKNOWN
        if event.rule is not None and self.open is not None:
            if set(event.rule.unless_seen) & self.open.seen:
                return
        self._reach(phase, event)

    def _progress(self, event: Event) -> None:
        bar = event.bar
        assert bar is not None
        run = self._opened(event)
        state = run.bars.get(bar.label)
        if state is None:
            if len(run.bars) < MAX_BARS:
                run.bars[bar.label] = BarState(bar, event.line, event.line)
            moved = True
        else:
            moved = bar.shape != state.bar.shape
            if bar.at_zero and state.bar.done > 0:
                state.first_line = event.line
            state.bar, state.last_line = bar, event.line
        if event.phase is not None:
            self._reach(event.phase, event)
        if moved:
            self._advance(run, event)

    def _reach(self, phase: Phase, event: Event) -> None:
        self._polled_restart(event, phase)
        self._after_exit(event)
        run = self._opened(event)
        if event.rule is not None:
            run.seen.add(event.rule.id)
        if (run.ready or run.dead_line is not None or run.goodbye_line is not None) and phase in _EARLY and event.kind is not Kind.START:
            if self._soft_restart(run, phase, event):
                return
        if phase not in run.spans:
            # Bars carry no time of their own: the last one seen is the nearest truth.
            run.spans[phase] = Span(phase, event.line, event.time if event.time is not None else self._last_time)
            if run.dead_line is None:
                self._advance(run, event)
        if run.dead_line is None and PHASE_RANK[phase] > PHASE_RANK[run.phase]:
            run.phase = phase

    def _soft_restart(self, run: OpenRun, phase: Phase, event: Event) -> bool:
        """Start-up markers that come again in order, after ready or death, are a new run too."""
        if run.dead_line is not None and event.line - run.dead_line < 3:
            return False
        if event.rule is not None and event.rule.kind is Kind.PROGRESS and event.bar is not None and not event.bar.at_zero:
            return False
        ended = run.dead_at if run.dead_at is not None else run.ready_at
        if event.time is not None and ended is not None and event.time < ended:
            return False  # a shipper's copy of what was already told
        run.again.setdefault(phase, event)
        ranks = [PHASE_RANK[p] for p in run.again]
        if len(ranks) < 2 or ranks != sorted(ranks):
            return False
        if run.dead_line is not None and not run.ready and not _later(run, event):
            return False
        again = run.again
        first = next(iter(again.values()))
        self._begin(first)
        new = self.open
        assert new is not None
        for reached, by in again.items():
            new.spans[reached] = Span(reached, by.line, by.time)
            new.phase = reached
        new.last_line = event.line
        self._advance(new, event)
        return True

    def _advance(self, run: OpenRun, event: Event) -> None:
        if event.time is not None:
            if run.advance_at is not None:
                gap = event.time - run.advance_at
                if gap > run.gaps.get(run.phase, 0.0):
                    run.gaps[run.phase] = gap
            run.advance_at = event.time
        run.advance_line = event.line
        run.notices = 0

    def _opened(self, event: Event) -> OpenRun:
        if self.open is None:
            self._begin(event)
            assert self.open is not None
            self.open.started_at = event.time
        return self.open

    def _heartbeat(self, event: Event) -> None:
        run = self._opened(event)
        run.notices = run.notices + 1
        run.notice_text = event.text
        run.notice_line = event.line

    # -- readiness

    def _ready(self, event: Event) -> None:
        run, rule = self._opened(event), event.rule
        if rule is None:  # a health check said so
            self._answer(run, event)
            return
        run.seen.add(rule.id)
        if rule.needs and not set(rule.needs) & run.seen:
            return
        self._serve(run, event, rule.certainty)

    def _answer(self, run: OpenRun, event: Event) -> None:
        if run.dead_line is not None or run.ended:
            self._begin(event)
            run = self._opened(event)
            run.marked = True
        self._serve(run, event, Certainty.CERTAIN)

    def _alive(self, event: Event) -> None:
        run = self._opened(event)
        if run.dead_line is None and run.stop_line is None and run.goodbye_line is None:
            run.answered = True
            if not run.ready_cancelled:
                self._serve(run, event, Certainty.LIKELY)

    def _serve(self, run: OpenRun, event: Event, certainty: Certainty) -> None:
        if run.dead_line is not None or run.stop_line is not None:
            return
        run.goodbye_line = None  # a worker that left was followed by another
        if run.ready_line is None:
            # uvicorn's lines carry no time: the last one seen is the nearest truth.
            at = event.time if event.time is not None else self._last_time
            run.ready_line, run.ready_at, run.ready_certainty = event.line, at, certainty
            run.ready_text = event.text
            if run.advance_at is not None and at is not None:
                run.advance_at = max(run.advance_at, at)
            self._reach(Phase.SERVING, event)
            run.phase = Phase.SERVING

    # -- failing and ending

    def _last_word(self, event: Event) -> None:
        """A program ends once: a second last word is another run, though nothing told of its start.

        Only where a run is nothing but its last word (it died before its first line of log); ranks
        that die together say theirs within moments.
        """
        run = self.open
        if run is None or not run.spoke_last or run.marked or run.spans:
            return
        apart = event.time - run.dead_at if event.time is not None and run.dead_at is not None else None
        if apart is None or apart > CONCURRENT_S:
            self._begin(event)

    def _after_exit(self, event: Event) -> None:
        """What a program says well after its process was reported gone, another process says."""
        run = self.open
        if run is None or self.polled or event.kind is Kind.START or not (run.exit is not None or run.restart_said):
            return
        if event.rule is not None and event.rule.id.startswith("supervisors/"):
            return
        gone_at = run.exit_at
        if event.time is not None and gone_at is not None:
            later = event.time - gone_at > CONCURRENT_S
        else:
            later = not run.marked and event.line - (run.exit_line or event.line) > 1
        if later:
            self._begin(event)

    def _failure(self, event: Event) -> None:
        failure = event.failure
        assert failure is not None
        if not failure.outside:
            self._after_exit(event)
        self._polled_restart(event, None)
        if event.ends:
            self._last_word(event)
        if failure.fatal and self.open is not None and self._dies_again(self.open, event):
            self._begin(event)
        run = self._opened(event)
        run.spoke_last = run.spoke_last or event.ends
        if run.stop_line is not None and run.dead_line is None and not failure.outside:
            return
        self._was_serving(run, event, failure.while_serving)
        if len(run.failures) >= MAX_FAILURES:
            del run.failures[MAX_FAILURES // 2]
        run.failures.append(failure)
        if failure.cancels_ready and run.ready and not run.answered:
            run.ready_line = run.ready_at = None
            run.ready_cancelled = True
            run.spans.pop(Phase.SERVING, None)
            run.phase = failure.phase or Phase.BIND
        if failure.fatal and not (failure.outside and run.dead_line is not None):
            self._die(run, event, failure.phase)
            run.outside = run.outside or failure.outside

    def _cascade(self, event: Event) -> None:
        rule = event.rule
        fatal = rule.fatal if rule else True
        if self.open is None and not fatal:
            return
        if fatal:
            self._polled_restart(event, None)
        run = self._opened(event)
        if rule is not None:
            run.seen.add(rule.id)
            if rule.cancels_ready and run.ready and not run.answered:
                run.ready_line = run.ready_at = None
                run.ready_cancelled = True
                run.phase = rule.phase or Phase.BIND
        self._was_serving(run, event, rule is not None and rule.while_serving)
        if fatal and run.stop_line is None:
            run.spoke_last = run.spoke_last or event.ends
            self._die(run, event, None)

    def _was_serving(self, run: OpenRun, event: Event, proof: bool) -> None:
        """What only a serving engine prints proves, in a log that begins in mid-run, that it served."""
        if proof and not run.marked and run.dead_line is None:
            self._serve(run, event, Certainty.LIKELY)

    def _die(self, run: OpenRun, event: Event, phase: Phase | None) -> None:
        if event.rule is not None:
            run.last_words[event.rule.id] = event.text
            run.last_own = event.own
        if run.dead_line is None:
            run.dead_line, run.dead_at, run.dead_text = event.line, event.time, event.text
            run.dead_phase = phase or run.phase

    def _stop(self, event: Event) -> None:
        rule = event.rule
        if self.open is None:
            if rule is not None and not rule.asked:
                return
        run = self._opened(event)
        if rule is None or rule.asked:
            if run.stop_line is None and run.dead_line is None:
                run.stop_line, run.stop_text, run.stop_phase = event.line, event.text, run.phase
        elif run.goodbye_line is None:
            run.goodbye_line = event.line

    def _exit(self, event: Event) -> None:
        run = self.open
        if run is None:
            run = self._opened(event)
        if self._exits_again(run, event):
            self._begin(event)
            run = self._opened(event)
        if run.exit is not None and run.exit_line is not None and run.exit.signal == "SIGKILL":
            run.exit_asked = run.exit_asked or bool(event.rule and event.rule.asked)
            return
        code = _integer(event.fields.get("code"))
        signal = signal_name(event.fields["signal"]) if event.fields.get("signal") else None
        if code is not None and signal is None:
            if code < 0:
                signal, code = SIGNALS.get(-code), None
            elif code > 128:
                signal = SIGNALS.get(code - 128)
        run.exit = Exit(code, signal)
        run.exit_line, run.exit_text, run.exit_at = event.line, event.text, event.time
        run.exit_rule = event.rule.id if event.rule else ""
        if self.anonymous and not run.failures and event.words is not None and (code not in (None, 0) or signal):
            run.last_said = event.words
        run.exit_asked = bool(event.rule and event.rule.asked)

    def _exits_again(self, run: OpenRun, event: Event) -> bool:
        """The same words of an exit, later and with other lines between, are another run's."""
        if run.exit is None or event.rule is None or event.rule.id != run.exit_rule:
            return False
        if event.time is not None and run.exit_at is not None and event.time - run.exit_at <= CONCURRENT_S:
            return False
        return event.line - (run.exit_line or 0) > 1

    def _dies_again(self, run: OpenRun, event: Event) -> bool:
        """In a program without known start lines, the same fatal line again is another run's."""
        if not self.anonymous or run.marked or run.spans or run.dead_line is None or event.line - run.dead_line < 2:
            return False
        if event.time is not None and run.dead_at is not None and event.time - run.dead_at <= CONCURRENT_S / 2:
            return False
        return mask(run.dead_text) == mask(event.text)  # the numbers differ from start to start

    def _restart(self, event: Event) -> None:
        count = _integer(event.fields.get("counter"))
        if count is not None:
            self.counter = max(count, self.counter or 0)
        if self.open is not None and not event.fields.get("counter_only"):
            self.open.restart_said = True

    def _gave_up(self, event: Event) -> None:
        self.gave_up = event
        count = _integer(event.fields.get("counter"))
        if count is not None:
            self.counter = max(count, self.counter or 0)
        run = self._opened(event)
        run.restart_said = True

    # -- the end

    def finish(self) -> list[OpenRun]:
        """Return all runs, the last one settled as the log's end shows it."""
        if self.open is None:
            return list(self.runs)
        settle(self.open, followed=False)
        return [*self.runs, self.open]


_HANDLERS: Final[dict[Kind, Callable[[Machine, Event], None]]] = {
    Kind.START: Machine._start,
    Kind.PHASE: Machine._phase,
    Kind.PROGRESS: Machine._progress,
    Kind.HEARTBEAT: Machine._heartbeat,
    Kind.READY: Machine._ready,
    Kind.ALIVE: Machine._alive,
    Kind.FAILURE: Machine._failure,
    Kind.CASCADE: Machine._cascade,
    Kind.STOP: Machine._stop,
    Kind.EXIT: Machine._exit,
    Kind.RESTART: Machine._restart,
    Kind.GAVE_UP: Machine._gave_up,
}


def _integer(text: str | None) -> int | None:
    try:
        return int(text) if text is not None else None
    except ValueError:
        return None


def _distinct(event: Event) -> bool:
    """Can this line be printed only once? No two starts fall into one moment of the same clock."""
    return event.time is not None


def _later(run: OpenRun, event: Event) -> bool:
    if event.time is not None and run.dead_at is not None:
        return event.time - run.dead_at > 5.0
    return event.line - (run.dead_line or 0) > 20


def settle(run: OpenRun, *, followed: bool) -> None:
    """Decide how the run ended, or what it is doing, and which failure is its cause."""
    root, best = choose_cause(run)
    run.best = best
    for outcome, certainty, test in _OUTCOMES:
        if test(run, followed, root):
            run.outcome, run.certainty = outcome, certainty
            break
    bad = run.outcome in (Outcome.CRASHED, Outcome.KILLED)
    run.cause = root if bad else None
    if bad and root is None and run.exit is not None and run.exit.signal in _CRASH_SIGNALS and run.exit_line:
        run.cause = Failure(run.exit_line, run.exit_text, _CRASH_SIGNALS[run.exit.signal], fatal=True)
    if bad and run.cause is None and run.last_said is not None:
        run.cause = run.last_said
    if run.outcome is Outcome.STOPPED and run.ready and run.goodbye_line is not None:
        run.phase = Phase.SHUTDOWN
    elif run.outcome is Outcome.STOPPED and run.stop_phase is not None and run.ready:
        run.phase = Phase.SHUTDOWN
    elif bad and run.cause is not None and run.cause.phase is not None and not run.ready:
        run.phase = run.cause.phase
    elif run.dead_phase is not None and bad:
        run.phase = run.dead_phase


def _dead(run: OpenRun) -> bool:
    return run.dead_line is not None


def _died_before_stop(run: OpenRun) -> bool:
    return _dead(run) and (run.stop_line is None or (run.dead_line or 0) <= run.stop_line)


def _exit_bad(run: OpenRun) -> bool:
    return run.exit is not None and not run.exit_asked and (
        (run.exit.code not in (None, 0) and run.exit.signal not in _ASKED_SIGNALS)
        or (run.exit.signal is not None and run.exit.signal not in _ASKED_SIGNALS)
    )


def _unrecovered(run: OpenRun, root: Failure | None) -> bool:
    """A failure after which nothing advanced, in a run that was still coming up."""
    return any(f.line >= run.advance_line for f in run.failures) and not run.ready


_Test = Callable[[OpenRun, bool, Failure | None], bool]
# Read from the top: the first line that fits is the outcome.
_OUTCOMES: Final[tuple[tuple[Outcome, Certainty, _Test], ...]] = (
    (Outcome.KILLED, Certainty.CERTAIN, lambda r, f, c: _dead(r) and r.outside),
    (Outcome.CRASHED, Certainty.CERTAIN, lambda r, f, c: _died_before_stop(r)),
    (Outcome.STOPPED, Certainty.CERTAIN, lambda r, f, c: r.stop_line is not None),
    (Outcome.STOPPED, Certainty.CERTAIN, lambda r, f, c: r.exit is not None and r.exit_asked),
    (
        Outcome.KILLED,
        Certainty.CERTAIN,
        lambda r, f, c: _exit_bad(r) and r.exit is not None and r.exit.signal == "SIGKILL" and c is None,
    ),
    (Outcome.CRASHED, Certainty.CERTAIN, lambda r, f, c: _exit_bad(r)),
    (Outcome.CRASHED, Certainty.LIKELY, lambda r, f, c: _unrecovered(r, c) and (f or r.exit is not None)),
    (Outcome.STOPPED, Certainty.CERTAIN, lambda r, f, c: r.exit is not None),
    (Outcome.STOPPED, Certainty.LIKELY, lambda r, f, c: r.goodbye_line is not None and not _unrecovered(r, c)),
    (Outcome.CRASHED, Certainty.LIKELY, lambda r, f, c: _unrecovered(r, c)),
    (Outcome.CUT_OFF, Certainty.LIKELY, lambda r, f, c: f and not r.marked and not r.restart_said),
    (Outcome.KILLED, Certainty.LIKELY, lambda r, f, c: f or r.restart_said),
    (Outcome.READY, Certainty.CERTAIN, lambda r, f, c: r.ready),
    (Outcome.LOADING, Certainty.CERTAIN, lambda r, f, c: r.marked or bool(r.spans) or bool(r.bars)),
    (Outcome.UNKNOWN, Certainty.SUSPECTED, lambda r, f, c: True),
)


def choose_cause(run: OpenRun) -> tuple[Failure | None, Failure | None]:
    """Return the root among the collected failures, and the best evidence where there is none.

    The first failure that never recovered is the root. While serving, only what was said shortly
    before the death counts, since requests fail all the time. A line that says what happened is
    preferred to a vague one within the same few lines.
    """
    candidates = [f for f in run.failures if _counts(run, f)]
    strong = [f for f in candidates if not f.weak]
    weak = [f for f in candidates if f.weak]
    if not strong:
        return None, (weak[0] if weak else None)
    first = strong[0]
    if first.reason in SYMPTOMS:
        told = [f for f in strong if f.outside and f.fatal]
        first = told[0] if told else first
    if first.vague:
        near = [f for f in strong if not f.vague and f.line - first.line <= SAME_STORY_LINES]
        first = near[0] if near else first
    return first, None


def _counts(run: OpenRun, failure: Failure) -> bool:
    if failure.fatal:
        return True
    if run.dead_line is not None:
        if failure.line > run.dead_line:
            return True
        if run.ready_line is not None and failure.line < run.ready_line:
            return False
        return run.dead_line - failure.line <= BURST_LINES
    return failure.line >= run.advance_line
