"""The exit codes, in the one place that says them."""

from __future__ import annotations

from enum import IntEnum
from types import MappingProxyType
from typing import Final


class ExitCode(IntEnum):
    """What the command's exit status tells a script."""

    OK = 0
    FINDING = 1
    UNABLE = 2
    BUG = 3
    UNDECIDED = 4
    LOOPING = 5
    STALLED = 6
    TIME_LIMIT = 124
    INTERRUPTED = 130
    READER_GONE = 141
    TERMINATED = 143


MEANINGS: Final = MappingProxyType(
    {
        ExitCode.OK: "nothing bad; the report was made, or the server is ready",
        ExitCode.FINDING: "a finding: a --fail-on state, a failed check, a server that is gone",
        ExitCode.UNABLE: "could not do it: usage, unreadable file, bad profile",
        ExitCode.BUG: "a bug in loopdetect itself",
        ExitCode.UNDECIDED: "undecided: nothing was recognised",
        ExitCode.LOOPING: "waited for a server that is crash-looping",
        ExitCode.STALLED: "waited for a server that is stalled",
        ExitCode.TIME_LIMIT: "the time limit of a wait",
        ExitCode.INTERRUPTED: "interrupted (Ctrl-C)",
        ExitCode.READER_GONE: "the reader of the output went away",
        ExitCode.TERMINATED: "terminated",
    }
)


def rows(*codes: ExitCode) -> list[tuple[str, str]]:
    """Return code and meaning of the given codes, of all without any."""
    return [(str(code.value), MEANINGS[code]) for code in (codes or MEANINGS)]
