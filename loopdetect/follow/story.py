"""From the successive reports of one stream to what happened between them.

How this works: a report says everything that is known, so what happened is what the report holds
and the memory does not. Nothing depends on how often anybody looked: a run that started and died
between two looks is told whole. The memory is plain data, so that a watcher that is started again
goes on without telling anything twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from loopdetect.follow.happened import Happened, Manner, Memory, What
from loopdetect.follow.steps import (
    OVER,
    death_text,
    dropped_runs,
    server_title,
    share_done,
    steps,
)
from loopdetect.model import (
    FAILED,
    Certainty,
    Exit,
    Outcome,
    Phase,
    Report,
    Run,
    State,
)
from loopdetect.render.figures import BAD, counted

ALARMING: Final = FAILED | {State.STALLED}


class Story:
    """Tells one stream: `told` is given each report, `due` says when it wants to be asked again."""

    def __init__(
        self, key: str, manner: Manner | None = None, memory: Memory | None = None
    ) -> None:
        self._key = key
        self._manner = manner or Manner()
        self.memory = memory or Memory()
        self._final = False
        self._again = False

    def first(self, report: Report, now: float) -> list[Happened]:
        """Sum up what stood there before the watching began; nothing of it is told one by one."""
        memory = self.memory
        before = State(memory.state)
        self._catch_up(report, now)
        memory.begun = True
        memory.bytes = report.bytes
        state = report.verdict.state
        if state is State.UNKNOWN and not report.runs:
            return []
        event = self._event(report, now, What.STATE, report.verdict.summary, before=before)
        if state not in ALARMING:
            memory.alarmed = state.value
        return [event, *self._alarms(report, now, before, recovered=False)]

    def told(self, report: Report, now: float, *, final: bool = False) -> list[Happened]:
        """Return what is new in the report; `now` in seconds since 1970.

        `final` tells at once what would be held back for a moment: nothing comes after it.
        """
        memory = self.memory
        memory.begun = True
        self._again = report.bytes < memory.bytes
        if self._again:
            return []  # what was told before is being read again
        memory.bytes = report.bytes
        self._final = final
        if not report.runs:
            memory.death = memory.death_since = None
        before = State(memory.state)
        events = list(self._runs(report, now))
        events += self._states(report, now, before)
        memory.state = report.verdict.state.value
        recovered = any(event.what is What.RECOVERY for event in events)
        return events + self._alarms(report, now, before, recovered=recovered)

    def due(self) -> float | None:
        """Return when `told` should be called though nothing was written, in seconds since 1970."""
        memory, manner = self.memory, self._manner
        times: list[float] = []
        if self._again:
            return None
        if memory.death_since is not None and memory.death is not None:
            times.append(self._told_at())
        if memory.pending_since is not None:
            times.append(memory.pending_since + manner.settle)
        if memory.alarmed == memory.state and State(memory.state) in ALARMING:
            times.append(memory.alarmed_at + manner.remind)
        return min(times, default=None)

    # -- runs

    def _runs(self, report: Report, now: float) -> Iterator[Happened]:
        memory = self.memory
        if memory.run > len(report.runs) + dropped_runs(report):
            memory.run = report.runs[-1].number if report.runs else 0
        for run in report.runs:
            if run.number < memory.run:
                continue
            last = run is report.runs[-1]
            if run.number > memory.run:
                if last and run.outcome not in BAD:
                    yield from self._loop(report, now)
                yield from self._begin(report, run, now)
            yield from self._advance(report, run, now)
            yield from self._end(report, run, now, last=last)

    def _begin(self, report: Report, run: Run, now: float) -> Iterator[Happened]:
        memory = self.memory
        first = memory.run == 0
        memory.run, memory.phases, memory.ready, memory.over = run.number, [], False, False
        memory.error, memory.bar, memory.death, memory.death_since = None, None, None, None
        memory.bar_share = 0.0
        index = next(i for i, known in enumerate(report.runs) if known.number == run.number)
        earlier = report.runs[index - 1] if index else None
        if first:
            text = f"{server_title(report)} was started"
            yield self._event(report, now, What.START, text, run, run.first_line)
            return
        why = ""
        if earlier is not None and earlier.outcome in BAD and earlier.cause:
            why = f"; the last one failed: {earlier.cause.reason}"
        text = f"{server_title(report)} was started again, attempt {run.number}{why}"
        yield self._event(report, now, What.RESTART, text, run, run.first_line)

    def _advance(self, report: Report, run: Run, now: float) -> Iterator[Happened]:
        for step in steps(run, self.memory, self._manner, now, server_title(report)):
            yield self._event(report, now, step.what, step.text, run, step.line, phase=step.phase)

    def _end(self, report: Report, run: Run, now: float, *, last: bool) -> Iterator[Happened]:
        memory = self.memory
        if run.outcome not in OVER:
            if memory.over and last:  # it looked dead, and goes on
                memory.over = False
            memory.death = memory.death_since = None
            return
        if memory.over:
            yield from self._other_cause(report, run, now)
            return
        if run.outcome in BAD and last:
            memory.soft = _soft(report, run)
            if memory.soft:
                yield from self._other_cause(report, run, now)
            if not self._held_long_enough(report, run, now):
                return
        memory.over = True
        memory.death = memory.death_since = None
        if run.outcome is Outcome.CUT_OFF:
            return
        if run.outcome is Outcome.STOPPED:
            memory.failed = 0
            text = f"{server_title(report)} was stopped in {run.phase.spoken}"
            yield self._event(report, now, What.STOPPED, text, run, run.last_line)
            return
        memory.failed += 1
        memory.error = run.cause.fingerprint if run.cause else None
        yield self._event(
            report,
            now,
            What.CRASH,
            death_text(report, run),
            run,
            run.cause.line if run.cause else run.last_line,
            run.cause.reason if run.cause else None,
        )

    def _held_long_enough(self, report: Report, run: Run, now: float) -> bool:
        """A death is told a moment after it is seen: its true cause may be in the next lines."""
        memory = self.memory
        if memory.death != run.number or memory.death_since is None:
            memory.death, memory.death_since, memory.death_bytes = run.number, now, -1
        if report.bytes != memory.death_bytes:
            memory.death_bytes, memory.silent_since = report.bytes, now
        return self._final or now >= self._told_at()

    def _told_at(self) -> float:
        """Return when the death that is held back will be told."""
        memory, manner = self.memory, self._manner
        since = memory.death_since or 0.0
        if memory.soft:
            return since + manner.settle
        return min(memory.silent_since + manner.hold, since + manner.hold_most)

    def _other_cause(self, report: Report, run: Run, now: float) -> Iterator[Happened]:
        memory = self.memory
        if run.outcome not in BAD or run.cause is None or run.cause.fingerprint == memory.error:
            return
        memory.error = run.cause.fingerprint
        word = "the cause is " if memory.over else ""
        text = f"{word}{run.cause.reason}: {run.cause.text}"
        yield self._event(report, now, What.ERROR, text, run, run.cause.line, run.cause.reason)

    # -- states

    def _states(self, report: Report, now: float, before: State) -> Iterator[Happened]:
        memory, state = self.memory, report.verdict.state
        yield from self._loop(report, now)
        if state is State.STALLED and not memory.stalled:
            memory.stalled = True
            yield self._event(report, now, What.STALL, report.verdict.summary, before=before)
        if state is State.READY and (memory.loop or memory.stalled or memory.failed):
            yield self._recovery(report, now, before)
            memory.loop = memory.stalled = False
            memory.failed = 0
        elif state is State.LOADING and memory.stalled:
            memory.stalled = False
            yield self._event(report, now, What.RECOVERY, "it advances again", before=before)
        elif state is State.STOPPED:
            memory.loop = memory.stalled = False
        elif state not in (State.CRASH_LOOPING, State.STALLED) and memory.loop:
            memory.loop = memory.death is not None
        if state in FAILED:
            memory.stalled = False

    def _loop(self, report: Report, now: float) -> Iterator[Happened]:
        """Tell of a crash loop, before the start that goes on with it."""
        memory, cause = self.memory, report.verdict.cause
        looping = report.verdict.state is State.CRASH_LOOPING
        if not looping or memory.loop or memory.death is not None:
            return
        memory.loop = True
        line, reason = (cause.line, cause.reason) if cause else (None, None)
        yield self._event(
            report, now, What.CRASH_LOOP, report.verdict.summary, line=line, reason=reason,
            before=State(memory.state),
        )  # fmt: skip

    def _recovery(self, report: Report, now: float, before: State) -> Happened:
        memory = self.memory
        after = "it had stalled"
        if memory.failed or memory.loop:
            after = f"{counted(max(memory.failed, 1), 'failed start')} before it"
        run = report.runs[-1] if report.runs else None
        return self._event(
            report, now, What.RECOVERY, f"{server_title(report)} is ready again; {after}", run,
            before=before,
        )  # fmt: skip

    # -- alarms: once a streak

    def _alarms(
        self, report: Report, now: float, before: State, *, recovered: bool
    ) -> list[Happened]:
        """Return the event to act on, if there is one: a change that matters and has settled."""
        memory, manner = self.memory, self._manner
        if memory.death is not None:
            return []
        state = report.verdict.state
        if memory.alarmed == state.value and not (recovered and state is State.READY):
            memory.pending_since = None
            if state in ALARMING and now - memory.alarmed_at >= manner.remind:
                memory.alarmed_at = now
                text = f"still {state.value}: {report.verdict.summary}"
                return [self._alarm(report, now, What.REMINDER, text, before)]
            return []
        if state in (State.LOADING, State.UNKNOWN):
            memory.pending_since = None
            return []
        if state is State.CRASHED and memory.alarmed == State.CRASH_LOOPING.value:
            return []
        if state is State.CRASHED:
            if memory.pending_since is None:
                memory.pending_since = now
            if now - memory.pending_since < manner.settle:
                return []
        told = State(memory.alarmed) if memory.alarmed else None
        memory.pending_since = None
        memory.alarmed, memory.alarmed_at = state.value, now
        what = _ALARM_OF[state]
        if state is State.READY and (recovered or told in ALARMING):
            what = What.RECOVERY
        return [self._alarm(report, now, what, report.verdict.summary, told or before)]

    def _alarm(
        self, report: Report, now: float, what: What, text: str, previous: State
    ) -> Happened:
        cause = report.verdict.cause if report.verdict.state is not State.READY else None
        event = self._event(
            report,
            now,
            what,
            text,
            report.runs[-1] if report.runs else None,
            cause.line if cause else None,
            cause.reason if cause else None,
            before=previous,
        )
        return replace(event, alarm=True)

    # -- making events

    def _catch_up(self, report: Report, now: float) -> None:
        memory = self.memory
        memory.state = report.verdict.state.value
        memory.loop = report.verdict.state is State.CRASH_LOOPING
        memory.stalled = report.verdict.state is State.STALLED
        if not report.runs:
            return
        run = report.runs[-1]
        memory.run = run.number
        memory.phases = [span.phase.value for span in run.phases]
        memory.ready, memory.over = run.ready, run.outcome in OVER
        memory.error = run.cause.fingerprint if run.cause else None
        memory.failed = 0
        for earlier in reversed(report.runs):
            if earlier.outcome in BAD:
                memory.failed += 1
            elif earlier is not run or earlier.outcome is Outcome.READY:
                break
        if run.progress:
            newest = max(run.progress, key=lambda progress: progress.last_line)
            memory.bar, memory.bar_share, memory.bar_at = newest.label, share_done(newest), now

    def _event(
        self,
        report: Report,
        now: float,
        what: What,
        text: str,
        run: Run | None = None,
        line: int | None = None,
        reason: str | None = None,
        before: State | None = None,
        phase: Phase | None = None,
    ) -> Happened:
        self.memory.count += 1
        return Happened(
            id=f"{self._key}-{self.memory.count}",
            at=now,
            source=report.source,
            stream=report.stream,
            what=what,
            text=" ".join(text.split()),
            state=report.verdict.state,
            phase=phase or (run.phase if run else report.verdict.phase),
            run=run.number if run else None,
            line=line,
            reason=reason,
            previous=before,
        )


_ALARM_OF: Final = {
    State.READY: What.READY,
    State.STALLED: What.STALL,
    State.STOPPED: What.STOPPED,
    State.CRASHED: What.CRASH,
    State.CRASH_LOOPING: What.CRASH_LOOP,
}


def _soft(report: Report, run: Run) -> bool:
    """True for a failure after which nothing advanced, with no word of the process's end."""
    certain = report.verdict.certainty is Certainty.CERTAIN
    return report.verdict.state is State.CRASHED and not certain and run.exit == Exit()
