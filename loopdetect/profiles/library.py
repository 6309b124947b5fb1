"""All profiles and reasons in force, and what is asked of all profiles at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from loopdetect.model import Kind, Phase, Shared
from loopdetect.profiles.schema import Profile, Reason, Rule


@dataclass(frozen=True, slots=True)
class Index(Shared):
    """What a reader wants of every profile before it knows which one it needs.

    `identify` are the rules that tell servers apart, each with its profile's name; `asked` are the
    ids of rules that others ask about; `frames` are functions in tracebacks, each with its phase;
    `quotes` is what marks a line that holds the words of users, by profile.
    """

    identify: tuple[tuple[str, Rule], ...]
    asked: frozenset[str]
    frames: Mapping[str, Phase]
    quotes: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Library(Shared):
    """All profiles and reasons in force."""

    profiles: Mapping[str, Profile]
    reasons: Mapping[str, Reason]
    exceptions: Mapping[str, str]
    index: Index

    def lineage(self, name: str) -> tuple[Profile, ...]:
        """Return the profile and all that it extends, nearest first."""
        found: dict[str, Profile] = {}
        pending = [name]
        while pending:
            profile = self.profiles[pending.pop(0)]
            if profile.name not in found:
                found[profile.name] = profile
                pending.extend(profile.extends)
        return tuple(found.values())


def index_of(profiles: Mapping[str, Profile]) -> Index:
    """Return the index of some profiles."""
    rules = [(name, rule) for name, profile in profiles.items() for rule in profile.rules]
    return Index(
        tuple((name, rule) for name, rule in rules if rule.kind is Kind.IDENTIFY),
        frozenset(other for _, rule in rules for other in (*rule.needs, *rule.unless_seen)),
        {name: phase for profile in profiles.values() for name, phase in profile.frames},
        {name: found for name, profile in profiles.items() if (found := _quotes(profile))},
    )


def _quotes(profile: Profile) -> tuple[str, ...]:
    return tuple(text for rule in profile.rules if rule.quotes for text in rule.literals)
