"""Which logs PATH arguments mean: files, folders with all below them, globs, addresses.

In folders everything counts that is a file and not hidden, as for `watch`, packed and rotated logs
too. A link to a file is followed unless the file it leads to is found anyway; links to folders are
not followed, since they may lead back.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from loopdetect.errors import SourceError
from loopdetect.scan.objects import is_address, is_here, listed, local_path
from loopdetect.scan.outcome import Trouble
from loopdetect.source.files import MAGIC, PROBLEMS, STDIN
from loopdetect.source.histories import History, apart, histories

# What `check` keeps beside a log is no log.
NO_LOG: Final = ".expect.toml"
EMPTY: Final = "there is no log in it"
EMPTY_HINT: Final = "give the folder that holds the logs"
MISSING: Final = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG})


@dataclass(frozen=True, slots=True)
class LogFile:
    """`size` is in bytes; `modified` is seconds since 1970, None where unknown."""

    size: int = 0
    modified: float | None = None
    regular: bool = True


@dataclass(slots=True)
class Found:
    """The files in the order of the arguments, and what was named and is not there."""

    files: dict[str, LogFile] = field(default_factory=dict)
    troubles: list[Trouble] = field(default_factory=list)
    missing: bool = False

    def trouble(self, text: str, hint: str | None) -> None:
        """Keep what went wrong with one path."""
        self.troubles.append(Trouble(text, hint))

    def add(self, files: Iterable[tuple[str, LogFile]]) -> int:
        """Keep files, each once, and return how many were given."""
        count = 0
        for name, file in files:
            self.files.setdefault(name, file)
            count += 1
        return count


@dataclass(frozen=True, slots=True)
class Logs:
    """What is to be read, how many are too old; `here` are those that only this process can read."""

    histories: tuple[History, ...]
    sizes: tuple[int, ...]
    here: frozenset[int]
    too_old: int = 0


def find(paths: Iterable[str], output: str | None = None) -> Found:
    """Return the files that the paths mean; `output` is written to and so never one of them."""
    found = Found()
    for path in map(local_path, dict.fromkeys(paths)):
        if path == STDIN:
            found.add([(path, LogFile(regular=False))])
        elif is_address(path):
            _objects(path, found)
        elif MAGIC.isdisjoint(path) or os.path.lexists(path):
            _named(path, found)
        else:
            _matching(path, found)
    if output is not None:
        own = os.path.realpath(output)
        for name in [name for name in found.files if os.path.basename(name) in own]:
            if os.path.realpath(name) == own:
                del found.files[name]
    return found


def grouped(found: Found, *, join: bool, since: float | None) -> Logs:
    """Put rotated files together; logs that were last written to before `since` are left out."""
    made = histories(list(found.files)) if join else apart(found.files)
    chosen = [history for history in made if since is None or _newer(history, found, since)]
    here = {
        index
        for index, history in enumerate(chosen)
        if any(is_here(name) or not found.files[name].regular for name in history.files)
    }
    sizes = (sum(found.files[name].size for name in history.files) for history in chosen)
    return Logs(tuple(chosen), tuple(sizes), frozenset(here), len(made) - len(chosen))


def _newer(history: History, found: Found, since: float) -> bool:
    times = [found.files[name].modified for name in history.files]
    return any(time is None or time >= since for time in times)


def _objects(address: str, found: Found) -> None:
    try:
        objects = listed(address)
    except SourceError as problem:
        found.missing = True
        found.trouble(str(problem), problem.hint)
        return
    logs = [(o.name, LogFile(o.size, o.modified)) for o in objects if not o.name.endswith(NO_LOG)]
    if not found.add(logs):
        found.trouble(f"{address}: {EMPTY}", EMPTY_HINT)


def _named(path: str, found: Found) -> None:
    try:
        status = os.stat(path)
    except OSError as problem:
        if problem.errno in MISSING:
            found.missing = True
            found.trouble(f"{path}: {PROBLEMS[problem.errno][0]}", PROBLEMS[problem.errno][1])
        else:
            found.add([(path, LogFile())])
        return
    if not stat.S_ISDIR(status.st_mode):
        found.add([(path, _file(status))])
    elif not found.add(_walked(path, found)):
        found.trouble(f"{path}: {EMPTY}", EMPTY_HINT)


def _matching(pattern: str, found: Found) -> None:
    import glob

    count = 0
    for name in sorted(glob.glob(pattern, recursive=True)):
        if os.path.isdir(name):
            # ** has found what is below by itself.
            count += 0 if "**" in pattern else found.add(_walked(name, found))
        elif os.path.isfile(name) and not name.endswith(NO_LOG):
            count += found.add([(name, _file(os.stat(name)))])
    if not count:
        found.missing = True
        found.trouble(f"{pattern}: no file matches", "check the pattern")


def _file(status: os.stat_result) -> LogFile:
    return LogFile(status.st_size, status.st_mtime, stat.S_ISREG(status.st_mode))


def _of_entry(entry: os.DirEntry[str]) -> LogFile:
    try:
        return _file(entry.stat())
    except OSError:  # gone since; reading it will say so
        return LogFile()


def _walked(folder: str, found: Found) -> Iterator[tuple[str, LogFile]]:
    """Yield every file below a folder that may be a log, by name."""
    top = os.path.realpath(folder)
    led_to: set[str] = set()
    pending = [os.path.normpath(folder)]
    while pending:
        inside: list[str] = []
        for entry in _entries(pending.pop(), found):
            name = os.path.normpath(entry.path)
            if entry.is_dir(follow_symlinks=False):
                inside.append(name)
            elif entry.is_file() and not (
                entry.is_symlink() and _found_anyway(entry.path, top, led_to)
            ):
                yield name, _of_entry(entry)
        pending.extend(reversed(inside))


def _entries(folder: str, found: Found) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            shown = [
                e for e in entries if not e.name.startswith(".") and not e.name.endswith(NO_LOG)
            ]
    except OSError as problem:
        found.trouble(f"{folder}: cannot look into it: {problem.strerror}", "check its permissions")
        return []
    return sorted(shown, key=lambda entry: entry.name)


def _found_anyway(link: str, top: str, led_to: set[str]) -> bool:
    target = os.path.realpath(link)
    inside = target.startswith(os.path.join(top, ""))
    if inside:
        below = target[len(os.path.join(top, "")) :]
        return not any(part.startswith(".") for part in below.split(os.sep))
    if target in led_to:
        return True
    led_to.add(target)
    return False
