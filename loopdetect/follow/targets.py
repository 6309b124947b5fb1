"""Which files LOG arguments mean, now and as new files come."""

from __future__ import annotations

import glob
import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from loopdetect.follow.rotated import PACKED, base_name

STDIN: Final = "-"
# Nobody means to follow more; each is a `stat` a second and an open file.
MOST: Final = 20_000


@dataclass(frozen=True, slots=True)
class Targets:
    """The arguments by kind: single paths (that may not exist yet), folders, globs, `-`."""

    paths: tuple[str, ...]
    folders: tuple[str, ...]
    globs: tuple[str, ...]
    stdin: bool

    @property
    def growing(self) -> bool:
        """True where new files may come to be followed."""
        return bool(self.folders or self.globs)

    def found(self) -> list[str]:
        """Return every path to follow at this moment, in order, without rotated copies."""
        found = dict.fromkeys(self.paths)
        for folder in self.folders:
            found.update(dict.fromkeys(_logs_in(folder)))
        for pattern in self.globs:
            matches = sorted(glob.glob(pattern, recursive=True))
            found.update(dict.fromkeys(name for name in _originals(matches) if _is_file(name)))
        return list(found)[:MOST]

    def empty(self) -> list[str]:
        """Return the folders and globs in which there is nothing to follow yet."""
        alone = [Targets((), (folder,), (), False) for folder in self.folders]
        alone += [Targets((), (), (pattern,), False) for pattern in self.globs]
        return [(each.folders or each.globs)[0] for each in alone if not each.found()]

    def absent(self) -> list[str]:
        """Return the paths at which there is nothing yet."""
        return [path for path in self.paths if not os.path.exists(path)]

    def watched_folders(self) -> set[str]:
        """Return the folders in which a new file would matter."""
        folders = set(self.folders)
        for pattern in self.globs:
            fixed = pattern
            while glob.has_magic(fixed):
                fixed = os.path.dirname(fixed)
            folders.add(fixed or ".")
            folders.update(os.path.dirname(name) or "." for name in glob.glob(pattern))
        return folders


def sort_out(arguments: Iterable[str]) -> Targets:
    """Tell files, folders, globs and `-` from each other; a name that is none yet is a file."""
    paths: list[str] = []
    folders: list[str] = []
    globs: list[str] = []
    stdin = False
    for argument in dict.fromkeys(arguments):
        if argument == STDIN:
            stdin = True
        elif os.path.isdir(argument):
            folders.append(argument)
        elif not os.path.lexists(argument) and glob.has_magic(argument):
            globs.append(argument)
        elif argument.endswith(os.sep):
            folders.append(argument)
        else:
            paths.append(argument)
    return Targets(tuple(paths), tuple(folders), tuple(globs), stdin)


def _logs_in(folder: str) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            names = sorted(
                entry.name
                for entry in entries
                if not entry.name.startswith(".") and entry.is_file()
            )
    except OSError:
        return []
    return [os.path.normpath(os.path.join(folder, name)) for name in _originals(names)]


def _originals(names: list[str]) -> list[str]:
    """Leave out packed files, and rotated copies of a log that is there itself."""
    known = set(names)
    return [name for name in names if not name.endswith(PACKED) and _base(name) not in known]


def _base(path: str) -> str | None:
    folder, name = os.path.split(path)
    base = base_name(name)
    return os.path.join(folder, base) if base else None


def _is_file(path: str) -> bool:
    try:
        return stat.S_ISREG(os.stat(path).st_mode)
    except OSError:
        return False
