"""Where a child writes to, and how that is read: a log file of its own, or a pipe."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
import sys
import tempfile
from dataclasses import dataclass, replace
from typing import Final

from loopdetect.errors import LoopdetectError
from loopdetect.live.tail import FileTail, Look, PipeTail, Tail

# A child must not stand still because we are busy for a moment.
PIPE_BYTES: Final = 1 << 20
LAST_BYTES: Final = 4096
LAST_LINES: Final = 3
PROBLEMS: Final = {
    errno.ENOENT: ("its folder does not exist", "make the folder, or give another file"),
    errno.EISDIR: ("this is a folder", "give a file in it"),
    errno.ENOTDIR: ("a part of its path is a file", "check the path"),
    errno.EACCES: ("no permission to write it", "give a file that you can write to"),
    errno.EROFS: ("its file system is read-only", "give a file elsewhere"),
    errno.ENOSPC: ("the disk is full", "make room on the disk"),
}
NOT_A_FILE: Final = ("this is not a file", "give a file, or leave --log out")


@dataclass(frozen=True, slots=True)
class Output:
    """The handle that the child gets, how it is read, and the file that it is, None for a pipe.

    `made` says that the file was not there before.
    """

    handle: int
    tail: Tail
    path: str | None
    made: bool = False

    def close(self, *, used: bool) -> None:
        """Let go of both ends; a file that was made for nothing goes too."""
        self.tail.close()
        with contextlib.suppress(OSError):
            os.close(self.handle)
            if self.path and self.made and not used and os.path.getsize(self.path) == 0:
                os.unlink(self.path)


def to_file(path: str, *, skip_present: bool = False) -> Output:
    """Append to a log file; raises LoopdetectError."""
    made = not os.path.lexists(path)
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK
    try:
        handle = os.open(path, flags, 0o666)
        found = os.fstat(handle).st_mode
    except OSError as problem:
        usual = (problem.strerror or str(problem), "give another file")
        what, hint = PROBLEMS.get(problem.errno or 0, usual)
        if problem.errno == errno.ENXIO:
            what, hint = NOT_A_FILE
        raise LoopdetectError(f"--log: {path}: {what}", hint) from problem
    if not stat.S_ISREG(found):
        os.close(handle)
        raise LoopdetectError(f"--log: {path}: {NOT_A_FILE[0]}", NOT_A_FILE[1])
    # It was for a pipe that nobody reads; the child shall not see it.
    os.set_blocking(handle, True)
    return Output(handle, FileTail(path, skip_present=skip_present), path, made)


def to_new_file(name: str) -> Output:
    """Write to a new file in the folder for such files, and pass on what is read of it.

    Raises LoopdetectError.
    """
    try:
        handle, path = tempfile.mkstemp(prefix=f"loopdetect-{name[:40]}-", suffix=".log")
    except OSError as problem:
        raise LoopdetectError(
            f"no file can be made for the output: {problem.strerror}", "give one with --log FILE"
        ) from problem
    os.close(handle)
    place = to_file(path)
    return replace(place, tail=PassedOn(place.tail), made=True)


def to_pipe(name: str) -> Output:
    """Write to a pipe, and pass on what is read of it."""
    reading, writing = os.pipe()
    with contextlib.suppress(OSError, AttributeError):
        fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
    return Output(writing, PassedOn(ChildPipe(reading, name)), None)


def last_words(path: str, since: int) -> list[str]:
    """Return the last lines that are not empty of what a file holds from the offset `since` on."""
    try:
        with open(path, "rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(since, size - LAST_BYTES))
            text = file.read(LAST_BYTES).decode("utf-8", "replace")
    except OSError:
        return []
    return [line.rstrip() for line in text.splitlines() if line.strip()][-LAST_LINES:]


class ChildPipe(PipeTail):
    """Reads a pipe that is ours; that its writers are gone is told by the process, not by the end."""

    def __init__(self, handle: int, name: str) -> None:
        super().__init__(handle)
        self.name = name
        self._open = True

    def look(self) -> Look:
        """Return what the pipe holds now; raises SourceError."""
        return replace(super().look(), ended=False)

    def close(self) -> None:
        """Let go of it."""
        if self._open:
            os.close(self._handle)
            self._open = False


class PassedOn:
    """Copies what is read to standard error, byte by byte as it came."""

    def __init__(self, tail: Tail) -> None:
        self.name = tail.name
        self._tail = tail
        self._in_line = False

    def look(self) -> Look:
        """Return the next bytes; raises SourceError."""
        look = self._tail.look()
        if look.data:
            sys.stderr.flush()
            sys.stderr.buffer.write(look.data)
            sys.stderr.buffer.flush()
            self._in_line = not look.data.endswith(b"\n")
        return look

    def drain(self) -> None:
        """Pass on what there is; raises SourceError."""
        while self.look().more:
            pass

    def own_line(self, text: str) -> str:
        """Return a line of our own so that it does not begin inside one of the server's."""
        lead, self._in_line = ("\n" if self._in_line else ""), False
        return lead + text

    def close(self) -> None:
        """Let go of it."""
        self._tail.close()
