"""Where the rest of a log is after a rotation: told by inode, or by first and last bytes."""

from __future__ import annotations

import contextlib
import os
import re
import stat
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

HEAD: Final = 256
TAIL: Final = 64
# Fewer first bytes than this are no proof that two files are the same log.
HEAD_AT_LEAST: Final = 16
CANDIDATES: Final = 2000
PACKED: Final = (".gz", ".xz", ".bz2", ".zst", ".lz4")
_ROTATED: Final = re.compile(
    r"(?P<base>.+?)[.-](?:\d{1,6}|\d{8,14}|\d{8}-\d+|\d{4}-\d\d-\d\d\S*|old|bak|prev|previous|orig)"
)


@dataclass(frozen=True, slots=True)
class Mark:
    """How far a file was read, and what it looked like: bytes at its start and before `offset`.

    `modified` is when it had last been written to by then, in nanoseconds since 1970.
    """

    device: int
    inode: int
    offset: int
    head: bytes
    tail: bytes
    modified: int = 0

    def fits(self, handle: int) -> bool:
        """True when the open file holds what was read of the marked one."""
        if os.fstat(handle).st_size < self.offset:
            return False
        if os.pread(handle, len(self.head), 0) != self.head:
            return False
        return os.pread(handle, len(self.tail), self.offset - len(self.tail)) == self.tail


def base_name(name: str) -> str | None:
    """Return `server.log` for `server.log.1` or `server.log-20260301.gz`, None for other names."""
    for suffix in PACKED:
        name = name.removesuffix(suffix)
    found = _ROTATED.fullmatch(name)
    return found["base"] if found else None


def stem(name: str) -> str:
    """Return the part of a log's name that its rotated copies share."""
    return (base_name(name) or name).rsplit(".", 1)[0]


def find(path: str, mark: Mark) -> int | None:
    """Open the file in the same folder that `path` was rotated to, None if there is none.

    A renamed file is known by its inode, a copy by its bytes; both must hold what was read.
    """
    if len(mark.head) < HEAD_AT_LEAST or mark.offset == 0:
        return None
    folder, name = os.path.split(os.path.abspath(path))
    for entry in _candidates(folder, name, mark):
        with contextlib.suppress(OSError):
            handle = os.open(entry, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
            if mark.fits(handle):
                return handle
            os.close(handle)
    return None


def between(path: str, mark: Mark, opened: Collection[tuple[int, int]]) -> list[int]:
    """Open the rotated files of `path` that came after the marked one and were never opened.

    The oldest comes first. A copy of the marked file is not among them.
    """
    folder, name = os.path.split(os.path.abspath(path))
    found: list[tuple[int, int]] = []
    for entry in _candidates(folder, name, mark):
        if base_name(os.path.basename(entry)) != name:
            continue
        with contextlib.suppress(OSError):
            handle = os.open(entry, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
            status = os.fstat(handle)
            known = (status.st_dev, status.st_ino) in opened
            # What was last written to before the marked file was is older; so is a copy of it.
            old = status.st_mtime_ns <= mark.modified
            if known or old or not status.st_size or _begins_alike(handle, mark.head):
                os.close(handle)
            else:
                found.append((status.st_mtime_ns, handle))
    return [handle for _, handle in sorted(found)]


def _begins_alike(handle: int, head: bytes) -> bool:
    return len(head) >= HEAD_AT_LEAST and os.pread(handle, len(head), 0) == head


def _candidates(folder: str, name: str, mark: Mark) -> list[str]:
    """Return files that may be the rotated one, the renamed one first, then the newest."""
    ranked: list[tuple[bool, int, str]] = []
    begins = stem(name)
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.name == name or not entry.name.startswith(begins):
                    continue
                if entry.name.endswith(PACKED):
                    continue
                with contextlib.suppress(OSError):
                    status = entry.stat()
                    # What was renamed or copied before the last write is another log's copy.
                    if stat.S_ISREG(status.st_mode) and status.st_ctime_ns >= mark.modified:
                        same = (status.st_dev, status.st_ino) == (mark.device, mark.inode)
                        ranked.append((not same, -status.st_mtime_ns, entry.path))
    except OSError:
        return []
    return [path for _, _, path in sorted(ranked)[:CANDIDATES]]
