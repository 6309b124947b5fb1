"""One file, followed by its path through everything that can happen to it.

How this works: the truth is `stat` of the path and `fstat` of the open file. The file is kept
open, so its inode cannot be used again under us. When the path leads to another file, the old one
is read to its end first and then looked at for some seconds more, for a writer may still hold it.
Every read fetches the 64 bytes before its offset too: where they are no longer what was read
there, the file was truncated and has grown again, and it is read from its start.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Final

from loopdetect.follow import rotated
from loopdetect.follow.rotated import HEAD, TAIL, Mark

CHUNK: Final = 1 << 18
# How long a file that the path no longer leads to is looked at, in seconds.
LINGER: Final = 5.0
# So many files are remembered as read before.
REMEMBERED: Final = 32
# A line that nobody ends is taken as it is once it is this long.
LONGEST: Final = 1 << 16
GONE: Final = frozenset({errno.ENOENT, errno.ENOTDIR})
PROBLEMS: Final = {
    errno.EACCES: "no permission to read it",
    errno.EPERM: "no permission to read it",
    errno.ELOOP: "a link that leads to itself",
    errno.EMFILE: "too many open files",
    errno.ENFILE: "too many open files",
    errno.EISDIR: "a folder stands in its place",
}


@dataclass(frozen=True, slots=True)
class Happening:
    """What the file itself did: it `appeared`, was `gone`, `rotated`, `truncated`, `unreadable`."""

    what: str
    text: str


@dataclass(slots=True)
class Open:
    """An open file: what was read of it, and the unfinished line at the end of that."""

    handle: int
    device: int
    inode: int
    offset: int = 0
    head: bytes = b""
    tail: bytes = b""
    pending: bytes = b""
    modified: int = -1
    until: float | None = None

    def mark(self) -> Mark:
        """Return how far whole lines were taken from it."""
        offset = self.offset - len(self.pending)
        tail = self.tail[: max(0, len(self.tail) - len(self.pending))]
        return Mark(self.device, self.inode, offset, self.head[:offset], tail, self.modified)


@dataclass(slots=True)
class Work:
    """How much was done, for those who want to know what quiet files cost."""

    looks: int = 0
    reads: int = 0
    bytes: int = 0


@dataclass(slots=True)
class Tail:
    """Follows one path; `poll` gives the bytes that were not given before."""

    path: str
    work: Work = field(default_factory=Work)
    current: Open | None = None
    old: list[Open] = field(default_factory=list)
    happenings: list[Happening] = field(default_factory=list)
    grown_at: float | None = None
    more: bool = False
    _seen: tuple[int, int, int, int] | None = None
    _absent: bool = False
    _trouble: str | None = None
    _opened: deque[tuple[int, int]] = field(default_factory=lambda: deque(maxlen=REMEMBERED))

    # -- the door

    def poll(self, now: float, *, budget: int = CHUNK) -> bytes:
        """Return new whole lines, at most about `budget` bytes; `more` tells that there are others.

        `now` is any clock that only goes on, in seconds.
        """
        self.more = False
        data = b"".join(self._drained(now))
        status = self._look()
        if status is None:
            return data + self._rest_of_missing(now, budget)
        current = self.current
        seen = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)
        if current is not None and seen == self._seen and current.offset >= status.st_size:
            return data
        if current is not None and seen[:2] != (current.device, current.inode):
            data += self._grow(now, budget)
            if self.more:
                return data
            data += self._leave(now)
        if self.current is None and not self._open():
            return data
        data += self._grow(now, budget)
        if not self.more:
            self._seen = seen
        return data

    def rest(self, now: float, quiet: float) -> bytes:
        """Return an unfinished line that nobody has added to for `quiet` seconds."""
        current = self.current
        if current is None or not current.pending or self.grown_at is None:
            return b""
        if quiet and now - self.grown_at < quiet:
            return b""
        data, current.pending = current.pending, b""
        return data

    @property
    def waiting(self) -> bool:
        """True while an unfinished line or a file that was left needs looks soon."""
        return bool(self.old) or bool(self.current and self.current.pending)

    @property
    def missing(self) -> bool:
        """True while nothing is at the path."""
        return self._absent

    def modified_at(self) -> float | None:
        """Return when the file was last written to, in seconds since 1970."""
        return self.current.modified / 1e9 if self.current and self.current.modified > 0 else None

    def mark(self) -> Mark | None:
        """Return where the reading stands, None before the first file."""
        return self.current.mark() if self.current else None

    def resume(self, mark: Mark) -> bytes:
        """Go on at `mark`; return what was written to a file that was rotated meanwhile."""
        self._look()
        if not self._absent and self._open() and self.current is not None:
            same = (self.current.device, self.current.inode) == (mark.device, mark.inode)
            if (same or mark.offset >= rotated.HEAD_AT_LEAST) and mark.fits(self.current.handle):
                self.current.offset, self.current.head = mark.offset, mark.head
                self.current.tail = mark.tail
                return b""
        data = self._rest_of_rotated(mark) + self._between(mark)
        if mark.offset:
            self._say("rotated", "it was rotated while nobody watched")
        return data

    def close(self) -> None:
        """Close every file."""
        for open_file in [*self.old, *([self.current] if self.current else [])]:
            _close(open_file)
        self.old, self.current = [], None

    # -- looking

    def _look(self) -> os.stat_result | None:
        self.work.looks += 1
        try:
            status = os.stat(self.path)
        except OSError as problem:
            if problem.errno not in GONE:
                self._complain(problem)
            elif not self._absent and self.current is not None:
                self._say("gone", "there is no file any more; waiting for it")
            self._absent = problem.errno in GONE
            self._seen = None
            return None
        if self._absent:
            self._say("appeared", f"the file is there, {status.st_size} bytes")
        self._absent = False
        if stat.S_ISDIR(status.st_mode):
            self._complain(OSError(errno.EISDIR, "a folder"))
            return None
        return status

    def _open(self) -> bool:
        try:
            handle = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except OSError as problem:
            if problem.errno not in GONE:
                self._complain(problem)
            self._seen = None
            return False
        status = os.fstat(handle)
        self.current = Open(handle, status.st_dev, status.st_ino)
        self._opened.append((status.st_dev, status.st_ino))
        if self._trouble:
            self._say("appeared", "the file can be read again")
            self._trouble = None
        return True

    # -- reading

    def _grow(self, now: float, budget: int) -> bytes:
        """Read on in the current file, from its start where it was truncated."""
        current = self.current
        assert current is not None
        size, modified = _size(current)
        data = b""
        if size < current.offset:
            data = self._restart(f"truncated from {current.offset} to {size} bytes")
        elif current.offset and modified != current.modified:
            self.work.reads += 1
            before = _read(current.handle, len(current.tail), current.offset - len(current.tail))
            if before != current.tail:
                data = self._restart(f"truncated and written anew, {size} bytes")
        current.modified = modified
        while current.offset < size and len(data) < budget:
            piece = self._read_on(current)
            if not piece:
                break
            data += _whole(current, piece)
            self.grown_at = now
        self.more = current.offset < size
        return data

    def _restart(self, text: str) -> bytes:
        """Begin at the file's start; what a copy holds of the old content is read first."""
        current = self.current
        assert current is not None
        self._say("truncated", text)
        mark = replace(current.mark(), inode=-1, offset=current.offset, tail=current.tail)
        data, current.pending = current.pending, b""
        current.offset, current.head, current.tail = 0, b"", b""
        return data + self._rest_of_rotated(mark)

    def _read_on(self, current: Open) -> bytes:
        """Return the next bytes of the file, none at its end."""
        if current.offset == 0:
            current.offset = _data_start(current.handle)
        while True:
            self.work.reads += 1
            piece = _read(current.handle, CHUNK, current.offset)
            current.offset += len(piece)
            if current.head or not piece:
                break
            # The writer of a truncated file may leave a hole of NULs before its next line.
            piece = piece.lstrip(b"\0")
            if piece:
                break
        self.work.bytes += len(piece)
        if piece and len(current.head) < HEAD:
            current.head = _read(current.handle, min(HEAD, current.offset), 0)
        current.tail = (current.tail + piece[-TAIL:])[-TAIL:]
        return piece

    def _leave(self, now: float) -> bytes:
        """Read the current file to its end and keep an eye on it; the path leads elsewhere."""
        current = self.current
        assert current is not None
        data = self._to_end(current) + self._between(current.mark())
        current.until = now + LINGER
        self.old.append(current)
        self.current = None
        if not any(happening.what == "appeared" for happening in self.happenings):
            self._say("rotated", "another file took its place")
        return data

    def _drained(self, now: float) -> Iterator[bytes]:
        for open_file in list(self.old):
            data = self._to_end(open_file)
            if data:
                self.grown_at = now
                yield data
            if open_file.until is not None and now >= open_file.until:
                yield open_file.pending
                _close(open_file)
                self.old.remove(open_file)

    def _to_end(self, open_file: Open) -> bytes:
        data = b""
        while _size(open_file)[0] > open_file.offset:
            piece = self._read_on(open_file)
            if not piece:
                break
            data += _whole(open_file, piece)
        return data

    def _rest_of_missing(self, now: float, budget: int) -> bytes:
        """A file without a name can still be written to."""
        return self._grow(now, budget) if self.current is not None else b""

    def _rest_of_rotated(self, mark: Mark) -> bytes:
        handle = rotated.find(self.path, mark)
        if handle is None:
            return b""
        status = os.fstat(handle)
        copy = Open(handle, status.st_dev, status.st_ino, mark.offset, mark.head, mark.tail)
        data = self._to_end(copy) + copy.pending
        self._opened.append((copy.device, copy.inode))
        _close(copy)
        return data

    def _between(self, left: Mark) -> bytes:
        """Read files that came and were rotated away while nobody looked."""
        data = b""
        for handle in rotated.between(self.path, left, self._opened):
            status = os.fstat(handle)
            missed = Open(handle, status.st_dev, status.st_ino)
            data += self._to_end(missed) + missed.pending
            self._opened.append((missed.device, missed.inode))
            _close(missed)
        return data

    # -- saying

    def _say(self, what: str, text: str) -> None:
        self.happenings.append(Happening(what, text))

    def _complain(self, problem: OSError) -> None:
        text = PROBLEMS.get(problem.errno or 0, problem.strerror or str(problem))
        if text != self._trouble:
            self._trouble = text
            self._say("unreadable", text)


def _whole(open_file: Open, piece: bytes) -> bytes:
    """Return the whole lines that `piece` completes, and keep the unfinished one."""
    data = open_file.pending + piece
    cut = max(data.rfind(b"\n"), data.rfind(b"\r", 0, len(data) - 1)) + 1
    if cut == 0 and len(data) >= LONGEST:
        cut = len(data)
    open_file.pending = data[cut:]
    return data[:cut]


def _size(open_file: Open) -> tuple[int, int]:
    status = os.fstat(open_file.handle)
    return status.st_size, status.st_mtime_ns


def _read(handle: int, count: int, offset: int) -> bytes:
    try:
        return os.pread(handle, count, max(offset, 0))
    except OSError:
        return b""  # a network file system that is away: the next look tells more


def _data_start(handle: int) -> int:
    """Return where the file's data begins, behind a hole that a truncation left."""
    try:
        return os.lseek(handle, 0, os.SEEK_DATA)
    except (OSError, AttributeError):
        return 0


def _close(open_file: Open) -> None:
    with contextlib.suppress(OSError):
        os.close(open_file.handle)
