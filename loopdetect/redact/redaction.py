"""A copy of a log without its secrets: as many lines, every other byte as it was."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from loopdetect.redact.placeholders import Placeholders
from loopdetect.redact.rules import Sort
from loopdetect.redact.search import Search

BLOCK: Final = 1 << 18
# A line that never ends is cut here, so that memory stays bounded.
LONGEST: Final = 1 << 24

Chunks = Callable[[], Iterable[bytes]]


class Redaction:
    """Redacts the log that `chunks` yields anew at each call: once to learn names, once to copy."""

    def __init__(self, chunks: Chunks, search: Search) -> None:
        self._chunks = chunks
        self._search = search
        self._shapes: set[str] = set()
        self.placeholders = Placeholders(self._shapes.__contains__)

    def copy(self) -> Iterator[bytes]:
        """Yield the redacted log."""
        for block in blocks(self._chunks()):
            self._search.learn(block)
            self._shapes.update(_lookalikes(block))
        for block in blocks(self._chunks()):
            yield self._redacted(block).encode("utf-8", "surrogateescape")

    @property
    def counts(self) -> dict[Sort, int]:
        """How many different texts of each sort were replaced so far."""
        return self.placeholders.counts

    def _redacted(self, block: str) -> str:
        parts: list[str] = []
        place = 0
        for span in self._search.spans(block):
            parts += block[place : span.start], self.placeholders.of(span.sort, span.text)
            place = span.end
        return "".join(parts) + block[place:] if parts else block


def blocks(chunks: Iterable[bytes]) -> Iterator[str]:
    """Yield the bytes as text in blocks of whole lines; bytes that are no text survive."""
    held = bytearray()
    for chunk in chunks:
        held += chunk
        if len(held) < BLOCK:
            continue
        end = held.rfind(b"\n") + 1
        if not end and len(held) > LONGEST:
            end = max(held.rfind(b" "), held.rfind(b"\r")) + 1 or len(held)
        if end:
            yield held[:end].decode("utf-8", "surrogateescape")
            del held[:end]
    if held:
        yield held.decode("utf-8", "surrogateescape")


def _lookalikes(block: str) -> set[str]:
    """Return what in the log could be taken for a placeholder."""
    shape = r"redacted-[a-z]+-\d+|user-\d+@example\.com|(?:host|user)-\d+|2001:db8::[0-9a-f]+"
    addresses = r"192\.0\.2\.\d+|198\.51\.100\.\d+|203\.0\.113\.\d+|198\.1[89]\.\d+\.\d+"
    return set(re.findall(rf"{shape}|{addresses}", block))
