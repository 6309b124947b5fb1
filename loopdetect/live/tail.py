"""One log as it grows: a file that may come late, shrink or be replaced, or a pipe.

How this works: `fstat` and `stat` are the truth. A file that is smaller than what was read of it,
or whose last bytes read are no longer there, was written anew: it is read from its beginning.
Another inode under the name is a new file: the old one is read to its end first. So nothing is read
twice, and a restart that truncates its log is seen even if the new text has outgrown the old.
"""

from __future__ import annotations

import contextlib
import os
import select
import stat
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Protocol

from loopdetect.errors import SourceError
from loopdetect.source import archive
from loopdetect.source.content import SAMPLE_AT_LEAST, foreign
from loopdetect.source.files import PROBLEMS, STDIN

CHUNK: Final = 1 << 20
MEMORY: Final = 64
# Two lives that end in the same words still begin with another pid or at another time.
BEGINNING: Final = 256
UNREADABLE_HINT: Final = "loopdetect wait follows plain text that grows"


class Turn(StrEnum):
    """What happened to the file between two looks."""

    APPEARED = "appeared"
    TRUNCATED = "truncated"
    REPLACED = "replaced"
    VANISHED = "vanished"


@dataclass(frozen=True, slots=True)
class Look:
    """What one look gave: bytes to read next, and what happened before them."""

    data: bytes = b""
    turn: Turn | None = None
    more: bool = False
    ended: bool = False
    exists: bool = True
    modified: float | None = None


class Tail(Protocol):
    """Something that grows."""

    name: str

    def look(self) -> Look:
        """Return the next bytes; raises SourceError."""

    def close(self) -> None:
        """Let go of it."""


class Reading:
    """How far one file was read, and its first and last bytes, by which it is known again."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.rewind()

    def rewind(self) -> None:
        """Begin at the file's beginning."""
        self.offset, self.first, self.last = 0, b"", b""
        self._head, self._fresh = b"", True

    def skip_to(self, offset: int, last: bytes) -> None:
        """Begin at `offset`, behind the bytes `last`."""
        self.offset, self.first, self.last, self._fresh = offset, b"", last, False

    def take(self, data: bytes) -> bytes:
        """Go on behind `data` and return what of it is log text; raises SourceError."""
        if self.offset == len(self.first):
            self.first += data[: BEGINNING - len(self.first)]
        self.offset += len(data)
        self.last = (self.last + data[-MEMORY:])[-MEMORY:]
        if self._fresh and data:
            # A writer that goes on behind a truncation leaves a hole of NUL bytes before its text.
            data = data.lstrip(b"\0")
            self._head += data[:SAMPLE_AT_LEAST]
            self._fresh = len(self._head) < SAMPLE_AT_LEAST
            refuse(self._name, self._head)
        return data


class FileTail:
    """Follows a path, whatever file stands there."""

    def __init__(self, name: str, *, skip_present: bool = False) -> None:
        self.name = name
        self._handle: int | None = None
        self._inode: tuple[int, int] | None = None
        self._reading = Reading(name)
        self._gone = False
        self._skip = skip_present

    def look(self) -> Look:
        """Return the next bytes; raises SourceError."""
        if self._handle is None:
            return self._first()
        here = os.fstat(self._handle)
        if here.st_size < self._reading.offset or not self._same():
            self._reading.rewind()
            return Look(turn=Turn.TRUNCATED, more=True, modified=here.st_mtime)
        data = self._read()
        if data:
            more = self._reading.offset < here.st_size
            return Look(data, more=more, exists=not self._gone, modified=here.st_mtime)
        return self._another() or Look(exists=not self._gone, modified=here.st_mtime)

    def close(self) -> None:
        """Let go of the file."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    def _first(self) -> Look:
        if not self._open():
            self._skip = False
            return Look(exists=False)
        assert self._handle is not None
        here = os.fstat(self._handle)
        if self._skip:
            last = os.pread(self._handle, MEMORY, max(0, here.st_size - MEMORY))
            self._reading.skip_to(here.st_size, last)
            self._skip = False
        return Look(turn=Turn.APPEARED, more=True, modified=here.st_mtime)

    def _another(self) -> Look | None:
        """Change to the file that now bears the name; None while it is the same one, or none."""
        try:
            found = os.stat(self.name)
        except FileNotFoundError:
            gone, self._gone = self._gone, True
            return None if gone else Look(turn=Turn.VANISHED, exists=False)
        except OSError:
            return None
        self._gone = False
        if (found.st_dev, found.st_ino) == self._inode:
            return None
        old = self._handle
        if not self._open():
            return None
        if old is not None:
            os.close(old)
        return Look(turn=Turn.REPLACED, more=True, modified=found.st_mtime)

    def _open(self) -> bool:
        try:
            handle = os.open(self.name, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except FileNotFoundError:
            return False
        except OSError as problem:
            usual = (problem.strerror or str(problem), "check the file")
            what, hint = PROBLEMS.get(problem.errno or 0, usual)
            raise SourceError(f"{self.name}: {what}", hint) from problem
        here = os.fstat(handle)
        if not stat.S_ISREG(here.st_mode):
            os.close(handle)
            what = "a folder" if stat.S_ISDIR(here.st_mode) else "not a file"
            raise SourceError(f"{self.name}: this is {what}", "give the log file, or - for a pipe")
        self._handle, self._inode = handle, (here.st_dev, here.st_ino)
        self._reading.rewind()
        return True

    def _same(self) -> bool:
        """True while the first and last bytes that were read still stand where they were."""
        first, last = self._reading.first, self._reading.last
        if not last or self._handle is None:
            return True
        there = os.pread(self._handle, len(last), self._reading.offset - len(last)) == last
        return there and os.pread(self._handle, len(first), 0) == first

    def _read(self) -> bytes:
        assert self._handle is not None
        try:
            data = os.pread(self._handle, CHUNK, self._reading.offset)
        except OSError as problem:
            raise SourceError(f"{self.name}: {problem.strerror}", "check the disk") from problem
        return self._reading.take(data)


class PipeTail:
    """Reads standard input as it comes."""

    def __init__(self, handle: int = 0) -> None:
        self.name = STDIN
        self._handle = handle
        self._head = b""
        self._ended = False
        # A named pipe that nobody has opened for writing yet looks as if it had ended.
        self._patient = handle != 0

    def look(self) -> Look:
        """Return what the pipe holds now; raises SourceError."""
        if self._ended:
            return Look(ended=True)
        try:
            ready, _, _ = select.select([self._handle], [], [], 0)
            data = os.read(self._handle, CHUNK) if ready else None
        except (OSError, ValueError) as problem:
            raise SourceError(
                "standard input: there is none to read", "pipe the server's output in"
            ) from problem
        if data is None:
            return Look()
        if not data:
            self._ended = not self._patient
            return Look(ended=self._ended)
        self._patient = False
        if len(self._head) < SAMPLE_AT_LEAST:
            self._head += data[:SAMPLE_AT_LEAST]
            refuse("standard input", self._head)
        return Look(data, more=True)

    def close(self) -> None:
        """The pipe is not ours to close."""


def refuse(name: str, head: bytes) -> None:
    """Raise SourceError if what begins so is no log that can be followed."""
    packed = archive.format_of(head)
    kind = foreign(head)
    if packed or kind:
        what = f"this is {packed} data" if packed else f"this is {kind.title if kind else ''}"
        hint = "a packed log does not grow: use loopdetect inspect" if packed else UNREADABLE_HINT
        raise SourceError(f"{name}: {what}, not a log that grows", hint)


def open_tail(name: str, *, skip_present: bool = False) -> Tail:
    """Return the follower of a path, or of `-`; `skip_present` leaves out what is there already."""
    if name == STDIN:
        return PipeTail()
    with contextlib.suppress(OSError):
        if stat.S_ISFIFO(os.stat(name).st_mode):
            return PipeTail(os.open(name, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK))
    return FileTail(name, skip_present=skip_present)
