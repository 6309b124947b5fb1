"""Finding the few interesting lines of a block without looking at its lines.

Not the literals of the rules are searched for but *anchors*: short pieces of them that are rare in
what servers print all day, chosen so that few anchors cover many literals. A line that holds an
anchor is then asked for the literals themselves, so a badly chosen anchor costs time, never a hit.

The SIMD search takes at most 64 texts before it falls back to a slow method, and only in its
leftmost mode; larger sets are split over several automata that run over the same cached block.
Without the compiled engine `bytes.find` does the same, slower.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from loopdetect.model import Shared

PER_AUTOMATON: Final = 64
SIFTED: Final = 14
WINDOW: Final = 4
LONGEST_WINDOW: Final = 8
FALSE_ALARMS: Final = 2000
NOISE_KEPT: Final = 64
NOISE_WIDTH: Final = 4000
REBUILDS: Final = 1
PLANS: Final = Path(__file__).with_name("anchors.json")

Groups = Sequence[Sequence[bytes]]


class Prefilter(Shared):
    """Finds the segments of a block that may hold one of a set of literals."""

    def __init__(self, literals: Callable[[], Iterable[str]], plan: str = "") -> None:
        self._told = literals
        self._literals: list[bytes] | None = None
        self._plan = plan
        self._found: _Teddy | _Find | None = None
        self._holds: Callable[[bytes], object] | None = None
        self._false = 0
        self._rebuilds = 0
        self._noise: list[bytes] = []

    @property
    def literals(self) -> list[bytes]:
        """The literals in all their forms, asked for when something is first searched."""
        if self._literals is None:
            forms = {form.encode() for text in self._told() for form in forms_of(text)}
            self._literals = sorted(forms)
        return self._literals

    @property
    def anchors(self) -> Groups:
        """What is searched for at present, automaton by automaton."""
        return self._ready().groups

    def offsets(self, block: bytes, start: int, stop: int) -> list[int]:
        """Return the sorted offsets in `block`, at least one for each line that holds a literal."""
        return self._ready().offsets(block, start, stop)

    def holds(self, segment: bytes) -> bool:
        """True if a literal is in `segment`; where it is not, the anchor that was learns from it."""
        if self._holds is None:
            self._holds = _any_of(self.literals)
        if self._holds(segment):
            return True
        self.noise(segment, 0, len(segment))
        return False

    @property
    def learns(self) -> bool:
        """True while other anchors would be chosen if too many were found for nothing."""
        return self._rebuilds < REBUILDS

    def noise(self, buffer: bytes, start: int, stop: int) -> None:
        """Note a segment that was found for nothing; where they abound, other anchors are chosen."""
        if not self.learns:
            return
        self._false += 1
        if self._false % (FALSE_ALARMS // NOISE_KEPT) == 0:
            self._noise.append(buffer[start : min(stop, start + NOISE_WIDTH)])
        if self._false >= FALSE_ALARMS:
            self._rebuilds += 1
            noise, self._noise = b"\n".join(self._noise), []
            self._found = searcher(cover(self.literals, self._planned, noise))

    def _ready(self) -> _Teddy | _Find:
        if self._found is None:
            self._found = searcher(cover(self.literals, self._planned))
        return self._found

    @property
    def _planned(self) -> Groups:
        return stored_plans().get(self._plan, ())


class _Teddy:
    def __init__(self, groups: Groups) -> None:
        import ahocorasick_rs

        leftmost = ahocorasick_rs.MatchKind.LeftmostFirst
        self.groups = groups
        self._automata = [
            ahocorasick_rs.BytesAhoCorasick(list(group), matchkind=leftmost) for group in groups
        ]

    def offsets(self, block: bytes, start: int, stop: int) -> list[int]:
        view = memoryview(block)[start:stop]
        found: list[int] = []
        for automaton in self._automata:
            matches = automaton.find_matches_as_indexes(view)
            if matches:
                found += [match[1] + start for match in matches]
        if len(self._automata) > 1 and found:
            found.sort()
        return found


class _Find:
    def __init__(self, groups: Groups) -> None:
        self.groups = groups

    def offsets(self, block: bytes, start: int, stop: int) -> list[int]:
        found: set[int] = set()
        for group in self.groups:
            for anchor in group:
                at = block.find(anchor, start, stop)
                while at >= 0:
                    found.add(at)
                    at = block.find(anchor, at + 1, stop)
        return sorted(found)


def searcher(groups: Groups) -> _Teddy | _Find:
    """Return the fastest search for these texts that this installation has."""
    try:
        return _Teddy(groups)
    except ImportError:
        return _Find(groups)


def _any_of(literals: list[bytes]) -> Callable[[bytes], object]:
    try:
        import ahocorasick_rs
    except ImportError:
        return lambda segment: any(literal in segment for literal in literals)
    return ahocorasick_rs.BytesAhoCorasick(literals).find_matches_as_indexes


def forms_of(literal: str) -> tuple[str, ...]:
    """Return how a literal may stand in a log: as it is, or as JSON writes it."""
    escaped = json.dumps(literal)[1:-1]
    return (literal,) if escaped == literal else (literal, escaped)


# -- anchors


@lru_cache(maxsize=1)
def _stored() -> dict[str, Any]:
    try:
        stored: dict[str, Any] = json.loads(PLANS.read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return stored


@lru_cache(maxsize=1)
def stored_plans() -> dict[str, Groups]:
    """The anchors that were chosen beforehand for the shipped profiles."""
    return {
        name: [[anchor.encode("latin-1") for anchor in group] for group in groups]
        for name, groups in _stored().get("plans", {}).items()
    }


@lru_cache(maxsize=1)
def common_pieces() -> dict[bytes, int]:
    """The four-byte pieces that abound in logs, with how often they come: the higher, the worse."""
    pieces = [piece.encode("latin-1") for piece in _stored().get("common", ())]
    return {piece: len(pieces) - rank for rank, piece in enumerate(pieces)}


def cover(literals: Sequence[bytes], plan: Groups = (), noise: bytes = b"") -> Groups:
    """Return anchors, in groups of at most 64, such that each literal holds one.

    Anchors of `plan` are used where they do, unless they are in `noise`; others are made.
    """
    groups = [_quiet(group, noise) for group in plan] if noise else plan
    first = _first_of([anchor for group in groups for anchor in group])
    found = [first(literal) for literal in literals]
    used = set(found)
    # The place of an anchor in its group is part of the plan: one that is not needed stays.
    kept = [group for group in groups if not used.isdisjoint(group)]
    left = [literal for literal, anchor in zip(literals, found, strict=True) if anchor is None]
    return [*kept, *(_sifted if noise else grouped)(_made(left, noise))]


def _sifted(anchors: Sequence[bytes]) -> list[list[bytes]]:
    """Spread anchors over small automata, which stop seldom in prose, however the anchors begin.

    Those in one automaton begin with different bytes: for few beginnings the engine would look for
    single bytes.
    """
    ordered = sorted(anchors, key=lambda anchor: (anchor[1:], anchor))
    parts = [ordered[first : first + SIFTED] for first in range(0, len(ordered), SIFTED)]
    return [group for part in parts for group in grouped(part)]


def _quiet(group: Sequence[bytes], noise: bytes) -> Sequence[bytes]:
    """Replace the anchors that are in `noise` by others of their bucket, so that all keep their place."""
    quiet = [anchor for anchor in group if anchor not in noise]
    if not quiet or len(quiet) == len(group):
        return quiet
    buckets = buckets_of(len(group))
    return [
        next((a for a in group[n % buckets :: buckets] if a in quiet), quiet[0])
        if anchor not in quiet
        else anchor
        for n, anchor in enumerate(group)
    ]


def _first_of(anchors: list[bytes]) -> Callable[[bytes], bytes | None]:
    if not anchors:
        return lambda literal: None
    try:
        import ahocorasick_rs
    except ImportError:
        return lambda literal: next((anchor for anchor in anchors if anchor in literal), None)
    automaton = ahocorasick_rs.BytesAhoCorasick(anchors)

    def first(literal: bytes) -> bytes | None:
        matches = automaton.find_matches_as_indexes(literal)
        return anchors[matches[0][0]] if matches else None

    return first


def _made(literals: Sequence[bytes], noise: bytes) -> list[bytes]:
    """Choose a window of each literal, the same for many where that is no worse."""
    common = common_pieces()
    chosen: list[bytes] = []
    left = list(literals)
    holders: dict[bytes, int] = {}
    for literal in left:
        for piece in {literal[i : i + WINDOW] for i in range(max(1, len(literal) - WINDOW + 1))}:
            holders[piece] = holders.get(piece, 0) + 1
    for literal in left:
        if any(anchor in literal for anchor in chosen):
            continue
        chosen.append(
            min(
                _windows(literal, noise),
                key=lambda w: (
                    common.get(w[:WINDOW], 0) > 0,
                    common.get(w[:WINDOW], 0),
                    -holders.get(w, 0),
                    len(w),
                    w,
                ),
            )
        )
    return chosen


def _windows(literal: bytes, noise: bytes) -> list[bytes]:
    for size in range(min(WINDOW, len(literal)), min(LONGEST_WINDOW, len(literal)) + 1):
        windows = [literal[i : i + size] for i in range(len(literal) - size + 1)]
        fit = [w for w in windows if w not in noise] if noise else windows
        if fit:
            return fit
    return [literal]


def buckets_of(size: int) -> int:
    """Return how many buckets the engine has for so many texts."""
    return 8 if size <= 32 else 16


def grouped(anchors: Iterable[bytes]) -> list[list[bytes]]:
    """Spread anchors over automata so that those that begin alike share a bucket of the search.

    The engine puts the n-th text into bucket n modulo their number, and a bucket is as selective
    as the texts in it are alike.
    """
    ordered = sorted(anchors)
    count = -(-len(ordered) // PER_AUTOMATON)
    size = -(-len(ordered) // count) if count else 0
    groups = []
    for first in range(0, len(ordered), size or 1):
        part = ordered[first : first + size]
        depth = -(-len(part) // buckets_of(len(part)))
        columns = [part[i : i + depth] for i in range(0, len(part), depth)]
        groups.append([c[row] for row in range(depth) for c in columns if row < len(c)])
    return groups


# -- single lines


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
