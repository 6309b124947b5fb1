"""Words of the command line that are more than text, for click."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

import click

from loopdetect import written

Value = TypeVar("Value")


class Written(click.ParamType[Value]):
    """A value that is read by a function, whose complaint becomes click's."""

    def __init__(self, name: str, read: Callable[[object], Value], metavar: str) -> None:
        self.name = name
        self._read = read
        self._metavar = metavar

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        """Return what help shows for the value."""
        return self._metavar

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> Value:
        """Return the value, or fail as click does."""
        try:
            return self._read(value)
        except ValueError as problem:
            self.fail(str(problem), param, ctx)


DURATION: Final = Written("duration", written.duration, "DURATION")
MOMENT: Final = Written("time", written.moment, "TIME")
STATES: Final = Written("states", written.states, "STATE[,STATE…]")
