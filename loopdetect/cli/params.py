"""Words of the command line that are more than text: durations, moments, lists of states."""

from __future__ import annotations

import difflib
import re
from datetime import UTC, datetime
from typing import Final

import click

from loopdetect.model import State

_UNIT_SECONDS: Final = {"d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_DURATION: Final = re.compile(r"(?:\d+(?:\.\d+)?(?:ms|[dhms]))+", re.ASCII)
_PART: Final = re.compile(r"(\d+(?:\.\d+)?)(ms|[dhms])")
_NUMBER: Final = re.compile(r"\d+(?:\.\d+)?", re.ASCII)
_STAMP: Final = re.compile(
    r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d{1,6})?)?)?(?:Z|[+-]\d\d:?\d\d)?", re.ASCII
)


class Duration(click.ParamType[float]):
    """`90s`, `5m`, `1h30m`, `2d`; a bare number is seconds."""

    name = "duration"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return seconds."""
        if isinstance(value, float):
            return value
        text = str(value).strip().lower()
        if _NUMBER.fullmatch(text):
            return float(text)
        if not _DURATION.fullmatch(text):
            self.fail(f"{text!r} is not a duration; write it like 90s, 5m or 1h30m", param, ctx)
        return sum(float(number) * _UNIT_SECONDS[unit] for number, unit in _PART.findall(text))


class Moment(click.ParamType[float]):
    """An ISO time or seconds since 1970; without a zone it is on the log's own clock."""

    name = "time"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return seconds since 1970."""
        if isinstance(value, float):
            return value
        text = str(value).strip()
        if _NUMBER.fullmatch(text):
            return float(text)
        try:
            if not _STAMP.fullmatch(text):
                raise ValueError(text)
            moment = datetime.fromisoformat(text.replace(",", "."))
        except ValueError:
            self.fail(
                f"{text!r} is not a time; write 2026-01-31T12:00:00, with Z or +02:00 if the log "
                "has a zone, or seconds since 1970",
                param,
                ctx,
            )
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


class States(click.ParamType[frozenset[State]]):
    """A comma-separated list of states."""

    name = "states"

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        """Return what help shows for the value."""
        return "STATE[,STATE…]"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> frozenset[State]:
        """Return the states."""
        if isinstance(value, frozenset):
            return value
        words = [word.strip().lower().replace("_", "-") for word in str(value).split(",")]
        known = {state.value: state for state in State}
        for word in words:
            if word not in known:
                near = difflib.get_close_matches(word, known, n=1)
                hint = f"did you mean {near[0]}?" if near else f"use {', '.join(known)}"
                self.fail(f"{word!r} is not a state; {hint}", param, ctx)
        return frozenset(known[word] for word in words)


DURATION: Final = Duration()
MOMENT: Final = Moment()
STATES: Final = States()
