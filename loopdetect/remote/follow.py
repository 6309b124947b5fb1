"""One file on a host as it grows, over as many connections as it takes.

What is known of the file outlives a connection: which one it is, how far it was read, and its last
bytes. So a new connection goes on where the last one broke off, and nothing is read twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from loopdetect.errors import SourceError
from loopdetect.live.tail import MEMORY, Look, Reading, Turn
from loopdetect.remote.session import Facts, Session

CHUNK: Final = 1 << 18
# Of a file whose name is gone the size is not known: it is read byte by byte.
REST: Final = 1 << 10
_NOT_A_LOG: Final = {
    "folder": ("this is a folder", "give the log file"),
    "special": ("this is not a file", "give the log file"),
    "denied": ("no permission to read it", "check its mode, or log in as another user"),
}


class RemoteFile:
    """Follows a name on the host, whatever file stands there."""

    def __init__(self, title: str, *, skip_present: bool = False) -> None:
        self.title = title
        self._reading = Reading(title)
        self._identity = ""
        self._seen: Facts | None = None
        self._gone = False
        self._skip = skip_present
        # The connection in which the file is open and stands where the reading ends.
        self._open_in: Session | None = None

    def looks(self, session: Session) -> Iterator[Look]:
        """Yield all that there is just now; raises LinkLost and SourceError."""
        facts = session.stat()
        if facts.kind != "file":
            yield from self._no_file(session, facts)
            return
        self._gone = False
        if facts.identity != self._identity:
            turn = Turn.REPLACED if self._identity else Turn.APPEARED
            yield from self._rest(session)
            if self._open(session, facts) is None:
                return
            yield Look(turn=turn, modified=facts.modified)
        elif self._open_in is not session and facts.size >= self._reading.offset:
            if self._open(session, facts, self._reading.offset) is None:
                return
        elif facts == self._seen or self._same(facts):
            yield Look(modified=facts.modified)
            return
        yield from self._grown(session, facts)

    def _same(self, facts: Facts) -> bool:
        seen = self._seen
        return seen is not None and (facts.identity, facts.size, facts.stamp) == (
            seen.identity,
            seen.size,
            seen.stamp,
        )

    def _no_file(self, session: Session, facts: Facts) -> Iterator[Look]:
        if not self._identity:
            if facts.kind in _NOT_A_LOG:
                what, hint = _NOT_A_LOG[facts.kind]
                raise SourceError(f"{self.title}: {what}", hint)
            self._skip = False
        yield from self._rest(session)
        vanished = bool(self._identity) and not self._gone
        self._gone = self._gone or vanished
        yield Look(turn=Turn.VANISHED if vanished else None, exists=False)

    def _rest(self, session: Session) -> Iterator[Look]:
        """Yield what was still written to a file that lost its name."""
        while self._open_in is session:
            block = session.read(self._reading.offset, 0, 0, 1, REST)
            if block.data:
                yield Look(self._reading.take(block.data), exists=False)
            if not block.whole:
                self._open_in = None
            if len(block.data) < REST:
                return

    def _open(self, session: Session, facts: Facts, offset: int = 0) -> Facts | None:
        """Open what stands at the name; None when it is another file by now."""
        self._open_in = self._seen = None
        start = max(0, facts.size - MEMORY) if self._skip else offset
        opened = session.open(start)
        if opened.identity != facts.identity:
            return None
        self._open_in, self._identity = session, facts.identity
        if self._skip:
            block = session.read(start, 0, 0, max(1, facts.size - start))
            self._reading.skip_to(start + len(block.data), block.data)
            self._skip = False
        elif not offset:
            self._reading.rewind()
        return opened

    def _grown(self, session: Session, facts: Facts) -> Iterator[Look]:
        reading = self._reading
        while True:
            anew = facts.size < reading.offset
            block = None
            if not anew:
                size = max(1, min(CHUNK, facts.size - reading.offset))
                first, last = reading.first, reading.last
                block = session.read(reading.offset, len(first), len(last), size)
                renamed = block.facts.identity != self._identity
                anew = block.known != first + last and not renamed
            if anew or block is None:
                opened = self._open(session, facts)
                if opened is None:
                    return
                facts = opened
                yield Look(turn=Turn.TRUNCATED, modified=facts.modified)
                continue
            if block.data:
                yield Look(reading.take(block.data), modified=block.facts.modified)
            if not block.whole:
                self._open_in = None
            facts = block.facts
            if facts.size == reading.offset and block.whole and not renamed:
                self._seen = facts
                return
            truncated = facts.size < reading.offset
            if renamed or not (block.whole and (block.data or truncated)):
                return
