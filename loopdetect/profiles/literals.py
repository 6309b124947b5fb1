"""The literal texts that a regular expression cannot match without.

A rule is found in a log by a search for fixed strings; the pattern is tried only on lines that
hold one. So each rule needs a string that every match contains. It is read from the parsed
pattern: runs of literal characters where nothing is optional, and of a choice one of each branch.
"""

from __future__ import annotations

import re
from re import _constants as codes  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any, Final

MAX_CHOICE: Final = 24
MIN_TEXT: Final = 3

Choice = frozenset[str]


def required_literal(pattern: str) -> str | None:
    """Return the longest string that every match of `pattern` holds, or None."""
    alone = [next(iter(choice)) for choice in _choices(_parsed(pattern)) if len(choice) == 1]
    return max(alone, key=len, default=None)


def required_texts(pattern: str) -> tuple[str, ...]:
    """Return strings of which every match of `pattern` holds one; none where that can't be told."""
    return tuple(sorted(_best(_choices(_parsed(pattern))) or ()))


def _parsed(pattern: str) -> Any:
    try:
        tree = parser.parse(pattern)
    except (re.error, OverflowError):
        return ()
    return () if tree.state.flags & re.IGNORECASE else tree


def _best(choices: list[Choice]) -> Choice | None:
    """Return the choice whose shortest text is longest."""
    fit = [c for c in choices if len(c) <= MAX_CHOICE and min(map(len, c)) >= MIN_TEXT]
    return max(fit, key=lambda c: (min(map(len, c)), -len(c)), default=None)


def _choices(tree: Any) -> list[Choice]:
    """Return choices of texts: every match holds a text of each."""
    found: list[Choice] = []
    current: list[str] = []

    def close() -> None:
        if current:
            found.append(frozenset({"".join(current)}))
            current.clear()

    for code, value in tree:
        if code is codes.LITERAL:
            current.append(chr(value))
            continue
        close()
        if code is codes.SUBPATTERN and not value[1] & re.IGNORECASE:
            found.extend(_choices(value[3]))
        elif code in (codes.MAX_REPEAT, codes.MIN_REPEAT) and value[0] >= 1:
            found.extend(_choices(value[2]))
        elif code is codes.BRANCH:
            branches = [_best(_choices(branch)) for branch in value[1]]
            if all(branches):
                found.append(frozenset(text for branch in branches if branch for text in branch))
    close()
    return found
