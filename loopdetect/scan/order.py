"""In which order logs are read, and how their results come back in the order of their paths.

The largest go first, so that none is left for the end when all others are done. Only so many go
first that what waits for its turn stays little; the rest are read as their paths come.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from loopdetect.scan.outcome import Outcome

FIRST_AT_LEAST: Final = 256
FIRST_A_WORKER: Final = 16


def largest_first(sizes: Sequence[int], workers: int) -> Iterator[int]:
    """Yield every index once."""
    from heapq import nlargest

    count = max(FIRST_AT_LEAST, FIRST_A_WORKER * workers)
    first = nlargest(count, range(len(sizes)), key=lambda index: (sizes[index], -index))
    yield from first
    if len(first) < len(sizes):
        done = set(first)
        yield from (index for index in range(len(sizes)) if index not in done)


def in_turn(outcomes: Iterable[tuple[int, Outcome]]) -> Iterator[tuple[int, Outcome]]:
    """Yield outcomes by index, from 0 and without a gap, each as soon as its turn has come."""
    held: dict[int, Outcome] = {}
    turn = 0
    for index, outcome in outcomes:
        held[index] = outcome
        while turn in held:
            yield turn, held.pop(turn)
            turn += 1
