"""Rows of a pod's event table, which stand in any order: how long ago, how often."""

from __future__ import annotations

from typing import Final

from loopdetect.core.late import Late

_AGE: Final = Late(r"(?:^|\s)(\d[\ddhms]*[dhms])(?: \(x(\d+) over |\s)")
_PART: Final = Late(r"(\d+)([dhms])")
_SECONDS: Final = {"d": 86400, "h": 3600, "m": 60, "s": 1}
_KILLED: Final = Late(r"Container (\S+) failed \w+ probe, will be restarted")


def age_and_count(text: str) -> tuple[int | None, int]:
    """Return how long ago a row of a pod's events was seen last, in seconds, and how often."""
    match = _AGE.search(text)
    if match is None:
        return None, 1
    age = sum(int(n) * _SECONDS[unit] for n, unit in _PART.findall(match[1]))
    return age, int(match[2] or 1)


def started_since(kill: str, started: str) -> bool:
    """Was the container that a probe ended started again? Rows stand in any order: their ages tell."""
    name = _KILLED.search(kill)
    if name is None or not started.endswith(("Started container " + name[1], "Container started")):
        return False
    killed_ago, started_ago = age_and_count(kill)[0], age_and_count(started)[0]
    return killed_ago is not None and started_ago is not None and started_ago < killed_ago
