"""The tracebacks of one stream that are not over yet, each of one writer, and what they come to."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from loopdetect.core.block import HEADER, Block
from loopdetect.core.event import Event
from loopdetect.core.judging import Judgement, judge
from loopdetect.core.line import (
    ANSWERED_BADLY,
    TEXT_SHOWN,
    Line,
    excuse,
    prefixed,
    source,
    writer,
)
from loopdetect.core.rules import Chain, Message
from loopdetect.core.run import Machine
from loopdetect.model import Kind
from loopdetect.profiles import Library

# Lines that say that the traceback after them means nothing.
EXCUSES: Final = frozenset({Kind.HARMLESS, Kind.REQUEST_ERROR})


class Tracebacks:
    """Collects tracebacks line by line; what one tells is folded into the runs when it ends.

    `now` is always when the stream's last line was written, on the stream's clock.
    """

    __slots__ = ("_excused", "_library", "_machine", "open")

    def __init__(self, machine: Machine, library: Library) -> None:
        self.open: dict[str, Block] = {}
        self._excused: dict[str, tuple[int, str | None]] = {}
        self._machine = machine
        self._library = library

    def excuse(self, kind: Kind, line: Line, message: Message) -> None:
        """Note a line that excuses the traceback right after it."""
        self._excused[writer(line, message)] = (line.number, excuse(kind, line, message))

    def excuses(self, line: Line, message: Message) -> bool:
        """True when the line right before a traceback excuses it."""
        heading, prefix = self._excused.get(writer(line, message), (-9, None))
        mine = excuse(Kind.HARMLESS, line, message)
        return line.number - heading <= 1 and prefix in (None, mine)

    def begin(
        self, line: Line, message: Message, chain: Chain, now: float | None, *, excused: bool
    ) -> None:
        """Begin a traceback with the line that holds its header."""
        key = writer(line, message)
        before, header, _ = message.text.partition(HEADER)
        if key in self.open:
            self.close(key, chain, now)
        block = self.open[key] = self._block(
            line,
            message,
            excused=excused,
            panic=not header,
            margin=len(before) if before.isspace() else 0,
        )
        if block.take_whole(line.number, message.text, now):
            self.close(key, chain, now)

    def begin_inside(self, line: Line, message: Message) -> None:
        """Begin with a frame: the log begins inside a traceback."""
        self.open[writer(line, message)] = self._block(line, message)

    def _block(
        self,
        line: Line,
        message: Message,
        *,
        excused: bool = False,
        panic: bool = False,
        margin: int = 0,
    ) -> Block:
        # A message that ends in the header may be followed by lines with its prefix or without.
        return Block(
            line.number,
            source(line),
            bare=None if prefixed(message) else True,
            excused=excused,
            panic=panic,
            margin=margin,
            frames=self._library.index.frames,
        )

    def offer(self, line: Line, message: Message, chain: Chain, now: float | None) -> bool:
        """Give a line to the traceback that it belongs to; True when that is all it says."""
        key, origin = writer(line, message), source(line)
        has_prefix = prefixed(message)
        for other, block in reversed(tuple(self.open.items())):
            if has_prefix:
                mine = other == key and block.bare is not True
                ends = block.source == origin and block.bare is True and block.raised
            else:
                mine = block.source == origin and block.bare is not False
                ends = False
            if ends:
                self.close(other, chain, now)
                continue
            if not mine:
                if not block.passes():
                    self.close(other, chain, now)
                continue
            block.bare = not has_prefix
            if HEADER in message.text and (block.raised or has_prefix):
                heading, _, _ = message.text.partition(HEADER)
                if heading.strip():
                    self.close(other, chain, now)  # a new story of the same writer
                    return False
            if block.take(line.number, message.text, now):
                return True
            self.close(other, chain, now, message.text)
            return False
        return False

    def close_all(self, chain: Chain, now: float | None, *, raised: bool = False) -> None:
        """End all tracebacks, or those alone whose exception was named."""
        for key in [key for key, block in self.open.items() if block.raised or not raised]:
            self.close(key, chain, now)

    def close(self, key: str, chain: Chain, now: float | None, followed_by: str = "") -> None:
        """End a traceback and fold what it tells."""
        block = self.open.pop(key)
        if not block.chain:
            return
        ends = block.main and "ank" not in key and "Worker" not in key
        of_request = block.of_request or ANSWERED_BADLY.search(followed_by) is not None
        for found in judge(block, chain, self._library.exceptions):
            # A failed request is excused, but not what it tells of a dead engine.
            if not block.excused or (
                found.kind is Kind.CASCADE and found.match and found.match.rule.fatal
            ):
                self._emit(found, now, ends=ends, of_request=of_request)

    def _emit(self, found: Judgement, now: float | None, *, ends: bool, of_request: bool) -> None:
        """Fold what a traceback tells; the last word of a main module ends its process."""
        failure = found.failure
        if failure is not None:
            failure = replace(
                failure, fatal=failure.fatal or ends, of_request=of_request, until=found.until
            )
        self._machine.fold(
            Event(
                kind=found.kind,
                ends=ends and not found.second,
                line=found.line,
                text=found.text[:TEXT_SHOWN],
                time=found.time if found.time is not None else now,
                rule=found.match.rule if found.match else None,
                failure=failure,
            )
        )
