"""Lines that fit a terminal: columns, cutting, wrapping."""

from __future__ import annotations

import unicodedata
from typing import Final

ELLIPSIS: Final = "…"


def columns(text: str) -> int:
    """Return how many columns a terminal needs for the text."""
    if text.isascii():
        return len(text)
    return sum(map(_columns, text))


def _columns(char: str) -> int:
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def _fitting(text: str, width: int) -> str:
    used = 0
    for place, char in enumerate(text):
        used += _columns(char)
        if used > width:
            return text[:place]
    return text


def cut(text: str, width: int | None) -> str:
    """Return the text in `width` columns, its middle left out where it is longer."""
    if width is None or columns(text) <= width:
        return text
    if width < 2:
        return ELLIPSIS[: max(width, 0)]
    tail = _fitting(text[::-1], (width - 1) // 3)[::-1]
    head = _fitting(text, width - 1 - columns(tail))
    return f"{head}{ELLIPSIS}{tail}"


def wrap(text: str, width: int | None, indent: str = "") -> list[str]:
    """Return the text in lines of `width` columns, each after `indent`; words are not broken."""
    if width is None:
        return [indent + text]
    room = max(width - len(indent), 20)
    lines = [""]
    for word in text.split():
        joined = f"{lines[-1]} {word}" if lines[-1] else word
        if columns(joined) <= room or not lines[-1]:
            lines[-1] = joined
        else:
            lines.append(word)
    return [indent + line for line in lines]
