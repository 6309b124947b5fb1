"""A margin that a paste or a tool put before every line: indentation, quote marks, numbers, a file name.

Nothing is configured: the head of the log shows a margin when nearly all of its lines have it. What
is taken off keeps the line ends, so physical lines are counted as before.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Final

ENOUGH: Final = 4
SHARE: Final = 0.95
LOOKED_AT: Final = 400
NESTED: Final = 3
MAX_INDENT: Final = 40

_BLANK: Final = re.compile(rb"\s*\Z")
# Each is tried on whole lines; all lines must have the same `name` where a shape has one.
_SHAPES: Final = (
    rb"(?:> ?)+",
    rb"(?P<name>(?:[\w.~-]*/)*[\w.-]+\.(?:log|txt|out|err))(?:[:|-]\d{1,8})?[:|] ?",
    rb"(?P<name>[A-Za-z][\w.-]* (?:stdout|stderr)) \| ?",
    rb"(?P<name>[^\t\r\n]{1,80})\t[^\t\r\n]{0,80}\t(?=(?:\xef\xbb\xbf)?\d{4}-\d\d-\d\dT)",
)
_NUMBER: Final = rb"[ \t]{0,8}(?P<number>\d{1,8})(?:[:\t] ?| ?\| ?| {1,2}(?=\S))"


def margins_of(head: bytes) -> tuple[re.Pattern[bytes], ...]:
    """Return the margins of a log whose first bytes are `head`, outermost first."""
    found: list[re.Pattern[bytes]] = []
    lines = head.split(b"\n")
    lines = [line for line in lines[: -1 if len(lines) > 1 else None] if not _BLANK.match(line)]
    lines = lines[:LOOKED_AT]
    while len(lines) >= ENOUGH and len(found) < NESTED:
        shape = next(filter(None, (_common(shape, lines) for shape in _SHAPES)), None)
        shape = shape or _numbers(lines) or _indent(lines)
        if shape is None:
            break
        found.append(re.compile(rb"^" + shape, re.MULTILINE))
        lines = [re.sub(rb"\A" + shape, b"", line, count=1) for line in lines]
    return tuple(found)


def without(margins: tuple[re.Pattern[bytes], ...], region: bytes) -> bytes:
    """Take the margins off each line of a region of whole lines."""
    for margin in margins:
        region = margin.sub(b"", region)
    return region


def _common(shape: bytes, lines: list[bytes]) -> bytes | None:
    matches = [match for match in (re.match(shape, line) for line in lines) if match]
    if len(matches) < SHARE * len(lines):
        return None
    if "name" in matches[0].groupdict() and len({match["name"] for match in matches}) > 1:
        return None
    return shape


def _numbers(lines: list[bytes]) -> bytes | None:
    """Line numbers rise; those of `cat -n` by one, those of `grep -n` by any step."""
    matches = [match for match in (re.match(_NUMBER, line) for line in lines) if match]
    numbers = [int(match["number"]) for match in matches]
    rising = all(a < b for a, b in pairwise(numbers))
    return _NUMBER if rising and len(matches) >= SHARE * len(lines) else None


def _indent(lines: list[bytes]) -> bytes | None:
    """Indentation of all lines; not where all that there is are frames of a traceback."""
    shared = min(len(line) - len(line.lstrip(b" ")) for line in lines)
    if 0 < shared <= MAX_INDENT and not any(line[shared:].startswith(b'File "') for line in lines):
        return rb" {%d}" % shared
    tabs = min(len(line) - len(line.lstrip(b"\t")) for line in lines)
    return rb"\t{%d}" % tabs if 0 < tabs <= MAX_INDENT else None
