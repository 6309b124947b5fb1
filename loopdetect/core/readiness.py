"""What tells that a run serves: ready lines, answers, and whose they are where two servers share a log."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

from loopdetect.core import restarts
from loopdetect.core.event import Event
from loopdetect.core.open_run import OpenRun
from loopdetect.model import Certainty, Outcome

if TYPE_CHECKING:
    from loopdetect.core.run import Machine


def ready(machine: Machine, event: Event) -> None:
    """Take a line that says that requests are served."""
    machine.after_exit(event)
    run, rule = machine.opened(event), event.rule
    before = machine.runs[-1] if machine.runs else None
    if restarts.is_other_server(run, before, event):
        run = _resume(machine, run)
    elif before is not None and restarts.are_both_ready(run, before, event):
        twin = machine.runs[-1] = copy.copy(before)
        twin.outcome, twin.overlaps = Outcome.UNKNOWN, True
    if rule is None:  # a health check said so
        _answer(machine, run, event)
        return
    run.saw(rule)
    if rule.needs and not set(rule.needs) & run.seen:
        return
    machine.serve(run, event, rule.certainty)


def _resume(machine: Machine, failed: OpenRun) -> OpenRun:
    """Go on with the run before, of which the open one was no successor."""
    run = copy.deepcopy(machine.runs.pop())
    machine.close(failed, followed=False)
    failed.number, run.number = run.number, failed.number
    failed.overlaps = True
    machine.open = run
    return run


def _answer(machine: Machine, run: OpenRun, event: Event) -> None:
    if run.dead_line is not None or run.ended:
        run = machine.open_next(event)
        run.marked = True
    machine.serve(run, event, Certainty.CERTAIN)


def alive(machine: Machine, event: Event) -> None:
    """Take the proof that requests are answered."""
    run = machine.opened(event)
    if event.rule is not None and event.rule.recovers:
        run.recovered_line = event.line
        if run.ready and run.exit is None and not run.restart_said:
            # Only a worker died, or left.
            run.dead_line = run.dead_at = run.stop_line = run.goodbye_line = None
        elif run.marked:
            return  # what is started again was not up before
    if run.dead_line is None and run.stop_line is None and run.goodbye_line is None:
        # After the word that a server is gone, one beside it answers.
        run.answered = run.answered or not (run.ready and run.exit is not None)
        if not run.ready_cancelled:
            machine.serve(run, event, Certainty.LIKELY)
