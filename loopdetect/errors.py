"""Problems that a user can do something about."""

from __future__ import annotations


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
