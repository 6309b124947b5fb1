"""One segment of text as it reaches a stream, and what can be asked of it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from loopdetect.core.envelope import Enveloped
from loopdetect.core.event import Failure
from loopdetect.core.rules import Message
from loopdetect.core.timestamp import parse
from loopdetect.model import Kind, Shared

TEXT_SHOWN: Final = 1000
COMPLAINT: Final = re.compile(
    r"(?i)\b(?:error|fail(?:ed|ure)|fatal|cannot|can't|could not|unable|invalid|unknown|not found|no such|denied|refused|"
    r"mismatch|corrupt\w*|missing|panic|abort\w*|exception|unsupported|out of memory|"
    r"damaged|truncated|giving up|too (?:small|large|old|new)|expired|insufficient)\b"
)


@dataclass(frozen=True, slots=True)
class Line(Shared):
    """One segment of text as it reaches a stream: physical line number, envelope off."""

    number: int
    enveloped: Enveloped
    hit: bool
    time_before: Callable[[], float | None] | None = None
    lines_before: Callable[[], tuple[str, ...]] | None = None


# A logger's line with these words is about something that the program got round.
GETS_ON: Final = re.compile(
    r"(?i)\b(?:retrying|will retry|trying again|falling back|fall ?back to|skipping|ignoring|ignored|"
    r"continuing|carrying on|anyway|non-?fatal)\b"
)
OWN_LINES: Final = frozenset({"supervisord", "pm2-daemon"})
ANSWERED_BADLY: Final = re.compile(r'HTTP/\d(?:\.\d)?" 5\d\d ')


def last_words(line: Line) -> Failure | None:
    """Return what an unknown program complained of right before its exit was reported: a guess, and said so."""
    before = line.lines_before() if line.lines_before is not None else ()
    for back, text in enumerate(reversed(before), 1):
        if COMPLAINT.search(text) and not text[:1].isspace():
            return Failure(
                max(1, line.number - back), text.strip()[:TEXT_SHOWN], "unknown", vague=True
            )
    return None


def writer(line: Line, message: Message) -> str:
    """Name who wrote a line, so that interleaved tracebacks are kept apart."""
    process = message.process or line.enveloped.process
    pid = message.pid or line.enveloped.pid
    return f"{process}/{pid}" if process and pid else process or pid or ""


def excuse(kind: Kind, line: Line, message: Message) -> str | None:
    """Return the prefix that a traceback must share to be excused by the line before it.

    A failed request heads its traceback in any form; a harmless warning only one that its own
    log record holds, with the same prefix on each line.
    """
    if kind is Kind.REQUEST_ERROR:
        return None
    whole = line.enveloped.text
    return whole[: len(whole) - len(message.text)] or "none"


def source(line: Line) -> str:
    """Name the process that a collector says wrote a line."""
    return f"{line.enveloped.process or ''}/{line.enveloped.pid or ''}"


def prefixed(message: Message) -> bool:
    """True when the program's own logger stood before the message."""
    return message.time is not None or message.level is not None or message.process is not None


def own_time(message: Message) -> float | None:
    """Return the stamp that the program itself put on a line."""
    stamp = parse(message.time) if message.time else None
    return stamp.seconds if stamp else None


def uptime(text: str | None) -> float | None:
    """Read llama.cpp's clock since process start: minutes.seconds.milliseconds.microseconds."""
    if not text:
        return None
    parts = text.split(".")
    try:
        if len(parts) == 4:
            return int(parts[0]) * 60 + int(parts[1]) + int(parts[2]) / 1e3 + int(parts[3]) / 1e6
        return float(text)
    except ValueError:
        return None


def wraps(enveloped: Enveloped) -> bool:
    """Does the stamp stand before a program's line? A supervisor's own line wraps nothing."""
    return enveloped.stamp is not None and not OWN_LINES & set(enveloped.kinds)
