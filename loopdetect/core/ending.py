"""What speaks of a run's end: failures, cascades, stops, exits, and what supervisors say of them."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from loopdetect.core import restarts
from loopdetect.core.event import Event, Failure
from loopdetect.core.fingerprint import mask
from loopdetect.core.open_run import OpenRun
from loopdetect.core.outcome import PROBED, settle
from loopdetect.core.pod_events import age_and_count, started_since
from loopdetect.core.signals import CRASH_SIGNALS, SIGNALS, signal_name
from loopdetect.model import Certainty, Exit, Phase
from loopdetect.profiles.schema import Own

if TYPE_CHECKING:
    from loopdetect.core.run import Machine

MAX_FAILURES: Final = 64
# A program that has said more than this is hardly starting any more.
START_LINES: Final = 400
# What a shell script that started the server answers after these is its own status.
_LAST_WORDS: Final = frozenset({"SIGKILL", *CRASH_SIGNALS})


def _another_death(machine: Machine, event: Event, *, fatal: bool) -> bool:
    """Is this the death of a run whose start nobody told of?"""
    run = machine.open
    if run is None:
        return False
    if event.ends and restarts.last_word_again(run, event, ranks=machine.ranks):
        return True
    bare = machine.anonymous or not machine.ranks
    return fatal and bare and restarts.dies_again(run, event)


def failure(machine: Machine, event: Event) -> None:
    """Take a candidate for the cause."""
    failure = event.failure
    assert failure is not None
    if failure.outside and _is_tabled(machine):
        _explain(machine, event)
        return
    if not failure.outside:
        machine.after_exit(event)
    machine.polled_restart(event, None)
    if event.ends:
        machine.retold(machine.open, event)
    if _another_death(machine, event, fatal=failure.fatal) or _fails_again(machine.open, event):
        machine.open_next(event)
    run = machine.opened(event)
    run.spoke_last = run.spoke_last or event.ends
    if failure.weak and failure.reason == PROBED:
        run.notices = max(run.notices, 1)  # something is asked whether it is up
    if _sent_away(run, event):
        run.stop_line = run.goodbye_line = None
        _die(machine, run, event, failure.phase)
    asked = run.stop_line is not None and event.line >= run.stop_line
    if asked and run.dead_line is None and not failure.outside:
        return
    _was_serving(machine, run, event, failure.while_serving)
    if len(run.failures) >= MAX_FAILURES:
        del run.failures[MAX_FAILURES // 2]
    run.failures.append(failure)
    if failure.cancels_ready and run.ready and not run.answered:
        run.ready_line = run.ready_at = None
        run.ready_cancelled = True
        run.spans.pop(Phase.SERVING, None)
        run.phase = failure.phase or Phase.BIND
    if failure.fatal and not (failure.outside and run.dead_line is not None):
        _die(machine, run, event, failure.phase)
        run.outside = run.outside or failure.outside
        if failure.outside and machine.container_row is not None:
            _container_started(machine, machine.container_row)


def _fails_again(run: OpenRun | None, event: Event) -> bool:
    """Is it the same fault once more, well after a supervisor said that it starts the program again?"""
    if run is None or run.marked or not run.restart_said or event.failure is None:
        return False
    if event.time is None or run.last_time is None:
        return False
    same = any(f.text == event.failure.text for f in run.failures)
    return same and event.time - run.last_time > restarts.CONCURRENT_S


def _sent_away(run: OpenRun, event: Event) -> bool:
    """Was the server stopped by the program that started it, which now dies of the fault before?"""
    failure, at = event.failure, run.stop_line
    if failure is None or failure.weak or at is None or run.dead_line is not None or run.answered:
        return False
    near = [f for f in run.failures if not f.weak and 0 <= at - f.line <= restarts.NEAR_LINES]
    return bool(near) and (event.ends or any(f.text == failure.text for f in near))


def _is_tabled(machine: Machine) -> bool:
    """Is all that is known of the open run that a table says that its container runs?"""
    run = machine.open
    return run is not None and run.number == machine.tabled and restarts.only_supervised(run)


def _explain(machine: Machine, event: Event) -> None:
    """The events below a table tell why the container before this one ended."""
    before = machine.runs[-1] = copy.deepcopy(machine.runs[-1])
    assert event.failure is not None
    before.failures.append(event.failure)
    if event.failure.fatal:
        before.outside = True
        _die(machine, before, event, None)
    settle(before, followed=True)


def cascade(machine: Machine, event: Event) -> None:
    """Take a line that tells that the run is dying, but not why."""
    rule = event.rule
    fatal = rule.fatal if rule else True
    if rule is not None and rule.own is not None:
        _complain(machine, event)
        return
    if machine.open is None and not fatal:
        return
    if fatal:
        machine.polled_restart(event, None)
        if _another_death(machine, event, fatal=True):
            machine.open_next(event)
    run = machine.opened(event)
    if rule is not None:
        run.saw(rule)
        if rule.cancels_ready and run.ready and not run.answered:
            run.ready_line = run.ready_at = None
            run.ready_cancelled = True
            run.phase = rule.phase or Phase.BIND
    _was_serving(machine, run, event, rule is not None and rule.while_serving)
    if fatal and run.stop_line is None:
        run.spoke_last = run.spoke_last or event.ends
        if machine.anonymous and not run.failures and run.last_said is None:
            run.last_said = event.words
        _die(machine, run, event, None)


def _complain(machine: Machine, event: Event) -> None:
    """Keep what an unknown program says of its start: what it is at, or what may prove its last word."""
    run = machine.open
    if not machine.anonymous or machine.polled or event.line > START_LINES:
        return
    if run is not None and (run.ready or run.answered or run.dead_line is not None):
        return
    own = event.rule.own if event.rule is not None else None
    if own is Own.BEGINS:
        _begins(machine, event)
        return
    run = machine.opened(event)
    if own is Own.AT_IT:
        run.notices, run.notice_line, run.notice_text = 1, event.line, event.text
        run.last_said = None  # it gets on
        return
    said = run.last_said
    if said is not None and event.line - max(said.line, said.until) <= restarts.NEAR_LINES:
        run.last_said = replace(said, until=event.line)
    elif own is not Own.EXPLAINS:
        run.last_said = Failure(event.line, event.text, "unknown", vague=True)


def _begins(machine: Machine, event: Event) -> None:
    """Take an unknown program's word that it begins: the same word again, after a fault, is another run's."""
    run, word = machine.open, (Own.BEGINS.value, None, mask(event.text))
    if run is None or not (run.last_said or run.failures):
        machine.starts.add(word)
    elif not run.marked and word in machine.starts:
        run.anonymous = True
        machine.open_next(event)


def _was_serving(machine: Machine, run: OpenRun, event: Event, proof: bool) -> None:
    """What only a serving engine prints proves, in a log that begins in mid-run, that it served."""
    if proof and not run.marked and run.dead_line is None:
        machine.serve(run, event, Certainty.LIKELY)


def _die(machine: Machine, run: OpenRun, event: Event, phase: Phase | None) -> None:
    if event.rule is not None:
        run.last_words[event.rule.id] = event.text
        run.last_own = event.own
    if run.dead_line is None:
        run.dead_line, run.dead_at, run.dead_text = event.line, event.time, event.text
        run.dead_phase = phase or run.phase


def stop(machine: Machine, event: Event) -> None:
    """Take the word of somebody who asked for the end, or a goodbye."""
    rule = event.rule
    if rule is not None and rule.own is Own.LEAVES and not machine.anonymous:
        return
    if machine.open is None and rule is not None and not rule.asked:
        return
    run = machine.opened(event)
    if restarts.ends_with_the_others(run, event):
        return
    if rule is None or rule.asked:
        if run.stop_line is None and run.dead_line is None:
            run.stop_line, run.stop_text, run.stop_phase = event.line, event.text, run.phase
    elif run.goodbye_line is None:
        run.goodbye_line = event.line


def exit(machine: Machine, event: Event) -> None:
    """Take how the process left."""
    run = machine.open
    if run is None:
        run = machine.opened(event)
    if restarts.exits_again(run, event):
        run = machine.open_next(event)
    if run.exit is not None and run.exit_line is not None and run.exit.signal in _LAST_WORDS:
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
    run.exit_is_last = event.rule is not None and event.rule.last_word
    if (
        machine.anonymous
        and not run.failures
        and event.words is not None
        and (code not in (None, 0) or signal)
    ):
        run.last_said = event.words
    run.exit_asked = bool(event.rule and event.rule.asked)
    now = machine.runs_now
    gone = run.dead_line is not None or restarts.only_supervised(run)
    if gone and now is not None and event.line - now <= restarts.NEAR_LINES:
        machine.tabled = run.number + 1
        machine.begin(event)  # the table tells of the container before this one


def restart(machine: Machine, event: Event) -> None:
    """Take a supervisor's word that it starts the program again, or did."""
    if event.fields.get("row"):
        _container_started(machine, event)
        return
    if event.fields.get("now"):
        machine.runs_now = event.line
        return
    count = _integer(event.fields.get("counter"))
    if count is not None:
        machine.counter = max(count, machine.counter or 0)
    if machine.open is not None and not event.fields.get("counter_only"):
        machine.open.restart_said = True


def gave_up(machine: Machine, event: Event) -> None:
    """Take a supervisor's word that it stopped trying."""
    machine.gave_up = event
    count = _integer(event.fields.get("counter"))
    if count is not None:
        machine.counter = max(count, machine.counter or 0)
    run = machine.opened(event)
    run.restart_said = True


def _container_started(machine: Machine, event: Event) -> None:
    """A pod's events show that a container was started: anew, if a probe ended it before."""
    run = machine.open
    if (
        run is not None
        and run.outside
        and run.dead_line is not None
        and started_since(run.dead_text, event.text)
    ):
        machine.begin(event)
        starts = age_and_count(event.text)[1]
        machine.counter = max(starts - 1, machine.counter or 0)
    else:
        machine.container_row = event


def _integer(text: str | None) -> int | None:
    try:
        return int(text) if text is not None else None
    except ValueError:
        return None
