"""Durations, moments and lists of states as people write them, on a command line or in a file."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Final

from loopdetect.errors import suggestion
from loopdetect.model import State

_UNIT_SECONDS: Final = {"d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_DURATION: Final = r"(?:[0-9]+(?:\.[0-9]+)?(?:ms|[dhms]))+"
_PART: Final = r"([0-9]+(?:\.[0-9]+)?)(ms|[dhms])"
_NUMBER: Final = r"[0-9]+(?:\.[0-9]+)?"
_STAMP: Final = (
    r"(?a)\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d{1,6})?)?)?(?:Z|[+-]\d\d:?\d\d)?"
)


def duration(value: object) -> float:
    """Return the seconds of `90s`, `5m`, `1h30m`, `2d` or a bare number; raises ValueError."""
    if isinstance(value, float):
        return value
    text = str(value).strip().lower()
    if re.fullmatch(_NUMBER, text):
        return float(text)
    if not re.fullmatch(_DURATION, text):
        raise ValueError(f"{text!r} is not a duration; write it like 90s, 5m or 1h30m")
    return sum(float(number) * _UNIT_SECONDS[unit] for number, unit in re.findall(_PART, text))


def moment(value: object) -> float:
    """Return the seconds since 1970 of an ISO time, without a zone on the log's own clock.

    Raises ValueError.
    """
    if isinstance(value, float):
        return value
    text = str(value).strip()
    if re.fullmatch(_NUMBER, text):
        return float(text)
    try:
        if not re.fullmatch(_STAMP, text):
            raise ValueError(text)
        found = datetime.fromisoformat(text.replace(",", "."))
    except ValueError as problem:
        raise ValueError(
            f"{text!r} is not a time; write 2026-01-31T12:00:00, with Z or +02:00 if the log "
            "has a zone, or seconds since 1970"
        ) from problem
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()


def states(value: object) -> frozenset[State]:
    """Return the states of a comma-separated list; raises ValueError."""
    if isinstance(value, frozenset):
        return value
    words = [word.strip().lower().replace("_", "-") for word in str(value).split(",")]
    known = {state.value: state for state in State}
    for word in words:
        if word not in known:
            raise ValueError(f"{word!r} is not a state; {suggestion(word, known)}")
    return frozenset(known[word] for word in words)
