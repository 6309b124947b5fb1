"""Holding a profile against its own samples."""

from __future__ import annotations

from pathlib import Path

from loopdetect.core.envelope import peel
from loopdetect.core.rules import CompiledRule, Prefixes, RuleSet
from loopdetect.errors import ProfileError
from loopdetect.model import Kind
from loopdetect.profiles import Profile, load_library
from loopdetect.profiles.reading import read_profile


def check(path: Path) -> list[str]:
    """Return what is wrong with a profile, one sentence each; an empty list means that it is sound."""
    try:
        library = load_library()
        profile = read_profile(path, frozenset(library.reasons))
    except ProfileError as problem:
        return [f"{problem}" + (f" ({problem.hint})" if problem.hint else "")]
    return check_samples(profile)


def check_samples(profile: Profile) -> list[str]:
    """Return the rules that miss a sample, take a near miss, or speak for another rule's sample."""
    problems: list[str] = []
    prefixes = Prefixes([profile])
    rules = RuleSet([profile])
    for rule in profile.rules:
        compiled = CompiledRule(rule)
        for sample in rule.samples:
            peeled = peel(sample)
            text = peeled.text
            whole = (text, peeled.record) if peeled.record else (text,)
            if rule.kind is Kind.IDENTIFY:
                if not any(compiled.match(t, None) for t in whole):
                    problems.append(f"{rule.id}: does not match its sample {sample!r}")
                continue
            message = prefixes.strip(text)
            if peeled.record is not None and compiled.match(
                peeled.record, message.level or peeled.level
            ):
                continue
            if compiled.match(message.text, message.level or peeled.level) is None:
                problems.append(f"{rule.id}: does not match its sample {sample!r}")
                continue
            first = rules.match(message.text, message.level)
            if first is not None and first.rule.id != rule.id:
                problems.append(f"{rule.id}: its sample {sample!r} is taken by {first.rule.id}")
        for sample in rule.not_samples:
            message = prefixes.strip(peel(sample).text)
            if compiled.match(message.text, message.level) is not None:
                problems.append(f"{rule.id}: matches its near miss {sample!r}")
    return problems
