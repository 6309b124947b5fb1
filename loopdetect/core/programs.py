"""Supervisors that watch several programs in one log: which program a line of theirs is about."""

from __future__ import annotations

from typing import Final

from loopdetect.core.late import Late

_PROGRAM: Final = Late(
    r"(?:spawned|killing):? '(?P<spawned>[^']{1,80})'"
    r"|(?:success|exited|gave up|stopped|spawnerr|waiting for): ?(?P<state>[\w.:-]{1,80})"
    r"|'(?P<block>[^']{1,80})' std(?:out|err) output:"
    r"|App \[(?P<app>[^:\]]{1,80}):\d+\]"
    r"|(?P<proc>[\w-]+\.\d+) (?:started \(pid=|stopped \(rc=)"
    r"|sending SIG\w+ to (?P<told>[\w-]+\.\d+) "
    r"|Stopping app:(?P<stopping>[\w.-]{1,80}) id:"
)
_LITERALS: Final = (
    "spawned: '",
    " output:",
    "App [",
    "exited: ",
    "gave up: ",
    "success: ",
    "stopped: ",
    "Stopping app:",
    " (pid",
    " (rc=",
)
GAVE_UP: Final = "had too many unstable restarts"
TAILED: Final = "==> "
_TAILED: Final = Late(r"==> (?!(?:\d{4}-\d\d-\d\d[ T])?\d\d:\d\d:\d\d <)(?P<file>.{1,400}) <==$")
_BLOCK: Final = Late(
    r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} [A-Z]{4} (?:'(?P<block>[^']{1,80})' std(?:out|err) output:)?"
)


def program_of(text: str) -> str | None:
    """Return the program that a supervisor's line is about, or None."""
    if not any(literal in text for literal in _LITERALS):
        return None
    match = _PROGRAM.search(text)
    name = next((name for name in match.groups() if name), None) if match else None
    return (
        name.rpartition(":")[2] if name else None
    )  # supervisord names the group only when it spawns


def several_programs(sample: str) -> bool:
    """True when the supervisor whose words are in `sample` watches more than one program."""
    names = {
        name
        for line in sample.splitlines()
        if (name := program_of(line)) is not None and _is_supervisor(line)
    }
    return len(names) > 1


def block_program(before: str) -> str | None:
    """Return the program whose output block (supervisord at debug level) a bare line stands in."""
    found = None
    for line in before.splitlines():
        match = _BLOCK.match(line)
        if match:
            found = match["block"]
    return found


def tailed_file(text: str) -> str | None:
    """Return the file that `tail` says the next lines are from, or None."""
    match = _TAILED.match(text)
    return match["file"] if match else None


def _is_supervisor(line: str) -> bool:
    return (
        " stopped (rc=" in line
        or " started (pid=" in line
        or "App [" in line
        or "Stopping app:" in line
        or _BLOCK.match(line) is not None
        or "spawned: '" in line
    )
