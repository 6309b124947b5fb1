"""Other units and pods that a log tells of beside the server's own."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from loopdetect.core.event import Event
from loopdetect.model import Kind
from loopdetect.profiles.schema import Speaker

UNIT_STARTS_S: Final = 180.0
MAX_ROWS: Final = 256


@dataclass(slots=True)
class Strangers:
    """What a log tells of other units and pods, so that their ends are not taken for the server's.

    The server's unit is the only one that was started right before the program's first line; its
    pod is the one whose log was asked for. While neither is known, everybody may be meant.
    """

    units: frozenset[str] = frozenset()
    started: dict[str, float | None] = field(default_factory=dict)
    pod: str | None = None
    rows: list[Event] = field(default_factory=list)

    def of_unit(self, event: Event) -> bool:
        """Is it systemd's word of a unit that is not the server's?"""
        unit = event.fields.get("unit")
        if unit is not None:
            base = unit.partition("@")[0]
            if event.kind is Kind.START:
                self.started[base] = event.time
            return bool(self.units) and base not in self.units
        program = event.rule is not None and event.rule.speaker is not Speaker.SUPERVISOR
        if self.started and program and event.kind is Kind.START:
            self.units |= self._just_started(event.time)
            self.started.clear()
        return False

    def of_pod(self, event: Event) -> bool:
        """Is it a row about a pod whose log this is not?"""
        pod = event.fields.get("pod")
        if pod is None:
            return False
        if self.pod is None:
            if len(self.rows) < MAX_ROWS:
                self.rows.append(event)
            return False
        return not _is_pod(self.pod, pod)

    def name_pod(self, own: str) -> list[Event] | None:
        """Learn whose log follows; return the earlier rows about it if others were about other pods."""
        self.pod, rows, self.rows = own, self.rows, []
        kept = [row for row in rows if _is_pod(own, row.fields["pod"] or "")]
        return kept if len(kept) < len(rows) else None

    def _just_started(self, at: float | None) -> frozenset[str]:
        near = {
            unit
            for unit, time in self.started.items()
            if at is not None and time is not None and 0 <= at - time <= UNIT_STARTS_S
        }
        return frozenset(near if len(near) == 1 else ())


def _is_pod(own: str, pod: str) -> bool:
    return pod == own or pod.startswith(own + "-")
