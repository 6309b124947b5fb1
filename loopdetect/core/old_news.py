"""What a serving run says again: events that tell nothing new, so that nobody looks for their lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loopdetect.core import restarts
from loopdetect.core.event import Event
from loopdetect.model import Kind

if TYPE_CHECKING:
    from loopdetect.core.run import Machine


def is_old_news(machine: Machine, event: Event) -> bool:
    """Does the event tell nothing new, so that the search need not find its line?"""
    run = machine.open
    if run is None or machine.polled:
        return False
    if event.kind is Kind.ALIVE:
        told = bool(run.failures) or run.dead_line is not None or run.stop_line is not None
        recovered = event.rule is not None and event.rule.recovers and told
        return (run.answered or run.dead_line is not None) and not recovered
    if not run.serving or event.kind not in restarts.STARTING:
        return False
    if event.rule is not None:
        run.saw(event.rule)
    phase = event.phase or (event.rule.phase if event.rule else None)
    if phase is None or not restarts.may_restart(event.kind, phase):
        return True
    if event.bar is None:
        return False
    if event.bar.at_zero:
        machine.reach(phase, event)
    return True
