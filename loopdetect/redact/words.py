"""Words that mean something in a log, which no machine's name may take away."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from loopdetect.profiles import Library


def telling_words(library: Library) -> frozenset[str]:
    """Return the words of all the literals that rules look for, in lower case."""
    return frozenset(
        word.lower()
        for profile in library.profiles.values()
        for rule in profile.rules
        for literal in rule.literals
        for word in re.findall(r"[\w.-]+", literal)
    ) | frozenset(library.profiles)
