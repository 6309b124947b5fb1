"""Colours, where they are wanted."""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType
from typing import Final

from loopdetect.model import Outcome, State

_RESET: Final = "\x1b[0m"
BOLD: Final = "1"
DIM: Final = "2"
RED: Final = "31"
GREEN: Final = "32"
YELLOW: Final = "33"
MAGENTA: Final = "35"
CYAN: Final = "36"

STATE_COLORS: Final = MappingProxyType(
    {
        State.LOADING: YELLOW,
        State.READY: GREEN,
        State.STALLED: MAGENTA,
        State.STOPPED: CYAN,
        State.CRASHED: RED,
        State.CRASH_LOOPING: f"{BOLD};{RED}",
        State.UNKNOWN: DIM,
    }
)

OUTCOME_COLORS: Final = MappingProxyType(
    {
        Outcome.READY: GREEN,
        Outcome.LOADING: YELLOW,
        Outcome.STALLED: MAGENTA,
        Outcome.STOPPED: CYAN,
        Outcome.CRASHED: RED,
        Outcome.KILLED: RED,
        Outcome.CUT_OFF: DIM,
        Outcome.UNKNOWN: DIM,
    }
)

Paint = Callable[[str, str], str]


def painter(color: bool) -> Paint:
    """Return a function (text, code) -> text that colours, or one that leaves the text alone."""
    if not color:
        return lambda text, code: text
    return lambda text, code: f"\x1b[{code}m{text}{_RESET}"
