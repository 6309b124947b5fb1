"""Which server wrote these lines: scores of identify rules, summed by profile."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final

from loopdetect.core.prefilter import make_finder
from loopdetect.core.rules import CompiledRule
from loopdetect.model import Shared
from loopdetect.profiles import Library

HOST: Final = 200  # of a front end that outlives the engines whose own lines its log holds
PROOF: Final = 100
ENOUGH: Final = 30
GUEST: Final = 60
FALLBACK: Final = "python-server"


class Unknown(IntEnum):
    """How much is still to be learnt of who writes a log."""

    NOTHING = 0
    ONLY_PROOF = 1
    EVERYTHING = 2


class IdentifyRules(Shared):
    """The identify rules of all profiles, compiled once for a library."""

    __slots__ = ("_by_literal", "_search", "literals", "proofs", "rules")

    def __init__(self, library: Library) -> None:
        self.rules = [(name, CompiledRule(rule)) for name, rule in library.index.identify]
        self.literals = tuple(text for _, rule in self.rules for text in rule.literals)
        self.proofs = tuple(
            text for _, rule in self.rules if rule.rule.weight >= PROOF for text in rule.literals
        )
        places: dict[str, list[int]] = {}
        for place, (_, rule) in enumerate(self.rules):
            for literal in rule.literals:
                places.setdefault(literal, []).append(place)
        self._by_literal = list(places.values())
        self._search = make_finder(list(places))

    def possible(self, text: str) -> list[tuple[str, CompiledRule]]:
        """Return the rules of which a literal is in `text`."""
        found = self._search(text)
        return [
            self.rules[p]
            for p in sorted({p for literal in found for p in self._by_literal[literal]})
        ]


@dataclass(slots=True)
class Recogniser:
    """What is known so far of the server behind one stream."""

    scores: dict[str, int] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    _seen: set[str] = field(default_factory=set)
    _proven: set[str] = field(default_factory=set)
    _host: bool = False

    def look(self, rules: IdentifyRules, text: str, *, only_proof: bool = False) -> None:
        """Score one line."""
        for name, compiled in rules.possible(text):
            rule = compiled.rule
            if only_proof and rule.weight < PROOF:
                continue
            known = rule.id in self._seen
            if known and (
                name in self.versions or rule.pattern is None or "(?P<version>" not in rule.pattern
            ):
                continue
            match = compiled.match(text, None)
            if match is None:
                continue
            if not known:
                self._seen.add(rule.id)
                self.scores[name] = self.scores.get(name, 0) + rule.weight
                if rule.weight >= PROOF:
                    self._proven.add(name)
                    self._host = self._host or rule.weight >= HOST
            version = match.fields.get("version")
            if version:
                self.versions.setdefault(name, version)

    def best(self) -> tuple[str, int] | None:
        """Return the profile with the highest score; a web server only if nothing else scored enough.

        Where one line proves the web server (a front end that shares another server's log format),
        another server needs a proof of its own.
        """
        ranked = sorted(self.scores.items(), key=lambda item: (-item[1], item[0]))
        special = [item for item in ranked if item[0] != FALLBACK and item[1] >= ENOUGH]
        if FALLBACK in self._proven:
            special = [item for item in special if item[0] in self._proven and not self._host]
        if special:
            return special[0]
        return next((item for item in ranked if item[1] >= ENOUGH), None)

    def guests(self, host: str) -> tuple[str, ...]:
        """Return other servers whose lines are in the same stream (an engine under a front end)."""
        ranked = sorted(self.scores.items(), key=lambda item: (-item[1], item[0]))
        return tuple(n for n, score in ranked if n not in (host, FALLBACK) and score >= GUEST)[:2]
