"""What the profiles say of single lines, for commands that found them without a detector."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from loopdetect.model import Kind

if TYPE_CHECKING:
    from loopdetect.core.rules import Match
    from loopdetect.profiles import Library

_NOTHING_WRONG: Final = frozenset({Kind.HARMLESS, Kind.REQUEST_ERROR})


class KnownLines:
    """The rules in force for one server, by its profile's name; None where it is not known."""

    def __init__(self, library: Library, server: str | None) -> None:
        from loopdetect.core.rules import Chain
        from loopdetect.profiles import ALWAYS

        names = [name for name in (server, *ALWAYS) if name in library.profiles]
        self._chain = Chain(library, [name for name in names if name is not None])
        self._exceptions = library.exceptions

    def harmless(self, text: str) -> bool:
        """True when a rule says that the line tells of nothing wrong with the server."""
        match = self._match(text)
        return match is not None and match.rule.kind in _NOTHING_WRONG

    def known(self, text: str) -> bool:
        """True when some rule speaks for the line, or its exception has a reason of its own."""
        if self._match(text) is not None:
            return True
        return any(f"{name}:" in text for name in self._exceptions)

    def _match(self, text: str) -> Match | None:
        message = self._chain.prefixes.strip(text)
        return self._chain.match(message.text, message.level)
