"""A letter for each phase and a mark for each outcome: no chart speaks by colour alone."""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

from loopdetect.model import Outcome, Phase

LETTERS: Final = MappingProxyType(
    {
        Phase.UNKNOWN: ".",
        Phase.CONFIG: "c",
        Phase.DOWNLOAD: "d",
        Phase.DEVICE_INIT: "i",
        Phase.DIST_INIT: "n",
        Phase.LOAD_WEIGHTS: "w",
        Phase.LOAD_DRAFT: "f",
        Phase.LORA_LOAD: "l",
        Phase.COMPILE: "p",
        Phase.KV_CACHE: "k",
        Phase.GRAPH_CAPTURE: "g",
        Phase.WARMUP: "u",
        Phase.BIND: "b",
        Phase.SERVING: "s",
        Phase.SHUTDOWN: "e",
    }
)

# The background of a phase's block, as a terminal's code; ten less is the same as a foreground.
PHASE_COLORS: Final = MappingProxyType(
    {
        Phase.UNKNOWN: 47,
        Phase.CONFIG: 100,
        Phase.DOWNLOAD: 106,
        Phase.DEVICE_INIT: 47,
        Phase.DIST_INIT: 43,
        Phase.LOAD_WEIGHTS: 44,
        Phase.LOAD_DRAFT: 104,
        Phase.LORA_LOAD: 46,
        Phase.COMPILE: 45,
        Phase.KV_CACHE: 103,
        Phase.GRAPH_CAPTURE: 105,
        Phase.WARMUP: 43,
        Phase.BIND: 47,
        Phase.SERVING: 42,
        Phase.SHUTDOWN: 46,
    }
)

READY_MARK: Final = ("✓", "+")
CUT_MARK: Final = ("»", ">")
FILL: Final = ("━", "-")
# Outcome -> its mark, and the one where only ASCII can be printed.
OUTCOME_MARKS: Final = MappingProxyType(
    {
        Outcome.READY: ("▸", ")"),
        Outcome.LOADING: ("▹", ")"),
        Outcome.STALLED: ("‖", "="),
        Outcome.STOPPED: ("■", "S"),
        Outcome.CRASHED: ("✗", "X"),
        Outcome.KILLED: ("†", "K"),
        Outcome.CUT_OFF: ("≈", "~"),
        Outcome.UNKNOWN: ("?", "?"),
    }
)
# What a legend says of a mark, where that is more than the outcome's word.
OUTCOME_WORDS: Final = MappingProxyType(
    {Outcome.READY: "still ready", Outcome.LOADING: "still loading"}
)
