"""The log under watch: what it tells since the call, and for how long nothing has advanced."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Final

from loopdetect.core.detector import Detector
from loopdetect.core.fusion import Log
from loopdetect.live.mark import BAD, Mark, bad_ends, is_hard, mark_of, state_since
from loopdetect.live.patterns import Hit, LinePatterns
from loopdetect.live.tail import Look, Turn
from loopdetect.model import Phase, Policy, Report, Run, State

QUIET_S: Final = 30.0
# Among several servers in one log the first of these that any of them shows is what counts.
WORST_FIRST: Final = (
    Log.LOOPING, Log.CRASHED, Log.STOPPED, Log.STALLED, Log.FAILING,
    Log.LOADING, Log.OVER, Log.READY, Log.SILENT, Log.MISSING,
)  # fmt: skip
# The user's own ready line speaks only where the log itself tells nothing better.
OPEN: Final = (Log.SILENT, Log.LOADING, Log.FAILING, Log.STALLED)
ANEW: Final = (Turn.TRUNCATED, Turn.REPLACED)


@dataclass(frozen=True, slots=True)
class LogView:
    """What the log tells at one moment; times in seconds.

    `coming_up_s` is how long the run took to serve, or takes so far, as seen here; `held` is how
    many lines stood in the log before.
    """

    log: Log
    report: Report | None = None
    reports: tuple[Report, ...] = ()
    fresh: bool = True
    grown: bool = False
    quiet_s: float = 0.0
    allowed_s: float = 0.0
    bad_ends: int = 0
    hit: Hit | None = None
    anew: int = 0
    run_seen_at: float = 0.0
    coming_up_s: float = 0.0
    exists: bool = True
    modified: float | None = None
    held: int = 0

    @property
    def run(self) -> Run | None:
        """The run that is waited for."""
        return self.report.runs[-1] if self.report and self.report.runs else None

    @property
    def before(self) -> bool:
        """True when the log holds bad ends."""
        return self.report is not None and any(r.outcome in BAD for r in self.report.runs)

    @property
    def quiet(self) -> bool:
        """True when nothing has advanced for a while."""
        return self.quiet_s > QUIET_S


@dataclass(slots=True)
class Advance:
    """When one stream last got further, as it was seen here."""

    at: float
    sign: object = None
    phase: Phase = Phase.UNKNOWN
    notice: int = 0
    notices: int = 0
    gaps: dict[Phase, float] = field(default_factory=dict)
    run: int = 0
    run_at: float = 0.0
    phases: dict[Phase, float] = field(default_factory=dict)


class LogWatch:
    """Feeds the detector and judges its reports against the moment of the call."""

    def __init__(
        self, detector: Detector, policy: Policy, patterns: LinePatterns, called: float
    ) -> None:
        self._detector, self._policy, self._patterns = detector, policy, patterns
        self._called = called
        self._marks: dict[str | None, Mark] = {}
        self._marked = False
        self._grown = False
        self._grown_at: float | None = None
        self._over = False
        self._exists = False
        self._in_line = False
        self._dirty = True
        self._reports: tuple[Report, ...] = ()
        self._advances: dict[str | None, Advance] = {}
        self._modified: float | None = None
        self._files = [0]

    # -- bytes in

    def next_file(self, name: str, *, restarted: bool = False) -> None:
        """Name what is fed from here on; `restarted` says that a new process writes it."""
        self._detector.next_file(name, restarted=restarted)

    def feed(self, look: Look, now: float) -> None:
        """Take what one look at the log gave."""
        self._exists = look.exists
        self._modified = look.modified if look.modified is not None else self._modified
        if look.turn in ANEW:
            self._begin_anew()
        if look.data:
            self._detector.feed(look.data)
            self._patterns.feed(look.data)
            self._in_line = not look.data.endswith(b"\n")
            self._dirty, self._grown_at = True, now
            self._grown = self._grown or self._marked
        if look.ended:
            self._over = True
            self._patterns.end()

    def _begin_anew(self) -> None:
        if self._in_line:
            self._detector.feed(b"\n")
            self._in_line = False
        self._patterns.new_file()
        reports = self.reports()
        self._files.append(reports[0].lines if reports else 0)

    def mark(self, called_at: float | None, *, closed: bool = False) -> None:
        """Make history of all that was fed; `called_at` is in seconds since 1970, None for a pipe.

        `closed` says that whatever wrote it writes no more: a new process is about to be started.
        """
        if called_at is not None:
            # Between the call and the first look the server may have come far already.
            written = self._modified is not None and self._modified >= called_at
            since = written and not closed
            for report in self.reports():
                self._advanced(report, self._called)
                mark = mark_of(report, written_since=since)
                self._marks[report.stream] = replace(mark, closed=mark.last_run if closed else 0)
            self._grown = since
            if not since:
                self._patterns.forget_failure()
        self._marked = True

    def excuse(self, seconds: float) -> None:
        """Leave time out of account in which nothing could be seen."""
        for advance in self._advances.values():
            advance.at += seconds
        if self._grown_at is not None:
            self._grown_at += seconds

    # -- judging

    def reports(self) -> tuple[Report, ...]:
        """Return the reports on all that was fed."""
        if self._dirty:
            self._reports = self._detector.snapshot()
            self._dirty = False
        return self._reports

    def view(self, now: float, *, gone: bool = False) -> LogView:
        """Return what the log tells; a process that is `gone` makes its last run's end count."""
        views = [self._view(report, now, gone) for report in self.reports()]
        if not views:
            return LogView(Log.MISSING, exists=self._exists, run_seen_at=self._called)
        return min(views, key=lambda view: WORST_FIRST.index(view.log))

    def _view(self, report: Report, now: float, gone: bool) -> LogView:
        mark = self._marks.get(report.stream, Mark())
        advance = self._advanced(report, now)
        log = state_since(report, mark)
        if log is Log.OVER and gone and not mark.closed:
            log = state_since(report, Mark())
        quiet, allowed = now - advance.at, self._allowed(report, advance)
        slow = report.verdict.state is State.STALLED and self._grown and quiet >= min(60.0, allowed)
        if not gone and self._may_recover(report, log, now) and quiet < allowed:
            log = Log.FAILING
        if log is Log.LOADING and (quiet >= allowed or slow):
            log = Log.STALLED
        last = report.runs[-1] if report.runs else None
        hit = None
        if self._patterns.failed is not None:
            log, hit = Log.CRASHED, self._patterns.failed
        elif self._patterns.ready is not None and (
            log in OPEN or (log is Log.OVER and self._patterns.ready.line > mark.line)
        ):
            if last is None or self._patterns.ready.line >= last.first_line:
                log, hit = Log.READY, self._patterns.ready
        elif log is Log.SILENT and self._grown and quiet >= allowed:
            log = Log.STALLED
        if log is Log.SILENT and not report.lines:
            return LogView(
                Log.MISSING,
                report,
                self.reports(),
                exists=self._exists,
                run_seen_at=self._called,
            )
        return LogView(
            log,
            report,
            self.reports(),
            fresh=last is None or last.number > mark.last_run,
            grown=self._grown,
            quiet_s=quiet,
            allowed_s=allowed,
            bad_ends=len(bad_ends(report, mark)),
            hit=hit,
            anew=len(self._files) - 1,
            run_seen_at=advance.run_at,
            modified=self._modified,
            held=mark.line,
            coming_up_s=advance.phases.get(Phase.SERVING, now) - advance.run_at,
        )

    def _may_recover(self, report: Report, log: Log, now: float) -> bool:
        if log not in (Log.CRASHED, Log.LOOPING) or self._over or not report.runs:
            return False
        silent = self._grown_at is not None and now - self._grown_at >= QUIET_S
        return report.runs[-1].outcome in BAD and not is_hard(report) and not silent

    def _advanced(self, report: Report, now: float) -> Advance:
        advance = self._advances.get(report.stream)
        if advance is None:
            at = now if self._marked else self._called
            advance = self._advances[report.stream] = Advance(at, run_at=at)
        last = report.runs[-1] if report.runs else None
        sign = _sign(report)
        if sign != advance.sign:
            if advance.sign is not None and self._grown:
                gap = now - advance.at
                advance.gaps[advance.phase] = max(gap, advance.gaps.get(advance.phase, 0.0))
            advance.sign, advance.at, advance.notices = sign, now, 0
            advance.phase = last.phase if last else Phase.UNKNOWN
        if last is not None:
            if last.number != advance.run:
                advance.run, advance.run_at = last.number, now
                advance.phases = {}
            for span in last.phases:
                advance.phases.setdefault(span.phase, now)
        notice = max((e.line for e in report.verdict.evidence if e.kind == "heartbeat"), default=0)
        if notice > advance.notice:
            advance.notices += 1
            advance.notice = notice
        return advance

    def _allowed(self, report: Report, advance: Advance) -> float:
        """Return how long nothing may advance in the phase that it is in."""
        policy = self._policy
        last = report.runs[-1] if report.runs else None
        if last is None:
            return policy.stall_after
        allowed = policy.stall_after
        if advance.notices < policy.notices_before_floor_falls:
            allowed = max(allowed, policy.stall_after_by_phase.get(last.phase, 0.0))
        needed = (
            span.duration_s or 0.0
            for run in report.runs[:-1]
            for span in run.phases[:-1]
            if span.phase is last.phase
        )
        survived = policy.stall_gap_factor * advance.gaps.get(last.phase, 0.0)
        return max(allowed, survived, max(needed, default=0.0))

    # -- words

    def where(self, line: int) -> str:
        """Name a line of all that was read by the file that it stands in."""
        base = max(number for number in self._files if number < max(line, 1))
        text = f"line {line - base}"
        return text if base == self._files[-1] else f"{text} of the log before it began anew"

    def observed(self, report: Report) -> dict[Phase, float]:
        """Return how long each phase of the last run took as seen here, in seconds."""
        advance = self._advances.get(report.stream)
        seen = list(advance.phases.items()) if advance else []
        return {phase: then - at for (phase, at), (_, then) in pairwise(seen)}


def _sign(report: Report) -> object:
    """Return what changes when a server gets further; of an unknown one that is any line."""
    last = report.runs[-1] if report.runs else None
    if last is None or report.server.name is None:
        return report.lines, last and last.number
    return last.reached
