"""Several files that are one history: rotated logs, one file a container restart, previous and current."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

STDIN: Final = "-"
_PACKED: Final = r"(?:\.(?:gz|xz|bz2|zst))?"
# What a rotation adds to a name; the group sorts oldest first once it is read by its key.
# (Compiled where there are several files only.)
_ROTATED: Final[tuple[tuple[str, Callable[[str], int]], ...]] = (
    (rf"(?P<base>.+?)\.(?P<n>\d{{1,3}}){_PACKED}$", lambda text: -int(text)),
    (rf"(?P<base>.+?)[-.](?P<n>\d{{8}}(?:[-T]?\d{{4,6}})?){_PACKED}$", lambda text: _dated(text)),
    (rf"(?P<base>.+?)\.(?P<n>old|prev|previous){_PACKED}$", lambda text: -1),
)
_RESTART: Final = rf"(?P<base>(?:.*\.)?)(?P<n>\d{{1,6}})\.log{_PACKED}$"
_PREVIOUS: Final = r"(?P<before>.*?)[-_.]?(?P<word>previous|prev|current)(?P<after>[-_.].*|)$"


@dataclass(frozen=True, slots=True)
class History:
    """Files in the order of time; `restarts` is true where each file is a process of its own."""

    files: tuple[str, ...]
    restarts: bool = False

    @property
    def name(self) -> str:
        """The newest file stands for all."""
        return self.files[-1]


def _dated(text: str) -> int:
    """Put a date behind all numbers: the newer, the later, and all before the file without one."""
    return int(re.sub(r"\D", "", text)[:14].ljust(14, "0")) - 10**15


def joined(files: Sequence[str]) -> History:
    """Return all files as one history, rotated names put in order, others as they were given."""
    found = histories(files)
    return History(tuple(f for h in found for f in h.files), any(h.restarts for h in found))


def apart(files: Iterable[str]) -> list[History]:
    """Return each file as a history of its own."""
    return [History((file,)) for file in files]


def histories(files: Sequence[str]) -> list[History]:
    """Group files that belong together by their names; the rest stand alone, in the order given."""
    if len(files) == 1:
        return apart(files)
    groups: dict[tuple[str, str], list[tuple[int, str]]] = {}
    keys: dict[str, tuple[str, str]] = {}
    for file in dict.fromkeys(files):
        kind, base, order = _place(file)
        key = (kind, base)
        groups.setdefault(key, []).append((order, file))
        keys[file] = key
    found: list[History] = []
    done: set[tuple[str, str]] = set()
    for key in keys.values():
        if key not in done:
            done.add(key)
            ordered = tuple(file for _, file in sorted(groups[key], key=lambda item: item[0]))
            found.append(History(ordered, key[0] == "restart" and len(ordered) > 1))
    return found


def _place(file: str) -> tuple[str, str, int]:
    """Return what kind of name it is, what it shares with its siblings, and its place among them."""
    if file == STDIN:
        return "alone", file, 0
    folder, name = os.path.split(file)
    match = re.match(_RESTART, name)
    if match:
        return "restart", os.path.join(folder, match["base"]), int(match["n"])
    match = re.match(_PREVIOUS, name)
    if match:
        base = f"{match['before']}{match['after'] or '.log'}".lstrip("-_.")
        return "rotated", os.path.join(folder, base), 0 if match["word"] == "current" else -1
    for pattern, place in _ROTATED:
        match = re.match(pattern, name)
        if match:
            return "rotated", os.path.join(folder, match["base"]), place(match["n"])
    return "rotated", file, 0
