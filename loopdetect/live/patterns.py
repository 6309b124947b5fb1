"""The user's own lines: `--ready-on-line` and `--fail-on-line`, for servers nobody knows."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

LONGEST: Final = 4096


@dataclass(frozen=True, slots=True)
class Hit:
    """A line that matched, numbered from the first line that was read."""

    line: int
    text: str


class LinePatterns:
    """Searches the lines that are fed, in any chunking, for the two patterns."""

    def __init__(self, ready: re.Pattern[str] | None, fail: re.Pattern[str] | None) -> None:
        self._ready, self._fail = ready, fail
        self._rest = b""
        self._line = 1
        self.ready: Hit | None = None
        self.failed: Hit | None = None

    def feed(self, data: bytes) -> None:
        """Add bytes."""
        if self._ready is None and self._fail is None:
            return
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._look(line)
            self._line += 1
        # A bar that is drawn over and over never ends its line; it is not kept for ever.
        self._rest = self._rest[-LONGEST:]

    def forget_failure(self) -> None:
        """What failed so far is of the past."""
        self.failed = None

    def new_file(self) -> None:
        """The log begins anew: an unfinished line stays unfinished, and ready no longer holds."""
        if self._rest:
            self.feed(b"\n")
        self.ready = None

    def end(self) -> None:
        """The input is over: the last line may lack its end."""
        if self._rest:
            self.feed(b"\n")

    def _look(self, raw: bytes) -> None:
        text = raw[:LONGEST].decode("utf-8", "replace").rstrip("\r")
        if self._fail is not None and self.failed is None and self._fail.search(text):
            self.failed = Hit(self._line, text)
        if self._ready is not None and self._ready.search(text):
            self.ready = Hit(self._line, text)
