"""Values as TOML, for the few files that loopdetect writes."""

from __future__ import annotations

import re
from typing import Final

_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")
_ESCAPED: Final = re.compile(r'[\x00-\x1f\x7f"\\\ud800-\udfff]')


def quoted(text: str) -> str:
    """Return the text as a TOML string on one line."""
    return f'"{_ESCAPED.sub(_escape, text)}"'


def key(name: str) -> str:
    """Return the name as a TOML key."""
    return name if _BARE.fullmatch(name) else quoted(name)


def value(item: object) -> str:
    """Return a text, number, flag or list as TOML."""
    if isinstance(item, bool):
        return "true" if item else "false"
    if isinstance(item, list | tuple):
        return f"[{', '.join(map(value, item))}]"
    return str(item) if isinstance(item, int | float) else quoted(str(item))


def _escape(found: re.Match[str]) -> str:
    char = found[0]
    if char in '"\\':
        return "\\" + char
    # TOML knows no lone surrogates: a byte that is no text is shown as the replacement character.
    return "\\uFFFD" if char >= "\ud800" else f"\\u{ord(char):04X}"
