"""Which characters a pattern's matches can begin with, read off the pattern's own beginning.

Only what is plain to see is told: literals, escaped signs, digits, and groups of such. Of any other
pattern nothing is said, and it has to be tried on every line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from typing import Final

_GROUP: Final = re.compile(r"\((?:\?:|\?P<\w+>|(?!\?))")
_OPTIONAL: Final = re.compile(r"[?*]|\{0?,|\{0\}")
_ATOM: Final = re.compile(
    r"\\(?P<sign>[^\w\s])|(?P<digit>\\d)|(?P<plain>[A-Za-z0-9 <>:;,=@#%&!'\"_/~-])"
)
_CLASS: Final = re.compile(r"\[([A-Za-z0-9]+)\]")
DIGITS: Final = frozenset("0123456789")


@cache
def first_chars(pattern: str) -> frozenset[str] | None:
    """Return the ASCII characters that a match can begin with, or None if that is not plain to see."""
    found: set[str] = set()
    for branch in _branches(pattern):
        chars = _of_branch(branch)
        if chars is None:
            return None
        found |= chars
    return frozenset(found)


def _of_branch(branch: str) -> frozenset[str] | None:
    group, several = _GROUP.match(branch), _CLASS.match(branch)
    if group is not None:
        end = _closing(branch)
        chars = first_chars(branch[group.end() : end]) if end > 0 else None
        behind = end + 1
    elif several is not None:
        chars, behind = frozenset(several[1]), several.end()
    else:
        atom = _ATOM.match(branch)
        if atom is None:
            return None
        chars = DIGITS if atom["digit"] else frozenset(atom["sign"] or atom["plain"])
        behind = atom.end()
    if chars is None or not _OPTIONAL.match(branch, behind):
        return chars
    if branch[behind] == "{":
        return None
    rest = _of_branch(branch[behind + 1 :])
    return None if rest is None else chars | rest


def _signs(pattern: str) -> Iterator[tuple[int, int]]:
    """Yield where the brackets and bars outside sets are, and how deep it is behind each."""
    depth = at = 0
    while at < len(pattern):
        char = pattern[at]
        if char == "\\":
            at += 1
        elif char == "[":
            at = _class_end(pattern, at)
        elif char in "()|":
            depth += {"(": 1, ")": -1, "|": 0}[char]
            yield at, depth
        at += 1


def _branches(pattern: str) -> list[str]:
    """Split a pattern at the bars outside all brackets."""
    bars = [at for at, depth in _signs(pattern) if pattern[at] == "|" and not depth]
    return [pattern[a + 1 : b] for a, b in pairwise([-1, *bars, len(pattern)])]


def _closing(pattern: str) -> int:
    """Return where the group that a pattern begins with is closed, or -1."""
    return next((at for at, depth in _signs(pattern) if pattern[at] == ")" and not depth), -1)


def _class_end(pattern: str, at: int) -> int:
    """Return where the set of characters that opens at `at` is closed."""
    at += 2 if pattern[at + 1 : at + 2] == "^" else 1
    at += pattern[at : at + 1] == "]"
    while at < len(pattern) and pattern[at] != "]":
        at += 2 if pattern[at] == "\\" else 1
    return at
