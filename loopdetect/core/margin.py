"""A margin that a paste or a tool put before every line: indentation, quotes, numbers, names, stamps.

Nothing is configured: the head of the log shows a margin when nearly all of its lines have it. What
is taken off keeps the line ends, so physical lines are counted as before.
"""

from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise
from typing import Final

from loopdetect.core.envelope import peel, uncoloured

ENOUGH: Final = 4
SHARE: Final = 0.95
LOOKED_AT: Final = 400
NESTED: Final = 3
MAX_INDENT: Final = 40
KNOWN_LOOKED_AT: Final = 60

_BLANK: Final = re.compile(rb"\s*\Z")
# Each is tried on whole lines; all lines must have the same `name` where a shape has one.
_SHAPES: Final = (
    rb"(?:> ?)+",
    rb"(?P<name>(?:[\w.~-]*/)*[\w.-]+\.(?:log|txt|out|err))(?:[:|-]\d{1,8})?[:|] ?",
    rb"(?P<name>[A-Za-z][\w.-]* (?:stdout|stderr)) \| ?",
    rb"(?P<name>[^\t\r\n]{1,80})\t[^\t\r\n]{0,80}\t(?=(?:\xef\xbb\xbf)?\d{4}-\d\d-\d\dT)",
)
# How a program's own prefix begins, and one that has a time.
_TIMED: Final = rb"(?:DEBUG|INFO|WARNING|ERROR|CRITICAL) \d\d-\d\d \d\d:\d\d:\d\d |\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d"
_OWN: Final = re.compile(
    rb"(?P<margin>[^\r\n]{0,80}?)(?:\x1b\[[\d;]*m)*(?:\([A-Z][\w. -]{0,40} pid=\d+\)(?:\x1b\[[\d;]*m)* (?P<timed>%b)?|(?P<own>%b)"
    rb"|INFO: {5}\S|WARNING: {2}\S|ERROR: {4}\S|Loading [a-z]+ checkpoint shards: "
    rb"|(?P<header>Traceback \(most recent call last\):))" % (_TIMED, _TIMED)
)
# How lines of servers with other loggers begin, and a collector's where the program's is further in.
_OTHERS: Final = re.compile(
    rb"(?P<margin>[^\r\n]{0,80}?)(?:(?P<own>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+(?:Z|[+-]\d\d:?\d\d) |\{\"log\": ?\""
    rb"|\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} (?:- |\[?(?:DEBUG|INFO|WARNING|ERROR)\b)|INFO \d{4}-\d\d-\d\d \d\d:\d\d:\d\d,"
    rb"|\[\d\d/\d\d/\d{4}-\d\d:|[IWEF]\d{4} \d\d:\d\d:\d\d\.\d{6} |time=\d{4}-\d\d-\d\dT|\[GIN\] \d{4}/)"
    rb"|(?:(?:srv|slot|que) +[a-z_]+: |(?:main|build|system_info|llama_[a-z_]+|load_[a-z_]+|print_info|common_[a-z_]+|ggml_[a-z_]+): )"
    rb"|(?P<timed>\0)|(?P<header>\0))"
)
OWN_SHARE: Final = 0.02
OWN_LINES: Final = 2
TIMED_SHARE: Final = 0.1
# What differs from line to line in a margin: the parts of a stamp. A lone number is part of a name.
_VARIES: Final = re.compile(
    rb"(?P<kept>\b\d{1,3}(?:\.\d{1,3}){3}\b)|(?P<month>\b[A-Z][a-z]{2} +\d{1,2}\b)|(?P<half> [AP]M\b)"
    rb"|(?P<level>\b(?:DEFAULT|TRACE|DEBUG|INFO|NOTICE|WARN(?:ING)?|ERROR|CRITICAL|FATAL)\b)"
    rb"|(?P<time>\d+(?:[-/:.,]\d+)+(?:T\d+(?:[:.,]\d+)+)?|\b1[4-9]\d{8}(?:\.\d+)?)"
)
_VARIED: Final = {
    "month": rb"[A-Z][a-z]{2} +\d{1,2}",
    "half": rb" [AP]M",
    "level": rb"[A-Z]{4,8}",
    "time": rb"\d[\d:./,T-]*",
}
# The name of a program or a service that a launcher put before its lines, which says more than a margin.
_NAMED: Final = re.compile(
    rb"(?:\d{1,3}\|)?[A-Za-z0-9][\w.@-]* +\| ?\Z|\[pod/|\d{1,4}: \Z|[a-z0-9][a-z0-9.-]*-[a-z0-9]+ [a-z0-9-]+ \Z"
    rb"|.*(?:\x1b|[\w=]\Z)"
)
_FRAMES: Final = (
    (b"\xe2\x94\x82", rb"[ \t]*\xe2\x94\x82[ \t]*(?=\r?$)"),
    (b'"', rb'"(?=,?\r?$)'),
)
_COUNTED: Final = rb" {0,9}(?P<number>\d{1,7})\t"
_NUMBER: Final = rb"[ \t]{0,8}(?P<number>\d{1,8})(?:[:\t] ?| ?\| ?| {1,2}(?=\S))"


def margins_of(head: bytes) -> tuple[re.Pattern[bytes], ...]:
    """Return the margins of a log whose first bytes are `head`, outermost first."""
    found: list[re.Pattern[bytes]] = []
    lines = _filled(head)
    while len(lines) >= ENOUGH and len(found) < NESTED:
        shape = next(filter(None, (_common(shape, lines) for shape in _SHAPES)), None)
        shape = shape or _numbers(lines) or _indent(lines) or _learnt(lines)
        if shape is None:
            break
        new = [rb"^" + shape, *_right_of(shape, lines)]
        found.extend(re.compile(pattern, re.MULTILINE) for pattern in new)
        lines = [without(tuple(found[-len(new) :]), line) for line in lines]
    return tuple(found)


def line_numbers_of(head: bytes) -> tuple[re.Pattern[bytes], ...]:
    """Return the margin that `cat -n` makes, which counts lines as a loop counts its tries; none without it."""
    matches = [re.match(_COUNTED, line) for line in _filled(head)]
    numbers = [int(match["number"]) for match in matches if match]
    counted = len(numbers) == len(matches) >= ENOUGH
    if not counted or any(b - a != 1 for a, b in pairwise(numbers)):
        return ()
    return (re.compile(rb"^" + _COUNTED, re.MULTILINE),)


def _filled(head: bytes) -> list[bytes]:
    lines = head.split(b"\n")
    lines = [line for line in lines[: -1 if len(lines) > 1 else None] if not _BLANK.match(line)]
    return lines[:LOOKED_AT]


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


def _learnt(lines: list[bytes]) -> bytes | None:
    """A margin of no known shape, before lines that begin with their program's own prefix."""
    return _before(_OWN, lines) or _before(_OTHERS, lines)


def _before(prefix: re.Pattern[bytes], lines: list[bytes]) -> bytes | None:
    own = [match for match in map(prefix.match, lines) if match]
    if not own or len(own) < OWN_SHARE * len(lines):
        return None
    margins = Counter(match["margin"] for match in own)
    margin = margins.most_common(1)[0][0]
    shape = _shape_of(margin)
    same = sum(re.match(shape, match[0]) is not None for match in own)
    if not shape or same < SHARE * len(own) or _NAMED.match(margin):
        return None
    # The program's prefix has the time that counts: nothing is lost with the margin's own.
    timed = sum(bool(match["timed"] or match["own"]) for match in own)
    constant = shape == re.escape(margin)
    if len(own) < OWN_LINES and not (constant and all(map(re.compile(shape).match, lines))):
        return None
    if not constant and timed < TIMED_SHARE * len(own) and not any(m["header"] for m in own):
        return None
    known = sum(_is_known(match.string, prefix) for match in own[:KNOWN_LOOKED_AT])
    return None if 2 * known > len(own[:KNOWN_LOOKED_AT]) else _common(shape, lines)


def _right_of(shape: bytes, lines: list[bytes]) -> list[bytes]:
    """What a frame or quotes put after each line, where they begin with what stands before it."""
    for left, right in _FRAMES:
        if shape.startswith(left):
            ends = sum(re.search(right, line) is not None for line in lines)
            quotes = [rb'"(?=")'] if left == b'"' else []
            return [right, *quotes] if ends >= SHARE * len(lines) else []
    return []


def _shape_of(margin: bytes) -> bytes:
    """Return the pattern of a margin in which only the parts of a stamp may differ."""
    shape, at = b"", 0
    for match in _VARIES.finditer(margin):
        kind = match.lastgroup or ""
        shape += re.escape(margin[at : match.start()]) + _VARIED.get(kind, re.escape(match[0]))
        at = match.end()
    return shape + re.escape(margin[at:])


def _is_known(line: bytes, prefix: re.Pattern[bytes]) -> bool:
    """Do the envelopes that are known leave a line that begins with its program's own prefix?"""
    peeled = peel(uncoloured(line.decode("utf-8", "replace")))
    match = prefix.match(peeled.text.encode())
    return bool(peeled.kinds) and match is not None and not match["margin"]
