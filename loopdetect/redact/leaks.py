"""What in a log must not be shown, told without showing it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from loopdetect.redact.redaction import blocks
from loopdetect.redact.rules import Sort
from loopdetect.redact.search import Search


@dataclass(frozen=True, slots=True)
class Leak:
    """One text of some sort: the line where it is first, and how often it is there."""

    sort: Sort
    line: int
    times: int


def leaks(chunks: Iterable[bytes], search: Search) -> list[Leak]:
    """Return each different text that a redaction would replace, in order of its first line."""
    first: dict[tuple[Sort, str], int] = {}
    times: dict[tuple[Sort, str], int] = {}
    line = 1
    for block in blocks(chunks):
        search.learn(block)
        counted = 0
        for span in search.spans(block):
            line += block.count("\n", counted, span.start)
            counted = span.start
            key = (span.sort, span.text)
            first.setdefault(key, line)
            times[key] = times.get(key, 0) + 1
        line += block.count("\n", counted)
    return [Leak(key[0], first[key], times[key]) for key in first]
