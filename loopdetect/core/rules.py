"""Rules put to work: one line in, the rule that speaks for it out."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from loopdetect.core.first_char import first_chars
from loopdetect.core.prefilter import make_finder
from loopdetect.model import Kind, Shared
from loopdetect.profiles import Library, Profile, Rule

# The order in which kinds are asked: what excuses a line first, what it proves last.
ORDER: Final = (
    Kind.HARMLESS,
    Kind.REQUEST_ERROR,
    Kind.FAILURE,
    Kind.CASCADE,
    Kind.STOP,
    Kind.GAVE_UP,
    Kind.EXIT,
    Kind.RESTART,
    Kind.READY,
    Kind.START,
    Kind.PHASE,
    Kind.PROGRESS,
    Kind.HEARTBEAT,
    Kind.ALIVE,
)
PATTERN_TIMEOUT: Final = 0.25
PATTERN_TEXT: Final = 8192
# Stands for all characters of which `first_chars` says nothing.
OTHER: Final = "other"


@dataclass(frozen=True, slots=True)
class Match:
    """A rule that speaks for a line, with the fields that its pattern names."""

    rule: Rule
    fields: dict[str, str]


class CompiledRule(Shared):
    """A rule whose pattern is compiled when it is first needed."""

    __slots__ = ("_compiled", "holds", "literals", "rule")

    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        self.literals = rule.literals
        self.holds = rule.holds if rule.holds != rule.literals else ()
        self._compiled: object | None = None

    def match(self, text: str, level: str | None) -> Match | None:
        """Return a Match if the rule speaks for `text`."""
        rule = self.rule
        if not any(literal in text for literal in self.literals):
            return None
        if rule.level and (level or "") not in rule.level:
            return None
        if rule.pattern is None:
            return Match(rule, {})
        if self.holds and not any(held in text for held in self.holds):
            return None
        if self._compiled is None:
            import regex

            self._compiled = regex.compile(rule.pattern)
        try:
            found = self._compiled.search(text[:PATTERN_TEXT], timeout=PATTERN_TIMEOUT)  # type: ignore[attr-defined]
        except TimeoutError:
            return None
        if not found:
            return None
        return Match(rule, {k: v for k, v in found.groupdict().items() if v is not None})


class RuleSet(Shared):
    """Rules in the order in which they are asked: profile by profile, kind by kind."""

    __slots__ = ("_by_literal", "_rules", "_search")

    def __init__(self, profiles: Sequence[Profile]) -> None:
        self._rules: list[CompiledRule] = []
        for profile in profiles:
            by_kind: dict[Kind, list[CompiledRule]] = {kind: [] for kind in ORDER}
            for rule in profile.rules:
                if rule.kind in by_kind:
                    by_kind[rule.kind].append(CompiledRule(rule))
            self._rules.extend(rule for kind in ORDER for rule in by_kind[kind])
        places: dict[str, list[int]] = {}
        for place, compiled in enumerate(self._rules):
            for literal in compiled.literals:
                places.setdefault(literal, []).append(place)
        self._by_literal = list(places.values())
        self._search = make_finder(list(places))

    def match(self, text: str, level: str | None) -> Match | None:
        """Return the first rule that speaks for `text`."""
        found = self._search(text)
        if not found:
            return None
        for place in sorted({place for literal in found for place in self._by_literal[literal]}):
            match = self._rules[place].match(text, level)
            if match:
                return match
        return None


@dataclass(frozen=True, slots=True)
class Message:
    """A line without the program's own prefix, and what the prefix said."""

    text: str
    level: str | None
    process: str | None
    pid: str | None
    time: str | None
    uptime: str | None


class Prefixes(Shared):
    """The logger prefixes of a profile; compiled when a line begins as one of them can."""

    __slots__ = ("_by_first", "_compiled", "_patterns")

    def __init__(self, profiles: Sequence[Profile]) -> None:
        self._patterns = [prefix.pattern for profile in profiles for prefix in profile.prefixes]
        self._compiled: dict[str, re.Pattern[str]] = {}
        self._by_first: dict[str, tuple[re.Pattern[str], ...]] = {}

    def strip(self, text: str) -> Message:
        """Take up to three prefixes off; the first time, process and level that show win."""
        seen: dict[str, str] = {}
        one = two = None
        for _ in range(3):
            first = text[:1] if text[:1].isascii() else OTHER
            patterns = self._by_first.get(first)
            if patterns is None:
                patterns = self._by_first[first] = self._that_begin_with(first)
            for pattern in patterns:
                if pattern is one or pattern is two:
                    continue
                match = pattern.match(text)
                if match is not None and match.end():
                    for key, value in match.groupdict().items():
                        if value and key not in seen:
                            seen[key] = value
                    text = text[match.end() :]
                    one, two = pattern, one
                    break
            else:
                break
        if not seen:
            return Message(text, None, None, None, None, None)
        process = seen.get("process")
        rank = seen.get("rank")
        return Message(
            text,
            seen.get("level", "").upper() or None,
            f"{process or ''}{' ' if process and rank else ''}{rank or ''}" or None,
            seen.get("pid"),
            seen.get("time"),
            seen.get("uptime"),
        )

    def any_begins_with(self, first: str) -> bool:
        """True if a prefix can begin with an ASCII character."""
        if first not in self._by_first:
            self._by_first[first] = self._that_begin_with(first)
        return bool(self._by_first[first])

    def _that_begin_with(self, first: str) -> tuple[re.Pattern[str], ...]:
        known = ((pattern, first_chars(pattern)) for pattern in self._patterns if first)
        return tuple(
            self._compiled.setdefault(pattern, re.compile(pattern))
            for pattern, chars in known
            if chars is None or first in chars or first is OTHER
        )


class Chain(Shared):
    """The rule sets in force for one server: its own, what it extends, supervisors, generic."""

    __slots__ = ("_rules", "names", "prefixes")

    def __init__(self, library: Library, names: Sequence[str]) -> None:
        profiles = [p for name in names for p in library.lineage(name)]
        unique = list(dict.fromkeys(profiles))
        self.names = tuple(p.name for p in unique)
        self._rules = RuleSet(unique)
        self.prefixes = Prefixes(unique)

    def match(self, text: str, level: str | None) -> Match | None:
        """Ask the server's own profile first; only its silence lets the next one speak."""
        return self._rules.match(text, level)
