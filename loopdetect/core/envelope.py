"""What collectors wrap round a line, taken off with its time, stream and process.

Nothing is configured: each shape is strict enough to be known by itself, and shapes nest
(a kubectl prefix round a CRI line round a Ray prefix), so peeling repeats, once for each kind.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Final

from loopdetect.core.late import Late
from loopdetect.core.timestamp import MONTHS, Stamp, parse
from loopdetect.model import Shared

# Escape sequences as they are, and as collectors write them out (#033 by syslog, ^[ by cat -v).
ANSI: Final = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\^_=>])"
    r"|(?:#033|\^\[|\\x1b|\\u001b|\\033|\ufffd|\u241b|\u2190)\[[0-9;]{0,12}m"
    r"|\[(?:0;0|[01];3[0-7])m"
)
# Among the names of services: the lines have stamps like those of a syslog, but no hosts.
NO_HOST: Final = "host-less"
# What each of them holds but the first, which begins with ESC.
_COLOUR: Final = re.compile(r"\[[0-9;]{0,12}m")

_LEVELS: Final = "TRACE|DEBUG|DEBG|INFO|WARN|WARNING|ERROR|ERRO|CRIT|CRITICAL|FATAL|BLAT|TRAC"
# What stands behind a level where the stamp before it is not the program's own: it has its own.
_ITS_OWN: Final = r":| \d\d-\d\d \d\d:"


@dataclass(frozen=True, slots=True)
class Enveloped(Shared):
    """A line without its envelopes; `record` is the whole JSON record where it was one,
    `node` the rank of the node that `srun --label` puts before a line.
    """

    text: str
    stamp: Stamp | None = None
    stream: str | None = None
    process: str | None = None
    pid: str | None = None
    level: str | None = None
    kinds: tuple[str, ...] = ()
    record: str | None = None
    node: str | None = None


def uncoloured(text: str) -> str:
    """Return a text without escape sequences."""
    return ANSI.sub("", text) if "\x1b" in text or _COLOUR.search(text) else text


_TIME: Final = r"\d{4}-\d\d-\d\d[T _]\d\d:\d\d:\d\d(?:[.,]\d+)?"
_ZONE: Final = r"(?:Z|[+-]\d\d:?\d\d)?"
_CLOCK: Final = r"\d{1,2}:\d\d:\d\d(?:[.,]\d{1,9})?"
_ZONE_WORD: Final = r"(?:UTC|GMT|[CEW]E?S?T|BST|MSK|[IJKH]S?T|HKT|SGT|[AECMP][SD]T|AE[SD]T|NZ[SD]T)"
_DAY: Final = r" [ \d]\d \d\d:\d\d:\d\d(?:\.\d+)?"
# The journal writes the month in the language of its reader.
_MONTH: Final = (
    rf"[A-Z][a-z]{{2}}|(?i:{'|'.join(sorted(MONTHS, key=len, reverse=True))})\.?| ?1?\d[月월]"
)
_SYSLOG: Final = rf"(?:(?:{_MONTH}){_DAY})"

# name, pattern. Groups: time, stream, process, pid, level, text. Tried from the top, each at most once.
_ENVELOPES: Final = (
    ("cri", rf"(?P<time>{_TIME}{_ZONE}) (?:stdout|stderr) [FP](?::\w+)* ?(?P<text>.*)"),
    ("kubectl", r"\[pod/(?P<stream>[\w.-]+/[\w.-]+)\] ?(?P<text>.*)"),
    (
        "procfile",
        r"(?P<time>\d\d:\d\d:\d\d) (?P<stream>system|[\w-]+\.\d+) +\| ?(?P<text>.*)",
    ),
    (
        "procfile-nf",
        r"(?P<time>\d{1,2}:\d\d:\d\d [AP]M) (?P<stream>[\w-]+\.\d+) +(?:\| {0,2}|(?=Exited ))(?P<text>.*)",
    ),
    ("tai64n", r"@(?P<time>4[0-9a-f]{23}) (?P<text>.*)"),
    (
        "pm2-daemon",
        r"(?:(?P<time>\d{4}-\d\d-\d\d-\d\d:\d\d:\d\d) )?(?P<stream>PM2) +\| ?(?P<text>.*)",
    ),
    (
        "pm2",
        r"(?:(?P<time>\d{4}-\d\d-\d\d[T-]\d\d:\d\d:\d\d)(?:[^ ]*:)? )?\d{1,3}\|(?P<stream>[\w.-]+) +\| ?(?P<text>.*)",
    ),
    (
        "compose",
        rf"(?!(?:{_LEVELS})\b)(?P<stream>[A-Za-z0-9][\w.-]*[\w]) +\| ?(?P<text>.*)",
    ),
    (
        "buildkite",
        r" *\| (?=\[\d{4}-)(?P<text>.*)",
    ),
    (
        "journal-iso",
        r"(?P<time>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?[+-]\d\d:?\d\d) "
        r"(?P<host>[\w.-]+) (?P<process>[^\s\[\]:]+)(?:\[(?P<pid>\d+)\])?: ?(?P<text>.*)",
    ),
    (
        "journal-full",
        rf"[A-Z][a-z]{{2}} (?P<time>{_TIME}) [A-Z]{{2,5}} "
        r"(?P<host>[\w.-]+) (?P<process>[^\s\[\]:]+)(?:\[(?P<pid>\d+)\])?: ?(?P<text>.*)",
    ),
    (
        "syslog",
        rf"(?P<time>{_SYSLOG}) (?P<host>[\w.-]+) (?P<process>[^\s\[\]:]+)(?:\[(?P<pid>\d+)\])?: ?(?P<text>.*)",
    ),
    (
        "journal-unix",
        r"(?P<time>1\d{9}\.\d{6}) (?P<host>[\w.-]+) (?P<process>[^\s\[\]:]+)(?:\[(?P<pid>\d+)\])?: ?(?P<text>.*)",
    ),
    (
        "supervisord",
        r"(?P<time>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}) (?P<level>CRIT|ERRO|WARN|INFO|DEBG|TRAC|BLAT) (?P<text>\S.*)",
    ),
    ("svlogd", r"(?P<time>\d{4}-\d\d-\d\d[_T]\d\d:\d\d:\d\d\.\d{5}):? (?P<text>.*)"),
    (
        "stamp-nano",
        rf"(?P<time>\d{{4}}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{{7,9}}{_ZONE})[ \t]?(?P<text>.*)",
    ),
    ("stamp-epoch", r"\[(?P<time>1[4-9]\d{8}(?:\.\d{1,9})?)\] (?P<text>.*)"),
    ("stamp-clock", r"\[(?P<time>\d\d:\d\d:\d\d(?:[.,]\d{1,6})?)\] ?(?P<text>.*)"),
    (
        "stamp-bracket",
        r"\[(?P<time>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d{4}))\] ?(?P<text>.*)",
    ),
    (
        "stamp-iso",
        rf"(?P<time>\d{{4}}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d))[ \t](?! *(?:{_LEVELS})\b(?!{_ITS_OWN}))(?P<text>.*)",
    ),
    ("s6-log", r"(?P<time>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{9})  (?P<text>.*)"),
    (
        "stamp-viewer",
        rf"(?P<time>[A-Z][a-z]{{2}} \d{{1,2}}, \d{{4}} @ {_CLOCK}|\d{{1,2}}/\d{{1,2}}/\d{{4}}, {_CLOCK}(?: [AP]M)?"
        rf"|\d{{4}}-\d\d-\d\d {_CLOCK}(?= {_ZONE_WORD}[ \t]))(?: {_ZONE_WORD})?(?: {{4}}|[ \t])"
        rf"(?!- |\[?(?:{_LEVELS})\b(?!{_ITS_OWN}))(?P<text>.*)",
    ),
    (
        "stamp-plain",
        rf"(?P<time>\d{{4}}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?)[ \t](?!- | *\[?(?:{_LEVELS})\b(?!{_ITS_OWN}))(?P<text>.*)",
    ),
    (
        "stamp-ts",
        rf"(?P<time>[A-Z][a-z]{{2}}{_DAY}) (?! *(?:{_LEVELS})\b(?!{_ITS_OWN}))(?P<text>.*)",
    ),
    (
        "csv",
        rf'"?(?P<time>{_TIME}{_ZONE}|\d{{13}})"?,(?:[^,"]{{0,80}},){{0,3}}"(?P<text>.*)"\s*',
    ),
    ("csv-bare", r"(?P<time>\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?Z|\d{13}),(?P<text>.*)"),
    (
        "djl",
        r"\[?(?P<level>INFO|WARN|ERROR|DEBUG) ?\]? +PyProcess (?:- )?W-\d+-[\w.-]{1,80}-std(?:out|err): ?(?P<text>.*)",
    ),
    ("torch-rank", r"\[(?P<process>(?:rank|default)\d+)\]: ?(?P<text>.*)"),
    ("srun", r"(?P<rank>\d{1,4}): (?=[\[(A-Z])(?P<text>.*)"),
    (
        "ray",
        r"\((?P<process>[A-Za-z_][\w:.<>-]*(?: [\w.-]+)?) pid=(?P<pid>\d+), ip=[\w.:]+\) ?(?P<text>.*)",
    ),
)
# How a line may begin that has the envelope: a digit (0), a capital (A), a small letter (a), a letter
# that is not of ASCII (я), or the sign.
_OPENINGS: Final = {
    "cri": "0", "kubectl": "[", "procfile": "0", "procfile-nf": "0", "tai64n": "@", "pm2-daemon": "0A", "pm2": "0",
    "compose": "0Aa", "buildkite": " ", "journal-iso": "0", "journal-full": "A", "syslog": "0Aaя ",
    "journal-unix": "0", "supervisord": "0", "svlogd": "0", "stamp-nano": "0", "stamp-bracket": "[", "stamp-epoch": "[", "stamp-clock": "[",
    "stamp-iso": "0", "s6-log": "0", "stamp-viewer": "0A", "stamp-plain": "0", "stamp-ts": "A", "csv": '0"', "csv-bare": "0", "djl": "A[", "torch-rank": "[", "srun": "0", "ray": "(",
}  # fmt: skip
# stern puts pod and container before the line with a space only; it needs names that look like a pod's.
_STERN: Final = re.compile(
    r"(?P<stream>[a-z0-9][a-z0-9.-]*-(?:[a-z0-9]{5,10}-[a-z0-9]{5}|[a-z0-9]{5}|\d{1,3})) (?P<container>(?!exited |has |was |is )[a-z0-9][a-z0-9-]*) (?P<text>.*)",
    re.DOTALL,
)
_NUMBERED: Final = re.compile(r"[-_]\d+\Z")
_QUICK: Final = re.compile(r'[\[({@A-Za-z0-9 "\u00c0-\u024f\u0400-\u04ff]')
_JSON_TIMES: Final = (
    "time",
    "timestamp",
    "ts",
    "asctime",
    "@timestamp",
    "__REALTIME_TIMESTAMP",
    "date",
)
_JSON_TEXTS: Final = ("log", "message", "MESSAGE", "msg", "textPayload", "event", "line", "body")
_JSON_LEVELS: Final = ("level", "levelname", "severity", "lvl")


# No envelope begins with two plain words, the first of more than three letters, but for some months.
_WORDS: Final = r"[A-Za-z]{4,200} (?:[A-Za-z]|\d(?!\d \d\d:\d\d:))"
BARE: Final = re.compile(_WORDS.encode())
_BARE_TEXT: Final = re.compile(_WORDS, re.ASCII)


def peel(text: str, services: frozenset[str] = frozenset()) -> Enveloped:
    """Take all envelopes off one line (ANSI already stripped); `services` are known compose names."""
    line = Enveloped(text)
    if _BARE_TEXT.match(text):
        return whole(line)
    for _ in range(5):
        inner = _peel_once(line, services)
        if inner is None:
            # A part of a line may end anywhere.
            return line if "cri" in line.kinds else whole(line)
        line = inner
    return line


def whole(line: Enveloped) -> Enveloped:
    """Return a whole line without the blanks at its end.

    A terminal pads what is copied from it; no program's words end in blanks but by accident.
    """
    text = line.text
    return replace(line, text=text.rstrip(" \t")) if text[-1:] in (" ", "\t") else line


def _peel_once(line: Enveloped, services: frozenset[str]) -> Enveloped | None:
    text = line.text
    first = text[:1]
    if first == "{":
        return _json(line)
    envelopes = _BY_FIRST.get(first)
    if envelopes is None:
        if not _QUICK.match(text):
            return None
        envelopes = _BY_FIRST[first] = _that_open_with(_opening(first))
    for name, pattern in envelopes:
        if name in line.kinds or (name == "syslog" and NO_HOST in services):
            continue
        match = pattern.match(text)
        if match and (
            name != "compose" or match["stream"] in services or _NUMBERED.search(match["stream"])
        ):
            groups = match.groupdict()
            if groups.get("host") and f"host:{groups['host']}" in services:
                groups["stream"] = groups["host"]
            return _inner(line, name, groups)
    if services and "stern" not in line.kinds:
        match = _STERN.match(text)
        if match and f"{match['stream']} {match['container']}" in services:
            groups = match.groupdict()
            if f"several:{groups['stream']}" in services:
                groups["stream"] = f"{groups['stream']}/{groups['container']}"
            return _inner(line, "stern", groups)
    return None


def _opening(first: str) -> str:
    if "0" <= first <= "9":
        return "0"
    if "a" <= first <= "z":
        return "a"
    if first.isalpha() and not first.isascii():
        return "я"
    return "A" if "A" <= first <= "Z" else first


_BY_FIRST: Final[dict[str, tuple[tuple[str, re.Pattern[str]], ...]]] = {}


@cache
def _that_open_with(opening: str) -> tuple[tuple[str, re.Pattern[str]], ...]:
    return tuple(
        (name, re.compile(pattern, re.DOTALL))
        for name, pattern in _ENVELOPES
        if opening in _OPENINGS[name]
    )


def _inner(line: Enveloped, name: str, groups: dict[str, str | None]) -> Enveloped:
    stamp = line.stamp
    if stamp is None and groups.get("time"):
        time = str(groups["time"])
        stamp = _json_time(int(time)) if time.isdigit() else parse(time)
    return replace(
        line,
        text=(groups["text"] or "").replace('""', '"' if name == "csv" else '""'),
        stamp=stamp,
        stream=line.stream or groups.get("stream"),
        process=groups.get("process") or line.process,
        pid=groups.get("pid") or line.pid,
        level=groups.get("level") or line.level,
        node=groups.get("rank") or line.node,
        kinds=(*line.kinds, name),
    )


def _json(line: Enveloped) -> Enveloped | None:
    if "json" in line.kinds or line.text.rstrip(" \t")[-1:] != "}":
        return None
    try:
        record = json.loads(line.text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(record, dict):
        return None
    fields = record.get("fields")
    inner = _text_of(record) or (_text_of(fields) if isinstance(fields, dict) else None)
    if inner is None:
        return None
    stamp = line.stamp
    for key in _JSON_TIMES:
        if stamp is None and key in record:
            stamp = _json_time(record[key])
    level = next((str(record[k]).upper() for k in _JSON_LEVELS if k in record), line.level)
    name = record.get("processName")
    return replace(
        line,
        text=uncoloured(inner).rstrip("\r\n"),
        stamp=stamp,
        process=str(name) if isinstance(name, str) else line.process,
        level=level,
        kinds=(*line.kinds, "json"),
        record=line.text,
    )


def _text_of(record: dict[str, Any]) -> str | None:
    for key in _JSON_TEXTS:
        value = record.get(key)
        if isinstance(value, str):
            extra = record.get("error") or record.get("exc_info")
            return f"{value} {extra}" if isinstance(extra, str) and extra else value
        if isinstance(value, list) and all(isinstance(b, int) and 0 <= b < 256 for b in value):
            return bytes(value).decode("utf-8", "replace")
    return None


def _json_time(value: object) -> Stamp | None:
    if isinstance(value, int | float) and not isinstance(value, bool):
        scale = 1.0
        while value / scale > 4e9:
            scale *= 1000.0
        return parse(f"{value / scale:.6f}")
    if isinstance(value, str) and value.isdigit() and len(value) >= 16:
        return parse(f"{int(value) / 1e6:.6f}")
    return parse(value) if isinstance(value, str) else None


_STAMPED: Final = Late(rf"{_SYSLOG} ")
_HOSTS: Final = Late(rf"(?:{_SYSLOG}|{_TIME}{_ZONE}) (?P<host>[\w.-]+) [^\s\[\]:]+(?:\[\d+\])?: ")


def is_stamped(text: str) -> bool:
    """True when a line begins with the stamp that a syslog has, with or without a host behind it."""
    return _STAMPED.match(text) is not None


def host_of(text: str) -> str | None:
    """Return the host that a syslog or journal line names, or None."""
    match = _HOSTS.match(text)
    return match["host"] if match else None
