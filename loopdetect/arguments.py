"""What a server was started with, as it printed it: Python, Rust and Go dumps, and settings.

How this works: a dump is known by what stands before its bracket. It is read by brackets and quotes
alone, because it is no valid Python, JSON or Rust: objects are printed as they please. Nested
values become dotted names, so that two dumps are compared value by value.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from loopdetect.core.late import Late

MAX_VALUES: Final = 3000
VALUE_KEPT: Final = 300
MAX_DEPTH: Final = 4
HIDDEN: Final = "[hidden]"

# What to look for in the bytes of a log.
OPENERS: Final = (
    b"non-default args: {",
    b"args: Namespace(",
    b"server_args=",
    b"Args {",
    b"with config: ",
    b"backend_config=",
    b"llama_context: ",
    b"llama_new_context_with_model: ",
    b'msg="server config" env=',
)
# Origin of the values, and how its dump begins; the group `body` is read on.
_STARTS: Final = (
    ("arguments that are not the default", Late(r"non-default args: (?P<body>\{.*)", re.S)),
    ("arguments", Late(r"\bargs: (?P<body>Namespace\(.*)", re.S)),
    ("arguments", Late(r"\bserver_args=(?P<body>(?:[A-Za-z_]\w*\(|\{).*)", re.S)),
    ("arguments", Late(r"(?<!\w)(?P<body>Args \{.*)", re.S)),
    ("engine", Late(r"\bwith config: (?P<body>(?=\w+=).*)", re.S)),
    ("engine", Late(r"\bbackend_config=(?P<body>[A-Za-z_]\w*\(.*)", re.S)),
    (
        "context",
        Late(r"\bllama_(?:context|new_context_with_model): +(?P<body>[a-z]\w* += .*)", re.S),
    ),
    ("environment", Late(r'\bmsg="server config" env="?(?P<body>map\[.*)', re.S)),
)
ONLY_CHANGED: Final = _STARTS[0][0]

_OPEN: Final = "([{"
_CLOSE: Final = ")]}"
_BRACKETS: Final = Late(r"""["'()\[\]{}]""")
_ADDRESS: Final = Late(r"\b0x[0-9a-fA-F]+")
_HEAD: Final = Late(r"[A-Za-z_][\w.]* ?[({]|\{")
_NAME: Final = Late(
    r"""["']?(?P<name>[A-Za-z_][\w.\-]*)["']?\s*(?:=|:(?!:))\s*(?P<value>.*)""", re.S
)
_GO: Final = Late(r"([A-Za-z]\w*):(\[[^\]]*\]|[^\s\]]*)")
_SECRET: Final = Late(
    r"(?i)(?:^|[_.-])(?:api_?keys?|hf_token|auth_?token|access_?token|admin_?key|secret\w*|"
    r"pass(?:word|wd|phrase)|credentials?|token)$"
)
# Differ from start to start without anybody's will.
_CHANCE: Final = Late(r"(?:^|[_.])(?:random_seed|seed|pid|nccl_port|instance_id|start_time)$")


@dataclass(frozen=True, slots=True)
class Dump:
    """One printed set of arguments, as text."""

    line: int
    stream: str | None
    origin: str
    text: str


@dataclass(frozen=True, slots=True)
class Change:
    """An argument that differs; None where a side did not print it."""

    name: str
    a: str | None
    b: str | None
    origin: str
    chance: bool


def starts(text: str) -> tuple[str, str] | None:
    """Return the origin and the body of a dump that begins in this line."""
    for origin, pattern in _STARTS:
        match = pattern.search(text)
        if match:
            return origin, match["body"]
    return None


class Brackets:
    """Follows the brackets of a dump from line to line."""

    __slots__ = ("_depth", "_quote", "seen")

    def __init__(self) -> None:
        self._depth = 0
        self._quote = ""
        self.seen = False

    def feed(self, text: str) -> bool:
        """Read on; True while the first bracket is not closed."""
        for match in _BRACKETS.finditer(text):
            sign = match[0]
            if self._quote:
                if sign == self._quote and not _escaped(text, match.start()):
                    self._quote = ""
            elif sign in "\"'":
                self._quote = sign if _opens_quote(text, match.start()) else ""
            else:
                self.seen = True
                self._depth += 1 if sign in _OPEN else -1
                if self._depth <= 0:
                    return False
        return self._depth > 0


def _escaped(text: str, place: int) -> bool:
    before = place - 1
    while before >= 0 and text[before] == "\\":
        before -= 1
    return (place - before) % 2 == 0


def _opens_quote(text: str, place: int) -> bool:
    """An apostrophe inside a word opens nothing."""
    return place == 0 or not text[place - 1].isalnum()


def read(dumps: Iterable[Dump]) -> dict[str, dict[str, str]]:
    """Return origin -> name -> value; where an origin came twice, its first values stand."""
    found: dict[str, dict[str, str]] = {}
    for dump in dumps:
        values = found.setdefault(dump.origin, {})
        for name, value in _values(dump):
            if len(values) >= MAX_VALUES:
                break
            values.setdefault(name, value)
    return found


def listed(dumps: Iterable[Dump]) -> tuple[tuple[str, str], ...]:
    """Return every name once with its value as it may be shown, in the order of printing."""
    names: dict[str, str] = {}
    for values in read(dumps).values():
        for name, value in values.items():
            names.setdefault(name, _shown(name, value) or "")
    return tuple(names.items())


def _values(dump: Dump) -> Iterator[tuple[str, str]]:
    if dump.origin == "environment":
        for name, value in (found.groups() for found in _GO.finditer(dump.text[len("map[") :])):
            yield name, _short(value)
    elif dump.origin == "context":
        name, _, value = dump.text.partition("=")
        yield name.strip(), _short(value)
    else:
        yield from _flat("", dump.text, 0)


def _flat(prefix: str, text: str, depth: int) -> Iterator[tuple[str, str]]:
    for part in _parts(_inside(text)):
        match = _NAME.match(part.strip())
        if match is None:
            continue
        name, value = prefix + match["name"], match["value"].strip()
        if depth < MAX_DEPTH and _HEAD.match(value) and _named(_inside(value)):
            yield from _flat(f"{name}.", value, depth + 1)
        else:
            yield name, _short(value)


def _inside(text: str) -> str:
    """Return what stands between the outer brackets, the text itself where there are none."""
    head = _HEAD.match(text.strip())
    if head is None:
        return text
    text = text.strip()
    start = head.end()
    depth, quote = 1, ""
    for match in _BRACKETS.finditer(text, start):
        sign = match[0]
        if quote:
            quote = "" if sign == quote and not _escaped(text, match.start()) else quote
        elif sign in "\"'":
            quote = sign if _opens_quote(text, match.start()) else ""
        else:
            depth += 1 if sign in _OPEN else -1
            if depth == 0:
                return text[start : match.start()]
    return text[start:]


def _named(text: str) -> bool:
    first = next(iter(_parts(text)), "").strip()
    return bool(_NAME.match(first))


def _parts(text: str) -> Iterator[str]:
    """Yield what the commas outside all brackets and quotes divide."""
    depth, quote, begin = 0, "", 0
    for match in re.finditer(r"""["'()\[\]{},]""", text):
        sign = match[0]
        if quote:
            quote = "" if sign == quote and not _escaped(text, match.start()) else quote
        elif sign in "\"'":
            quote = sign if _opens_quote(text, match.start()) else ""
        elif sign in _OPEN:
            depth += 1
        elif sign in _CLOSE:
            depth -= 1
        elif depth <= 0:
            yield text[begin : match.start()]
            begin = match.end()
    if text[begin:].strip():
        yield text[begin:]


def _short(value: str) -> str:
    value = _ADDRESS.sub("0x…", " ".join(value.split()))
    if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'":
        value = value[1:-1]
    return value


def changes(a: dict[str, dict[str, str]], b: dict[str, dict[str, str]]) -> tuple[Change, ...]:
    """Return what differs between two sets that both sides printed; secrets are not shown."""
    found: list[Change] = []
    said: set[str] = set()
    for origin in a:
        if origin not in b:
            continue
        names = dict.fromkeys([*a[origin], *b[origin]])
        for name in names:
            left, right = a[origin].get(name), b[origin].get(name)
            if left == right or name in said:
                continue
            said.add(name)
            found.append(
                Change(
                    name,
                    _shown(name, left),
                    _shown(name, right),
                    origin,
                    bool(_CHANCE.search(name)),
                )
            )
    return tuple(found)


def _shown(name: str, value: str | None) -> str | None:
    if value is None:
        return None
    if _SECRET.search(name) and value not in ("", "None", "null"):
        return HIDDEN
    return value if len(value) <= VALUE_KEPT else value[:VALUE_KEPT] + "…"
