"""Python tracebacks and Rust panics, collected line by line.

How this works: a header opens a block for one writer (a process, a rank, or the bare stream).
Frames are indented, so the first line that is not is the exception; indented lines after it are
its continuation; "During handling …" chains to the next block. Lines of other writers pass by.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Final

from loopdetect.core.where import further, phase_of_frame
from loopdetect.model import Phase

NO_FRAMES: Final[Mapping[str, Phase]] = {}
HEADER: Final = "Traceback (most recent call last)"
PANIC: Final = " panicked at "
CHAINS: Final = (
    "The above exception was the direct cause of the following exception",
    "During handling of the above exception, another exception occurred",
)
MAX_LINES: Final = 4000
MAX_FOREIGN: Final = 200
MAX_FOREIGN_SINCE: Final = 16
MAX_CONTINUATION: Final = 60
FRAME: Final = re.compile(r' +File "[^"]+", line \d+, in ')
_EXCEPTION: Final = re.compile(
    r"(?!(?:Message|Arguments): )(?:(?:[A-Za-z_]\w*\.|<\w+>\.)*(?P<type>_?[A-Z]\w*[a-z]\w*)(?:\([\w.]*\))?"
    r"|(?:[A-Za-z_]\w*\.)+(?P<low>\w*(?:[Ee]rror|timeout))(?=:|$))(?:: ?(?P<text>.*)|$)",
    re.DOTALL,
)
_GROUP_MARGIN: Final = re.compile(r"(?: *[|+](?:-[-+ \d]*)? ?)+")
# A list of what is wrong names each place in a line of its own, at the margin.
LISTS: Final = "validation error"
_PLACE: Final = re.compile(r"[A-Za-z_][\w-]*(?:\.[\w\[\]()',-]+)*\s*")
_BOX: Final = "╭│╰╮╯┌└├"
_MAIN: Final = re.compile(
    r' +File "(?:<frozen runpy>", line \d+, in _run|(?!<string>", line 1,)[^"]*", line \d+, in <module>)'
)
_OPENS: Final = re.compile(
    re.escape(HEADER) + r""":?(?:["'}\], ]*$| *\\[nr]| *#012|\s+File "| ?[-─│╮|])"""
)
_WITHIN: Final = re.compile(r"\\r\\n|\\n|\n|#012")
_PANIC: Final = re.compile(
    r"thread '[^']*'(?: \(\d+\))? panicked at (?P<where>[^'\"\n]*:\d+:\d+):$"
)


@dataclass(slots=True)
class Raised:
    """One exception of a chain."""

    line: int
    text: str
    rest: list[tuple[int, str]] = field(default_factory=list)
    phase: Phase | None = None  # where the start-up stood, as far as the frames tell

    @property
    def wordless(self) -> bool:
        """True for an exception of which only the name was printed."""
        return not self.rest and self.text.rstrip(": ").endswith(self.type)

    @property
    def type(self) -> str:
        """The exception's class name without its module."""
        match = _EXCEPTION.match(self.text)
        return match["type"] or match["low"] or "" if match else ""


class _At(Enum):
    FRAMES = auto()
    RAISED = auto()
    BETWEEN = auto()
    PANIC = auto()


class Block:
    """A traceback being read; `chain` holds its exceptions in the order printed.

    `main` tells whether it is an uncaught exception of a program's main module, its last word.
    `bare` tells whether its lines come without the logger's prefix; None until the second line.
    """

    __slots__ = (
        "_at",
        "_chained",
        "_first_frame",
        "_foreign",
        "_foreign_since",
        "_known",
        "_lines",
        "_phase",
        "bare",
        "chain",
        "excused",
        "first_line",
        "last_line",
        "main",
        "margin",
        "panic",
        "source",
        "time",
    )

    def __init__(
        self,
        line: int,
        source: str,
        *,
        bare: bool | None,
        excused: bool,
        panic: bool = False,
        margin: int = 0,
        frames: Mapping[str, Phase] = NO_FRAMES,
    ) -> None:
        self._known = frames  # functions that tell how far the start-up was
        self.margin = margin  # how far the whole of it is indented
        self.first_line = self.last_line = line
        self.source = source
        self.bare = bare
        self.excused = excused
        self.chain: list[Raised] = []
        self.main = False
        self.time: float | None = None
        self.panic = panic
        self._at = _At.PANIC if panic else _At.FRAMES
        self._chained = False
        self._first_frame = True
        self._phase: Phase | None = None
        self._lines = 0
        self._foreign = 0
        self._foreign_since = 0

    @property
    def raised(self) -> bool:
        """True once the exception itself was read: what follows may be another story."""
        return self._at is not _At.FRAMES

    @property
    def of_request(self) -> bool:
        """True when its frames lead through what handles one request, and no further than that request."""
        return self._phase is Phase.SERVING and not self.main

    def passes(self) -> bool:
        """Count a line of another writer; False when the block has waited long enough."""
        self._foreign += 1
        if not self.raised:
            return self._foreign <= MAX_FOREIGN
        # Interleaved writers are told apart by their prefix; bare lines only until the exception is out.
        self._foreign_since += 1
        return self.bare is False and self._foreign_since <= MAX_FOREIGN_SINCE

    def take(self, line: int, text: str, time: float | None = None) -> bool:
        """Offer a line of the same writer; False when the block ended before it."""
        self._lines += 1
        if self._lines > MAX_LINES:
            return False
        self._foreign_since = 0
        if self.margin and not text[: self.margin].strip():
            text = text[self.margin :]
        taken = _TAKE[self._at](self, line, text)
        if taken and text.strip():
            self.last_line = line
            self.time = time if time is not None else self.time
        return taken

    def take_whole(self, line: int, text: str, time: float | None = None) -> bool:
        """Read a traceback that one record holds whole, its line ends escaped or not; True if it does."""
        _, _, rest = text.partition(HEADER)
        within = [] if self.panic else _WITHIN.split(rest)[1:]
        for part in within:
            if not self.take(line, part, time):
                break
        return bool(within)

    def _frames(self, line: int, text: str) -> bool:
        if HEADER in text:
            # One that an error's text quotes begins no other traceback.
            self._first_frame = self._first_frame or text.lstrip().startswith(HEADER)
            return True
        if not text.strip():
            return True
        if self._first_frame:
            self._first_frame = False
            self.main = bool(_MAIN.match(text))
        if text[0] in _BOX or text.lstrip()[:1] in _BOX:
            return True
        if text[0] in " \t|+":
            inner = _GROUP_MARGIN.sub("", text, count=1) if text.lstrip()[:1] in "|+" else text
            if inner[:1] in (" ", "\t", ""):
                self._phase = further(self._phase, phase_of_frame(inner, self._known))
                return True
            text = inner
        if _EXCEPTION.match(text):
            self.chain.append(Raised(line, text, phase=self._phase))
            self._at = _At.RAISED
            return True
        return self.passes()

    def _raised(self, line: int, text: str) -> bool:
        if not text.strip():
            self._at = _At.BETWEEN
            return True
        if any(chain in text for chain in CHAINS):
            self._at = _At.BETWEEN
            self._chained = True
            return True
        last = self.chain[-1]
        continues = text[0] in " \t" or (LISTS in last.text and _PLACE.fullmatch(text) is not None)
        if continues and len(last.rest) < MAX_CONTINUATION:
            last.rest.append((line, text.strip()))
            return True
        return False

    def _between(self, line: int, text: str) -> bool:
        if any(chain in text for chain in CHAINS):
            self._chained = True
            return True
        if not text.strip():
            return True
        if self._chained and text.lstrip().startswith(HEADER):
            self._chained = False
            self._first_frame = True
            self._at = _At.FRAMES
            return True
        return False

    def _panic(self, line: int, text: str) -> bool:
        if text.strip():
            self.chain.append(Raised(line, text.strip()))
            self._at = _At.RAISED
        return True


_TAKE: Final = {
    _At.FRAMES: Block._frames,
    _At.RAISED: Block._raised,
    _At.BETWEEN: Block._between,
    _At.PANIC: Block._panic,
}


def opens_traceback(text: str) -> bool:
    """True when the header of a traceback ends the line, as it does where no user quotes one."""
    return HEADER in text and bool(_OPENS.search(text))


def opens_panic(text: str) -> bool:
    """True for the new form of a Rust panic, whose message is on the next line."""
    return bool(_PANIC.search(text))
