"""Where in a text something stands that must not be shown."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from fnmatch import translate
from typing import Final

from loopdetect.redact.rules import RULES, Rule, Sort

MAX_LEARNED: Final = 500
_BEGIN: Final = re.compile(r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----")
_END: Final = re.compile(r"-----END [A-Z0-9 ]*PRIVATE KEY-----")
_BODY: Final = re.compile(r"[A-Za-z0-9+/=]{16,}")


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of a text that is to be replaced."""

    start: int
    end: int
    sort: Sort
    text: str


class Search:
    """Finds secrets block by block; a block ends where a line does.

    `keep` are globs of texts that are no secret, `words` those that mean something in a log and
    are never taken for a name where they stand alone.
    """

    def __init__(self, keep: Iterable[str] = (), words: Collection[str] = ()) -> None:
        self._keep = [re.compile(translate(glob)) for glob in keep]
        self._words = words
        self._names: dict[str, Sort] = {}
        self._everywhere: re.Pattern[str] | None = None
        self._in_key = False

    def learn(self, block: str) -> None:
        """Remember the host and user names of a block, to find them everywhere."""
        lower = block.lower()
        for rule in RULES:
            if rule.learn and any(gate in lower for gate in rule.gates):
                for span in self._of_rule(rule, block):
                    self._add(span)

    def spans(self, block: str) -> list[Span]:
        """Return what is to be replaced in a block, in order and without overlap."""
        lower = block.lower()
        found = _Claims()
        found.add(self._keys(block))
        for rule in RULES:
            if any(gate in lower for gate in rule.gates):
                found.add(self._of_rule(rule, block))
        if self._names:
            found.add(self._known(block))
        return found.spans

    def _add(self, span: Span) -> None:
        name = span.text
        if len(name) < 4 or name.lower() in self._words or len(self._names) >= MAX_LEARNED:
            return
        if re.search(r"[A-Za-z]", name) and name not in self._names:
            self._names[name] = span.sort
            self._everywhere = None

    def _known(self, block: str) -> Iterator[Span]:
        if self._everywhere is None:
            longest = sorted(self._names, key=len, reverse=True)
            choice = "|".join(map(re.escape, longest))
            self._everywhere = re.compile(rf"(?<![\w.-])(?:{choice})(?![\w-])")
        for found in self._everywhere.finditer(block):
            yield Span(found.start(), found.end(), self._names[found[0]], found[0])

    def _of_rule(self, rule: Rule, block: str) -> Iterator[Span]:
        for found in rule.pattern.finditer(block):
            text = found["secret"]
            if rule.wanted(found) and not any(glob.match(text) for glob in self._keep):
                yield Span(*found.span("secret"), rule.sort, text)

    def _keys(self, block: str) -> Iterator[Span]:
        """Yield the lines of private keys; a key may go on in the next block."""
        place = 0
        while self._in_key or (begin := _BEGIN.search(block, place)):
            if not self._in_key:
                assert begin is not None
                place, self._in_key = begin.end(), True
            end = _END.search(block, place)
            limit = end.start() if end else len(block)
            for body in _BODY.finditer(block, place, limit):
                yield Span(body.start(), body.end(), Sort.KEY, body[0])
            if end is None:
                return
            place, self._in_key = end.end(), False


class _Claims:
    """Spans in order of their place; a stretch that is taken stays with its first claimant."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self._starts: list[int] = []

    def add(self, spans: Iterable[Span]) -> None:
        for span in spans:
            at = bisect_left(self._starts, span.start)
            before = at == 0 or self.spans[at - 1].end <= span.start
            after = at == len(self.spans) or span.end <= self.spans[at].start
            if before and after and span.end > span.start:
                self.spans.insert(at, span)
                self._starts.insert(at, span.start)
