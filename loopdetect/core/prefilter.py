"""Finding the few interesting lines of a block without looking at its lines.

All literals of the rules in force are searched for at once by a SIMD automaton. It takes at most
64 literals before it falls back to a slow method, so larger sets are split over several automata
that run over the same cached block. Without the compiled engine `bytes.find` does the same, slower.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Final, Protocol

from loopdetect.model import Shared

PER_AUTOMATON: Final = 48


class Prefilter(Protocol):
    """Offsets of everything in a block that may be interesting."""

    def offsets(self, block: bytes) -> list[int]:
        """Return the sorted offsets of literals in `block`; at least one for each line that holds any."""
        ...


class _Teddy(Shared):
    def __init__(self, literals: list[bytes]) -> None:
        import ahocorasick_rs

        # Literals that share first bytes go to the same automaton: fewer buckets, fewer false starts.
        self._automata = [
            ahocorasick_rs.BytesAhoCorasick(literals[i : i + PER_AUTOMATON])
            for i in range(0, len(literals), PER_AUTOMATON)
        ]

    def offsets(self, block: bytes) -> list[int]:
        found: list[int] = []
        for automaton in self._automata:
            found.extend(start for _, start, _ in automaton.find_matches_as_indexes(block))
        if len(self._automata) > 1:
            found.sort()
        return found


class _Find(Shared):
    def __init__(self, literals: list[bytes]) -> None:
        self._literals = literals

    def offsets(self, block: bytes) -> list[int]:
        found: set[int] = set()
        for literal in self._literals:
            at = block.find(literal)
            while at >= 0:
                found.add(at)
                at = block.find(literal, at + 1)
        return sorted(found)


def _without_longer(literals: Iterable[str]) -> list[bytes]:
    """Drop literals that contain another one: the shorter finds their lines too."""
    encoded = sorted({text.encode() for text in literals}, key=len)
    kept: list[bytes] = []
    for literal in encoded:
        if not any(short in literal for short in kept):
            kept.append(literal)
    return sorted(kept)


def make_prefilter(literals: Iterable[str]) -> Prefilter:
    """Build the fastest prefilter that this installation has."""
    wanted = _without_longer(literals)
    try:
        return _Teddy(wanted)
    except ImportError:
        return _Find(wanted)


def make_finder(literals: list[str]) -> Callable[[str], Collection[int]]:
    """Return a function that says which literals (by place) a line holds."""
    if not literals:
        return lambda text: ()
    try:
        import ahocorasick_rs
    except ImportError:
        return lambda text: [place for place, literal in enumerate(literals) if literal in text]
    automaton = ahocorasick_rs.AhoCorasick(literals)
    return lambda text: {
        found[0] for found in automaton.find_matches_as_indexes(text, overlapping=True)
    }
