"""Groups and states as JSON, for scripts: keys are only ever added.

The document is written while logs are read, so it is made in pieces: each report is one line.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from loopdetect import __version__
from loopdetect.model import State
from loopdetect.render.clock import iso
from loopdetect.render.escape import json_safe
from loopdetect.render.to_json import SCHEMA_VERSION, Json
from loopdetect.scan.groups import Example, Group
from loopdetect.scan.words import Shown


class Document:
    """One document in pieces: `head`, `reports` any number of times, `tail`."""

    def __init__(self) -> None:
        self._before = "\n"

    def head(self) -> str:
        """Return what comes before the reports."""
        version = json.dumps(__version__)
        return f'{{"schema_version": {SCHEMA_VERSION}, "tool_version": {version}, "reports": ['

    def reports(self, lines: str) -> str:
        """Return JSON lines as members of the list."""
        text = "".join(
            f"{self._before if place == 0 else ',' + chr(10)}{line}"
            for place, line in enumerate(lines.splitlines())
        )
        if text:
            self._before = ",\n"
        return text

    def tail(self, told: Shown) -> str:
        """Return what comes after the reports."""
        groups = ",\n".join(_dumped(group_object(group)) for group in told.groups)
        counts = {state.value: told.tally.states[state] for state in State}
        rest = _dumped(
            {
                "states": counts,
                "logs": told.tally.logs,
                "unreadable": told.tally.unread,
                "more_groups": told.more,
            }
        )
        return f'\n], "groups": [\n{groups}\n], {rest[1:]}\n'


def _dumped(value: object) -> str:
    return json_safe(json.dumps(value, ensure_ascii=False, allow_nan=False))


def group_object(group: Group) -> Json:
    """Return one group as a JSON object."""
    failure = group.failure
    clock, first, last = group.times or (None, None, None)
    return {
        "fingerprint": failure.fingerprint,
        "server": failure.server,
        "phase": failure.phase.value,
        "reason": failure.reason,
        "text": failure.text or None,
        "ending": None if failure.fingerprint else failure.ending,
        "hint": failure.hint or None,
        "logs": group.logs,
        "streams": group.streams,
        "runs": group.runs,
        "crashes": group.crashes,
        "states": dict(_counts(group)),
        "first_seen": iso(first, clock),
        "last_seen": iso(last, clock),
        "examples": [_example(example) for example in group.examples],
    }


def _counts(group: Group) -> Iterator[tuple[str, int]]:
    yield from ((state.value, group.states[state]) for state in State if group.states[state])


def _example(example: Example) -> Json:
    return {
        "source": example.source,
        "stream": example.stream,
        "line": example.line,
        "file": example.file,
        "file_line": example.file_line,
        "text": example.failure.text or None,
        "ending": example.failure.ending,
    }
