"""Digests folded into groups: the result is the same in whatever order they come."""

from __future__ import annotations

from bisect import insort
from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from loopdetect.model import State
from loopdetect.scan.digest import Failure, LogDigest, StreamDigest

# Example logs that are kept a group; counts know no such limit.
EXAMPLES: Final = 5
# Logs of one fleet do not fail in more ways; what goes beyond is only counted.
MOST_GROUPS: Final = 10_000
# Clocks whose times can be compared between logs, the better one first.
DATED: Final = ("wall", "wall-no-year")


@dataclass(frozen=True, slots=True, order=True)
class Example:
    """One log of a group; `place` is its place among all logs and streams."""

    place: tuple[int, int]
    source: str = field(compare=False)
    stream: str | None = field(compare=False)
    line: int = field(compare=False)
    file: str = field(compare=False)
    file_line: int = field(compare=False)
    failure: Failure = field(compare=False)


@dataclass(slots=True)
class Group:
    """Logs whose last failure is the same."""

    logs: int = 0
    streams: int = 0
    runs: int = 0
    crashes: int = 0
    states: Counter[State] = field(default_factory=Counter)
    seen: dict[str, tuple[float, float]] = field(default_factory=dict)
    examples: list[Example] = field(default_factory=list)

    @property
    def failure(self) -> Failure:
        """The first example's failure speaks for all."""
        return self.examples[0].failure

    @property
    def times(self) -> tuple[str, float, float] | None:
        """Clock, first and last time on it; None where no log has dated stamps."""
        return next(((clock, *self.seen[clock]) for clock in DATED if clock in self.seen), None)

    def add(self, digest: StreamDigest, example: Example) -> None:
        """Count one stream."""
        failure = example.failure
        self.streams += 1
        self.runs += digest.runs
        self.crashes += digest.crashes
        self.states[digest.state] += 1
        if failure.clock and failure.first_at is not None and failure.last_at is not None:
            first, last = self.seen.get(failure.clock, (failure.first_at, failure.last_at))
            self.seen[failure.clock] = min(first, failure.first_at), max(last, failure.last_at)
        insort(self.examples, example)
        del self.examples[EXAMPLES:]


@dataclass(slots=True)
class Tally:
    """Everything that is kept of the logs so far."""

    logs: int = 0
    unread: int = 0
    states: Counter[State] = field(default_factory=Counter)
    left_out: int = 0
    _groups: dict[tuple[str, str, str, str], Group] = field(default_factory=dict)

    def add(self, position: int, log: LogDigest) -> None:
        """Count one log; `position` is its place among all, from 0."""
        self.logs += 1
        counted: set[tuple[str, str, str, str]] = set()
        for number, digest in enumerate(log.streams):
            self.states[digest.state] += 1
            failure = digest.failure
            if failure is None:
                continue
            key = failure.key
            if key not in self._groups:
                if len(self._groups) >= MOST_GROUPS:
                    self.left_out += 1
                    continue
                self._groups[key] = Group()
            group = self._groups[key]
            file, line = log.place(failure.line)
            example = Example(
                (position, number), log.source, digest.stream, failure.line, file, line, failure
            )
            group.add(digest, example)
            group.logs += key not in counted
            counted.add(key)

    @property
    def groups(self) -> list[Group]:
        """The groups, those that hit most logs first."""
        ranked = sorted(
            self._groups.items(), key=lambda item: (-item[1].logs, -item[1].crashes, item[0])
        )
        return [group for _, group in ranked]
