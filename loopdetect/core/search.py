"""Which literals to search for: it depends on what is known of the servers and on what they do.

Nothing is searched for that could tell nothing new. Lines that only excuse others (harmless
warnings, failed requests) have no search of their own: they matter where another literal brings
their line up, or right before a traceback, which looks back. While a server serves, its phases
and bars are over: of them only those count from which a restart could be told.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Final

from loopdetect.core.block import HEADER, PANIC
from loopdetect.core.prefilter import Prefilter
from loopdetect.core.programs import TAILED
from loopdetect.core.progress import BAR_LITERALS
from loopdetect.core.recognise import IdentifyRules, Unknown
from loopdetect.core.restarts import STARTING, may_restart
from loopdetect.model import Kind, Shared
from loopdetect.profiles import ALWAYS, Library, Rule

_NEVER: Final = frozenset({Kind.IDENTIFY, Kind.HARMLESS, Kind.REQUEST_ERROR, Kind.ALIVE})
EVERY: Final = "*"
KEPT: Final = 64


@dataclass(frozen=True, slots=True)
class Aim(Shared):
    """What the search is for: the profiles in play, and what of them could tell something new."""

    profiles: frozenset[str]
    unknown: Unknown = Unknown.EVERYTHING
    alive: bool = True
    serving: bool = False

    @property
    def plan(self) -> str:
        """The name of the stored anchors that fit best."""
        own = sorted(self.profiles - frozenset(ALWAYS))
        if self.unknown is Unknown.EVERYTHING or len(own) > 4:
            return EVERY
        return f"{'+'.join(own)}/{'serving' if self.serving else 'loading'}"


class Search(Shared):
    """What is compiled once for a library: identify rules, and a search for each aim."""

    def __init__(self, library: Library) -> None:
        self.library = library
        self.identify = IdentifyRules(library)
        self._found: dict[Aim, tuple[Prefilter, Prefilter, tuple[bytes, ...]]] = {}

    def filters(self, aim: Aim) -> tuple[Prefilter, Prefilter, tuple[bytes, ...]]:
        """Return the search for an aim's literals, the one for bars, and what marks users' text."""
        found = self._found.get(aim)
        if found is None:
            if len(self._found) >= KEPT:
                self._found.clear()
            found = (
                Prefilter(partial(self.literals, aim), aim.plan),
                Prefilter(lambda: (*BAR_LITERALS, *self.literals(aim, bars=True))),
                self._quotes(aim),
            )
            self._found[aim] = found
        return found

    def literals(self, aim: Aim, *, bars: bool = False) -> frozenset[str]:
        """Return the literals of an aim; with `bars`, the labels of its progress bars."""
        found: set[str] = set()
        for name in aim.profiles | frozenset(ALWAYS):
            profile = self.library.profiles.get(name)
            for rule in profile.rules if profile else ():
                label = rule.kind is Kind.PROGRESS and not aim.serving
                if label is bars and self._tells(rule, aim):
                    found.update(rule.literals)
        if not bars:
            found.update((HEADER, PANIC, TAILED))
            if aim.unknown is Unknown.ONLY_PROOF:
                found.update(self.identify.proofs)
            elif aim.unknown is Unknown.EVERYTHING:
                found.update(self.identify.literals)
        return frozenset(found)

    def _quotes(self, aim: Aim) -> tuple[bytes, ...]:
        """Return what marks a line that holds the words of users."""
        quotes = self.library.index.quotes
        return tuple(
            text.encode() for name in sorted(aim.profiles) for text in quotes.get(name, ())
        )

    def _tells(self, rule: Rule, aim: Aim) -> bool:
        if rule.of_strangers and aim.unknown is not Unknown.EVERYTHING:
            return False
        if rule.kind in _NEVER:
            return rule.kind is Kind.ALIVE and (aim.alive or rule.recovers)
        if aim.serving and rule.kind in STARTING:
            return rule.id in self.library.index.asked or may_restart(rule.kind, rule.phase)
        return True


# One library is in use at a time; its compiled search is kept beside it, so that many logs share it.
_latest: list[Search] = []


def search_of(library: Library) -> Search:
    """Return the search of a library, made once."""
    if not _latest or _latest[0].library is not library:
        _latest[:] = [Search(library)]
    return _latest[0]
