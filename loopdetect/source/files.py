"""A file, a pipe or standard input as chunks of bytes."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Final

from loopdetect.errors import SourceError
from loopdetect.source import archive
from loopdetect.source.content import readable

CHUNK: Final = 1 << 19
# More than a chunk and what is made of it.
KEPT: Final = 1 << 22
# So many chunks of unpacked text are not worth a thread.
AT_ONCE: Final = 8
STDIN: Final = "-"
# What makes a name a pattern for `glob`, which need not be imported to know.
MAGIC: Final = frozenset("*?[")

PROBLEMS: Final = {
    errno.ENOENT: ("no such file", "check the path"),
    errno.ENOTDIR: ("no such file", "a part of the path is not a folder"),
    errno.EACCES: (
        "no permission to read it",
        "run as its owner, or pipe it: sudo cat FILE | loopdetect inspect -",
    ),
    errno.EPERM: (
        "no permission to read it",
        "run as its owner, or pipe it: sudo cat FILE | loopdetect inspect -",
    ),
    errno.ELOOP: ("a link that leads to itself", "give the file itself"),
    errno.ENAMETOOLONG: (
        "the name is too long",
        "give a path; text goes to standard input: loopdetect inspect -",
    ),
    errno.EBADF: ("there is no standard input", "pipe a log in, or give a file"),
}


class CutShort(SourceError):
    """The source ended before its time; what was read of it is still good."""


def open_source(name: str, on_read: Callable[[int], None] | None = None) -> Iterator[bytes]:
    """Yield the bytes of a file, or of standard input for `-`, unpacked if they are compressed.

    `on_read` is told the size of each raw chunk. Raises SourceError if there is nothing to read,
    CutShort after the last chunk when the rest is missing or damaged.
    """
    yield from unpacked("standard input" if name == STDIN else name, _raw(name, on_read))


def unpacked(label: str, raw: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the text that the raw chunks of a source hold; raises as `open_source` does."""
    _keep_memory()
    given = False
    try:
        for chunk in _plain(raw):
            given = given or bool(chunk)
            yield chunk
    except archive.Broken as problem:
        hint = "the report covers what could be read" if given else "copy the file again"
        raise (CutShort if given else SourceError)(f"{label}: {problem}", hint) from problem
    except OSError as problem:
        raise _explain(label, problem, given) from problem
    except SourceError as problem:
        raise SourceError(f"{label}: {problem}", problem.hint) from problem


def _keep_memory() -> None:
    """Let the memory of one chunk serve the next.

    glibc maps large blocks anew each time, and every page of them costs a fault (0.2 s for a
    gigabyte), until one of their size was freed.
    """
    bytes(KEPT)


def _plain(chunks: Iterator[bytes]) -> Iterator[bytes]:
    head = b""
    for chunk in chunks:
        head += chunk
        if not archive.undecided(head):
            break
    name = archive.format_of(head)
    whole = _after(head, chunks)
    return readable(ahead(archive.expand(name, whole)) if name else whole)


def ahead(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Yield `chunks`, made by a thread while the ones before are used; short ones without."""
    yield from islice(chunks, AT_ONCE)
    first = next(chunks, None)
    if first is None:
        return
    from loopdetect.source.overlap import overlapped

    yield first
    yield from overlapped(chunks)


def _after(head: bytes, chunks: Iterator[bytes]) -> Iterator[bytes]:
    if head:
        yield head
    yield from chunks


def _raw(name: str, on_read: Callable[[int], None] | None) -> Iterator[bytes]:
    handle = 0 if name == STDIN else os.open(name, os.O_RDONLY | os.O_CLOEXEC)
    try:
        if stat.S_ISDIR(os.fstat(handle).st_mode):
            raise SourceError(
                "this is a folder", "give its files: loopdetect inspect 'FOLDER/*.log'"
            )
        while chunk := os.read(handle, CHUNK):
            if on_read:
                on_read(len(chunk))
            yield chunk
    finally:
        if name != STDIN:
            os.close(handle)


def _explain(label: str, problem: OSError, given: bool) -> SourceError:
    what, hint = PROBLEMS.get(
        problem.errno or 0, (problem.strerror or str(problem), "check the file")
    )
    if given:
        return CutShort(f"{label}: {what}", "the report covers what could be read")
    return SourceError(f"{label}: {what}", hint)
