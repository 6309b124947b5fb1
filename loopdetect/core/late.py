"""Patterns that are compiled when they are first used, for those that most logs never ask."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from loopdetect.model import Shared


class Late(Shared):
    """A pattern like those of `re`; raises `re.error` when it is first used."""

    __slots__ = ("_compiled", "_flags", "_pattern")

    def __init__(self, pattern: str, flags: re.RegexFlag = re.NOFLAG) -> None:
        self._pattern = pattern
        self._flags = flags
        self._compiled: re.Pattern[str] | None = None

    def _ready(self) -> re.Pattern[str]:
        if self._compiled is None:
            self._compiled = re.compile(self._pattern, self._flags)
        return self._compiled

    def match(self, text: str) -> re.Match[str] | None:
        """Match at the beginning of a text."""
        return self._ready().match(text)

    def search(self, text: str) -> re.Match[str] | None:
        """Return the first match in a text."""
        return self._ready().search(text)

    def finditer(self, text: str, start: int = 0) -> Iterator[re.Match[str]]:
        """Yield the matches from an offset on."""
        return self._ready().finditer(text, start)

    def sub(self, by: str | Callable[[re.Match[str]], str], text: str, count: int = 0) -> str:
        """Replace the matches in a text."""
        return self._ready().sub(by, text, count)
