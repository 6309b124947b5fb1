"""Which kind of file system a path is on: on some, no event tells of what others write."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final

MOUNTS: Final = "/proc/self/mountinfo"
SILENT: Final = frozenset(
    {
        "nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "lustre", "gpfs", "beegfs",
        "glusterfs", "virtiofs", "vboxsf", "vmhgfs", "overlay", "aufs", "drvfs",
    }
)  # fmt: skip


def mount_table(text: str) -> list[tuple[str, str]]:
    """Return (mount point, type) for each line of a mountinfo file, the deepest point first."""
    table = []
    for line in text.splitlines():
        before, dash, after = line.partition(" - ")
        words, types = before.split(" "), after.split(" ")
        if dash and len(words) > 4:
            point = words[4].encode("utf-8", "surrogateescape").decode("unicode_escape", "replace")
            table.append((point, types[0]))
    return sorted(table, key=lambda entry: -len(entry[0]))


def silent_type(path: str, table: Iterable[tuple[str, str]]) -> str | None:
    """Return the type of the file system under `path` if it may be silent, else None."""
    real = os.path.realpath(path)
    for point, kind in table:
        if real == point or real.startswith(point.rstrip("/") + "/"):
            return kind if kind in SILENT or kind.startswith("fuse.") else None
    return None


def current_table() -> list[tuple[str, str]]:
    """Return the mounts of this machine, none where it doesn't tell."""
    try:
        return mount_table(Path(MOUNTS).read_text("utf-8", "surrogateescape"))
    except OSError:
        return []
