"""From runs to a verdict: state, certainty, evidence and words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from loopdetect.core.context import Contexts
from loopdetect.core.event import Failure
from loopdetect.core.fingerprint import fingerprint, kinship
from loopdetect.core.open_run import OpenRun
from loopdetect.core.streak import (
    BAD,
    Streak,
    current_streak,
    is_loop,
    loop_rule,
    ready_after,
    run_fingerprint,
)
from loopdetect.core.summary import summarise
from loopdetect.core.timestamp import CLOCKS
from loopdetect.model import (
    Cause,
    Certainty,
    Evidence,
    Exit,
    Outcome,
    Phase,
    PhaseSpan,
    Policy,
    Progress,
    Report,
    Run,
    Server,
    State,
    Verdict,
)
from loopdetect.profiles import Library

if TYPE_CHECKING:
    from loopdetect.core.stream import Stream

MAX_EVIDENCE: Final = 24
_STATE_OF: Final = {
    Outcome.READY: State.READY,
    Outcome.LOADING: State.LOADING,
    Outcome.STOPPED: State.STOPPED,
    Outcome.CRASHED: State.CRASHED,
    Outcome.KILLED: State.CRASHED,
}


@dataclass(frozen=True, slots=True)
class _Facts:
    """What the verdict of one stream is made from."""

    stream: Stream
    runs: list[OpenRun]
    streak: Streak
    looping: bool
    library: Library
    policy: Policy
    contexts: Contexts
    now: float | None


def report_of(
    stream: Stream,
    *,
    source: str,
    library: Library,
    policy: Policy,
    contexts: Contexts,
    lines: int,
    size: int,
    last_time: float | None,
    now: float | None,
) -> Report:
    """Judge one stream; `now` is on the log's own clock, in seconds."""
    runs = stream.machine.finish(lines)
    if runs and last_time is not None and stream.machine.open is runs[-1]:
        runs[-1].last_time = max(last_time, runs[-1].last_time or last_time)
    streak = current_streak(runs, policy, polled=stream.machine.polled)
    clock_now = stream.clock.now(now) if now is not None else None
    facts = _Facts(
        stream,
        runs,
        streak,
        is_loop(streak, stream.machine, library, policy),
        library,
        policy,
        contexts,
        clock_now,
    )
    name = stream.profile
    profile = library.profiles.get(name) if name else None
    server = Server(
        name,
        profile.title if profile else "the server",
        stream.recogniser.versions.get(name) if name else None,
    )
    verdict = _verdict(facts, server, last_time)
    frame = stream.clock.frame
    return Report(
        source=source,
        stream=stream.name,
        kind="log",
        lines=lines,
        bytes=size,
        server=server,
        verdict=verdict,
        runs=tuple(_run(facts, run, verdict) for run in runs),
        clock=CLOCKS[frame] if frame is not None else ("uptime" if stream.uptime_clock else None),
        notes=_notes(facts, lines),
        policy=policy,
    )


def _notes(facts: _Facts, lines: int) -> tuple[str, ...]:
    notes = []
    if facts.runs and not facts.runs[0].marked and facts.stream.profile is not None:
        notes.append("The log begins in the middle of a run; what came before it is unknown.")
    if facts.stream.machine.dropped_runs:
        notes.append(
            f"{facts.stream.machine.dropped_runs} runs in the middle are counted but not listed."
        )
    return tuple(notes)


def _verdict(facts: _Facts, server: Server, last_time: float | None) -> Verdict:
    runs, machine = facts.runs, facts.stream.machine
    last = runs[-1] if runs else None
    state, certainty = _state(facts, last)
    stalled_for = None
    if state in (State.LOADING, State.READY) and last is not None:
        stalled_for = _stalled_for(facts, last, state, last_time)
        if stalled_for is not None:
            state, certainty = State.STALLED, Certainty.LIKELY
            last.outcome = Outcome.STALLED
    blamed = last
    if state is State.CRASH_LOOPING:
        blamed = facts.streak.bad[-1] if facts.streak.bad else last
    cause = _cause(facts, blamed.cause) if blamed is not None and blamed.cause else None
    if cause is None and state is State.CRASH_LOOPING:
        known = [r for r in facts.streak.bad if r.cause is not None]
        cause = _cause(facts, known[-1].cause) if known and known[-1].cause else None
    if state in (State.READY, State.LOADING, State.STOPPED, State.STALLED):
        cause = _earlier_cause(facts, state, last)
    first = None
    if state is State.CRASH_LOOPING and cause is not None:
        opening = next((r for r in facts.streak.bad if r.cause is not None), None)
        if (
            opening is not None
            and opening.cause is not None
            and kinship(opening.cause.reason, opening.cause.text)
            != kinship(cause.reason, cause.text)
        ):
            first = _cause(facts, opening.cause)
    own = sum(not r.overlaps for r in runs)
    restarts: int | None = max(0, own + machine.dropped_runs - 1)
    if machine.counter is not None:
        restarts = max(restarts or 0, machine.counter)
    since, since_line = _since(facts, state, last)
    ready_seen: bool | None = any(r.ready for r in runs)
    if (
        not ready_seen
        and facts.stream.profile is None
        and runs
        and not any(r.failures or r.cause for r in runs)
    ):
        ready_seen = None  # nothing but a supervisor's words: the program's own are not here
    phase = blamed.phase if blamed is not None else Phase.UNKNOWN
    return Verdict(
        state=state,
        certainty=certainty,
        summary=summarise(
            state, server, facts.runs, facts.streak, cause, machine, stalled_for, phase
        ),
        restarts=restarts,
        crashes=sum(r.outcome in BAD for r in runs),
        ready_seen=ready_seen,
        phase=phase,
        cause=cause,
        first_cause=first,
        evidence=_evidence(facts, state, cause, last),
        since=since,
        since_line=since_line,
        rule=_rule(facts, state, stalled_for),
    )


def _rule(facts: _Facts, state: State, stalled_for: float | None) -> str | None:
    """Return the rule that decided, where one did."""
    if state is State.CRASH_LOOPING:
        return loop_rule(facts.streak, facts.stream.machine, facts.library, facts.policy)
    if state is State.STALLED and stalled_for is not None:
        return f"Nothing has advanced for {stalled_for:.0f} s, longer than this phase may take."
    return None


def _earlier_cause(facts: _Facts, state: State, last: OpenRun | None) -> Cause | None:
    """What went wrong before, in a log that ends well: the last bad run, or a daemon's last runner."""
    if state not in (State.READY, State.LOADING) or last is None:
        return None
    profile = facts.library.profiles.get(facts.stream.profile or "")
    daemon = profile is not None and profile.daemon
    if daemon:
        own = _last_story([f for f in last.failures if f.line > last.recovered_line])
        if own is not None:
            return _cause(facts, own)
    bad = [r for r in facts.runs[:-1] if r.outcome in BAD and r.cause is not None]
    return _cause(facts, bad[-1].cause) if bad else None


def _last_story(failures: list[Failure]) -> Failure | None:
    """Return what began the end of a daemon's last runner; each death is told by a weak failure."""
    root: Failure | None = None
    for failure in reversed(failures):
        if not failure.weak:
            root = failure
        elif root is not None:
            break
    return root


def _state(facts: _Facts, last: OpenRun | None) -> tuple[State, Certainty]:
    machine = facts.stream.machine
    if last is None:
        return State.UNKNOWN, Certainty.SUSPECTED
    state = _STATE_OF.get(last.outcome, State.UNKNOWN)
    certainty = last.certainty
    stopped_since = last.outcome is Outcome.STOPPED and (last.stop_line or 0) >= (
        machine.gave_up.line if machine.gave_up else 0
    )
    if facts.looping and not stopped_since:
        if state is State.READY and not (facts.streak.ready or machine.gave_up is not None):
            return state, last.ready_certainty
        sure = machine.gave_up is not None or all(r.marked and r.cause for r in facts.streak.bad)
        return State.CRASH_LOOPING, Certainty.CERTAIN if sure else Certainty.LIKELY
    if state is State.READY:
        # Runs before it died without a word after being ready: this one may have as well.
        certainty = Certainty.LIKELY if facts.streak.ready else last.ready_certainty
    if state is State.LOADING:
        certainty = Certainty.LIKELY
    return state, certainty


def _stalled_for(
    facts: _Facts, last: OpenRun, state: State, last_time: float | None
) -> float | None:
    """Return for how long nothing advanced, if that is too long."""
    reference = facts.now if facts.now is not None else last_time
    if reference is None or last.advance_at is None:
        return None
    if last.booted_at is not None and last.phase is Phase.CONFIG and not last.failures:
        return None  # a master tells of workers that hang; one that serves may have nothing to say
    policy = facts.policy
    quiet = reference - last.advance_at
    noticed = last.notices >= policy.notices_before_floor_falls
    profile = facts.library.profiles.get(facts.stream.profile or "")
    if state is State.READY and (not noticed or (profile is not None and profile.daemon)):
        return None
    allowed = policy.stall_after
    if not noticed:
        # The order of phases is not fixed: what was begun last may be patient, too.
        begun = (
            max(last.spans.values(), key=lambda span: span.line).phase if last.spans else last.phase
        )
        allowed = max(
            allowed, *(policy.stall_after_by_phase.get(p, 0.0) for p in (last.phase, begun))
        )
    survived = max((r.gaps.get(last.phase, 0.0) for r in facts.runs), default=0.0)
    allowed = max(allowed, policy.stall_gap_factor * survived)
    return quiet if quiet >= allowed else None


def _since(facts: _Facts, state: State, last: OpenRun | None) -> tuple[float | None, int | None]:
    if last is None:
        return None, None
    shown = facts.stream.clock.frame is not None
    time: float | None
    line: int | None
    if state is State.CRASH_LOOPING and facts.streak.bad:
        time, line = facts.streak.bad[0].started_at, facts.streak.bad[0].first_line
    elif state is State.READY:
        time, line = last.ready_at, last.ready_line
    elif state is State.STALLED:
        time, line = last.advance_at, last.advance_line
    elif state is State.STOPPED:
        time, line = last.last_time, last.stop_line or last.goodbye_line or last.exit_line
    elif state is State.CRASHED:
        time = last.dead_at if last.dead_at is not None else last.last_time
        line = (
            last.dead_line
            or (last.cause.line if last.cause else None)
            or last.exit_line
            or last.last_line
        )
    else:
        time, line = last.started_at, last.first_line
    return (time if shown else None), line


def _cause(facts: _Facts, failure: Failure | None) -> Cause | None:
    if failure is None:
        return None
    reason = facts.library.reasons.get(failure.reason)
    before, after = facts.contexts.around(failure.line)
    certainty = (
        Certainty.LIKELY
        if failure.vague or failure.reason in ("segfault", "abort")
        else Certainty.CERTAIN
    )
    if failure.reason == "unknown":
        certainty = Certainty.SUSPECTED
    return Cause(
        line=failure.line,
        text=failure.text,
        reason=failure.reason,
        hint=failure.hint or (reason.hint if reason else ""),
        certainty=certainty,
        fingerprint=fingerprint(failure.reason, failure.text),
        before=before,
        after=after,
    )


def _evidence(
    facts: _Facts, state: State, cause: Cause | None, last: OpenRun | None
) -> tuple[Evidence, ...]:
    found: list[Evidence] = []
    runs = facts.runs if len(facts.runs) <= 6 else [*facts.runs[:2], *facts.runs[-4:]]
    for run in runs:
        if run.marked:
            found.append(Evidence(run.first_line, "start", run.start_text))
        if run.ready_line is not None:
            found.append(Evidence(run.ready_line, "ready", run.ready_text))
        if run.outcome in BAD and run.dead_line is not None:
            found.append(Evidence(run.dead_line, "death", run.dead_text))
        if run.outcome in BAD and run.cause is None and run.best is not None:
            found.append(Evidence(run.best.line, "best-evidence", run.best.text))
        if run.stop_line is not None:
            found.append(Evidence(run.stop_line, "stop", run.stop_text))
        if run.exit_line is not None:
            found.append(Evidence(run.exit_line, "exit", run.exit_text))
    if (
        last is not None
        and last.notice_line is not None
        and state in (State.STALLED, State.LOADING)
    ):
        found.append(Evidence(last.notice_line, "heartbeat", last.notice_text))
    if cause is not None:
        found.append(Evidence(cause.line, "cause", cause.text))
    gave_up = facts.stream.machine.gave_up
    if gave_up is not None:
        found.append(Evidence(gave_up.line, "gave-up", gave_up.text))
    return tuple(found[-MAX_EVIDENCE:])


def _run(facts: _Facts, run: OpenRun, verdict: Verdict) -> Run:
    wall = facts.stream.clock.frame is not None
    duration = None
    if run.started_at is not None and run.last_time is not None:
        duration = max(0.0, run.last_time - run.started_at)
    return Run(
        number=run.number,
        first_line=run.first_line,
        last_line=max(run.last_line, run.first_line),
        started_at=run.started_at if wall else None,
        ended_at=(
            run.last_time
            if run.outcome not in (Outcome.READY, Outcome.LOADING, Outcome.STALLED)
            else None
        )
        if wall
        else None,
        duration_s=duration,
        phase=run.phase,
        ready_after_s=ready_after(run),
        ready=run.ready,
        outcome=run.outcome,
        exit=run.exit or Exit(),
        cause=_cause(facts, run.cause),
        fingerprint=run_fingerprint(run),
        phases=_phases(run, wall),
        progress=tuple(
            Progress(
                s.bar.label,
                s.bar.done,
                s.bar.total,
                s.bar.elapsed_s,
                s.bar.remaining_s,
                s.first_line,
                s.last_line,
            )
            for s in run.bars.values()
        ),
    )


def _phases(run: OpenRun, wall: bool) -> tuple[PhaseSpan, ...]:
    spans = sorted(run.spans.values(), key=lambda s: s.line)
    out = []
    for i, span in enumerate(spans):
        end = spans[i + 1].time if i + 1 < len(spans) else run.last_time
        duration = end - span.time if end is not None and span.time is not None else None
        out.append(
            PhaseSpan(
                span.phase,
                span.line,
                span.time if wall else None,
                max(0.0, duration) if duration is not None else None,
            )
        )
    return tuple(out)
