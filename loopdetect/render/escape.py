"""Makes hostile log text safe to print: what a terminal would obey is shown instead."""

from __future__ import annotations

import re
from functools import cache
from typing import Final

# C0, DEL and C1 controls; marks that reorder or hide text; line separators; lone surrogates; tags.
_HOSTILE: Final = (
    "\x00-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f"
)
_MARKDOWN: Final = re.compile(r"([\\`*_{}\[\]<>#|~!&$])")
# A backslash does not keep a forge from calling people whose names stand in a log.
_MENTION: Final = re.compile(r"@(?=\w)")


# Milliseconds each: compiled when the first text is shown.
@cache
def _hostile() -> re.Pattern[str]:
    return re.compile(f"[{_HOSTILE}]")


@cache
def _hostile_in_json() -> re.Pattern[str]:
    return re.compile(f"[{_HOSTILE}]".replace("\x00-\x1f", ""))


def _show(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _show_json(found: re.Match[str]) -> str:
    units = found[0].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[i]:02x}{units[i + 1]:02x}" for i in range(0, len(units), 2))


def visible(text: str) -> str:
    r"""Return text with tabs as spaces and hostile characters as \xNN or \uNNNN."""
    return _hostile().sub(_show, text.replace("\t", "    "))


def json_safe(document: str) -> str:
    r"""Return a JSON document in which hostile characters inside strings are \uNNNN."""
    return _hostile_in_json().sub(_show_json, document)


def markdown(text: str) -> str:
    """Return text that Markdown shows as it stands, on one line."""
    return _MENTION.sub("@<!-- -->", _MARKDOWN.sub(r"\\\1", visible(text)))


def code_span(text: str) -> str:
    """Return text as a Markdown code span, whatever backticks it holds."""
    shown = visible(text)
    fence = "`" * (max((len(run) for run in re.findall("`+", shown)), default=0) + 1)
    pad = " " if shown.startswith("`") or shown.endswith("`") or not shown else ""
    return f"{fence}{pad}{shown}{pad}{fence}"
