"""Problems that a user can do something about."""

from __future__ import annotations

from collections.abc import Iterable


class LoopdetectError(Exception):
    """A problem with a hint: what happened, where, and what to do."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint


class UsageProblem(LoopdetectError):
    """The command was called with words that do not fit."""


class SourceError(LoopdetectError):
    """A log could not be read."""


class ProfileError(LoopdetectError):
    """A profile is wrong; the message names file and key path."""


def suggestion(word: str, known: Iterable[str]) -> str:
    """Return a hint with the nearest known word, or all of them."""
    from difflib import get_close_matches

    words = sorted(known)
    near = get_close_matches(word, words, n=1)
    return f"did you mean {near[0]}?" if near else f"known: {', '.join(words)}"
