"""Signals as programs, shells and supervisors name them."""

from __future__ import annotations

import re
from typing import Final

SIGNALS: Final = {
    1: "SIGHUP", 2: "SIGINT", 3: "SIGQUIT", 4: "SIGILL", 5: "SIGTRAP", 6: "SIGABRT", 7: "SIGBUS",
    8: "SIGFPE", 9: "SIGKILL", 11: "SIGSEGV", 13: "SIGPIPE", 15: "SIGTERM",
}  # fmt: skip
ASKED_SIGNALS: Final = frozenset({"SIGTERM", "SIGINT", "SIGHUP"})
CRASH_SIGNALS: Final = {
    "SIGSEGV": "segfault", "SIGABRT": "abort", "SIGBUS": "segfault", "SIGILL": "illegal-instruction",
    "SIGFPE": "abort", "SIGTRAP": "abort",
}  # fmt: skip
_WORDS: Final = {
    "killed": "SIGKILL", "terminated": "SIGTERM", "segmentation fault": "SIGSEGV", "aborted": "SIGABRT",
    "abort": "SIGABRT", "bus error": "SIGBUS", "illegal instruction": "SIGILL", "interrupt": "SIGINT",
    "quit": "SIGQUIT", "hangup": "SIGHUP", "floating point exception": "SIGFPE", "segv": "SIGSEGV",
    "out of memory": "SIGKILL",
}  # fmt: skip


def signal_name(text: str) -> str | None:
    """Return SIGKILL for '9', 'KILL', '9/KILL', 'SIGKILL' or 'Killed'; None if it is no signal."""
    word = text.strip().lower()
    if word in _WORDS:
        return _WORDS[word]
    match = re.match(r"-?(\d+)", word)
    if match:
        return SIGNALS.get(int(match[1]))
    name = "SIG" + word.removeprefix("sig").upper()
    return name if name in SIGNALS.values() else None
