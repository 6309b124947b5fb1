"""Patterns that are compiled when they are first used, for those that most logs never ask."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from loopdetect.model import Shared


class Late(Shared):
    """A pattern like those of `re`; raises `re.error` when it is first used.

    `holds` are texts of which every match holds one (in small letters if case does not count),
    `begins` the characters that one can begin with: where they tell already that nothing matches
    at the beginning of a text, the pattern is not compiled for it.
    """

    __slots__ = ("_compiled", "_folds", "begins", "flags", "holds", "pattern")

    def __init__(
        self,
        pattern: str,
        flags: re.RegexFlag = re.NOFLAG,
        *,
        holds: tuple[str, ...] = (),
        begins: str = "",
    ) -> None:
        self.pattern = pattern
        self.flags = flags
        self.holds = holds
        self._folds = bool(flags & re.IGNORECASE)
        self.begins = begins
        self._compiled: re.Pattern[str] | None = None

    def _ready(self) -> re.Pattern[str]:
        if self._compiled is None:
            self._compiled = re.compile(self.pattern, self.flags)
        return self._compiled

    def match(self, text: str) -> re.Match[str] | None:
        """Match at the beginning of a text."""
        if self.begins and text[:1] not in self.begins:
            return None
        if self.holds and not self._held(text):
            return None
        return self._ready().match(text)

    def _held(self, text: str) -> bool:
        if self._folds:
            text = text.lower()
        return any(held in text for held in self.holds)

    def search(self, text: str) -> re.Match[str] | None:
        """Return the first match in a text."""
        return self._ready().search(text)

    def finditer(self, text: str, start: int = 0) -> Iterator[re.Match[str]]:
        """Yield the matches from an offset on."""
        return self._ready().finditer(text, start)

    def findall(self, text: str) -> list[Any]:
        """Return the groups of all matches."""
        return self._ready().findall(text)

    def sub(self, by: str | Callable[[re.Match[str]], str], text: str, count: int = 0) -> str:
        """Replace the matches in a text."""
        return self._ready().sub(by, text, count)
