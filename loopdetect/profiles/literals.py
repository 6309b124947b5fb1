"""The literal text that a regular expression cannot match without.

A rule is found in a log by a search for fixed strings; the pattern is tried only on lines that
hold one. So each rule needs a string that every match contains. It is read from the parsed
pattern: runs of literal characters at the top level, where nothing is optional.
"""

from __future__ import annotations

import re
from re import _constants as codes  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any


def required_literal(pattern: str) -> str | None:
    """Return the longest string that every match of `pattern` holds, or None."""
    try:
        tree = parser.parse(pattern)
        if tree.state.flags & re.IGNORECASE:
            return None
    except (re.error, OverflowError):
        return None
    runs = _runs(tree)
    return max(runs, key=len) if runs else None


def _runs(tree: Any) -> list[str]:
    runs: list[str] = []
    current: list[str] = []

    def close() -> None:
        if current:
            runs.append("".join(current))
            current.clear()

    for code, value in tree:
        if code is codes.LITERAL:
            current.append(chr(value))
            continue
        close()
        if code is codes.SUBPATTERN and not value[1] & re.IGNORECASE:
            runs.extend(_runs(value[3]))
        elif code in (codes.MAX_REPEAT, codes.MIN_REPEAT) and value[0] >= 1:
            runs.extend(_runs(value[2]))
    close()
    return runs
