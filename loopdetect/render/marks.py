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

# Terminal codes: black on a background.
PHASE_COLORS: Final = MappingProxyType(
    {
        Phase.UNKNOWN: "30;47",
        Phase.CONFIG: "30;100",
        Phase.DOWNLOAD: "30;106",
        Phase.DEVICE_INIT: "30;47",
        Phase.DIST_INIT: "30;43",
        Phase.LOAD_WEIGHTS: "30;44",
        Phase.LOAD_DRAFT: "30;104",
        Phase.LORA_LOAD: "30;46",
        Phase.COMPILE: "30;45",
        Phase.KV_CACHE: "30;103",
        Phase.GRAPH_CAPTURE: "30;105",
        Phase.WARMUP: "30;43",
        Phase.BIND: "30;47",
        Phase.SERVING: "30;42",
        Phase.SHUTDOWN: "30;46",
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
