"""The shipped profiles in a form that is read in a few milliseconds.

The TOML files stay the truth: the compiled form names the bytes it was made from, and where they
are not the ones that lie beside it, the TOML files are read instead. So a stale file, or none,
costs time and nothing else.

The first line of the form holds what is wanted of all profiles, each line after it one profile,
which is read when it is asked for: a log needs four of them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from enum import StrEnum
from pathlib import Path
from typing import Any, Final
from zlib import crc32

from loopdetect.model import Certainty, Kind, Phase, Shared
from loopdetect.profiles.library import Index, Library, index_of
from loopdetect.profiles.schema import Own, Prefix, Profile, Reason, Rule, Speaker

FILE: Final = "compiled.jsonl"
REASONS: Final = "reasons.toml"


class Stored(Shared, Mapping[str, Profile]):
    """Profiles by name, each made when it is first asked for."""

    __slots__ = ("_folder", "_lines", "_made")

    def __init__(self, names: Sequence[str], lines: Sequence[bytes], folder: Path) -> None:
        self._lines = dict(zip(names, lines, strict=True))
        self._made: dict[str, Profile] = {}
        self._folder = folder

    def __getitem__(self, name: str) -> Profile:
        if name not in self._made:
            self._made[name] = _profile(json.loads(self._lines[name]), self._folder)
        return self._made[name]

    def __contains__(self, name: object) -> bool:
        return name in self._lines

    def __iter__(self) -> Iterator[str]:
        return iter(self._lines)

    def __len__(self) -> int:
        return len(self._lines)


def load(folder: Path) -> Library | None:
    """Return the profiles and reasons of a folder; None if they are not compiled."""
    try:
        first, *lines = (folder / FILE).read_bytes().splitlines()
        stored = json.loads(first)
    except (OSError, ValueError):
        return None
    if stored.get("of") != digest(folder):
        return None
    return Library(
        Stored(stored["names"], lines, folder),
        {row[0]: Reason(*row) for row in stored["reasons"]},
        stored["exceptions"],
        Index(
            tuple((name, _rule(row)) for name, row in stored["identify"]),
            frozenset(stored["asked"]),
            {name: Phase(phase) for name, phase in stored["frames"].items()},
            {name: tuple(texts) for name, texts in stored["quotes"].items()},
        ),
    )


def read(folder: Path) -> Library:
    """Read the TOML files of a folder. Raises ProfileError."""
    from loopdetect.profiles.reading import read_profile, read_reasons

    reasons, exceptions = read_reasons(folder / REASONS)
    known = frozenset(reasons)
    found = [read_profile(path, known, strict=False) for path in sources(folder)]
    profiles = {profile.name: profile for profile in found}
    return Library(profiles, reasons, exceptions, index_of(profiles))


def write(folder: Path) -> None:
    """Compile the TOML files of a folder. Raises ProfileError."""
    (folder / FILE).write_text(form(folder), "utf-8")


def form(folder: Path) -> str:
    """Return the compiled form of a folder, the same wherever it lies. Raises ProfileError."""
    library = read(folder)
    first = {
        "of": digest(folder),
        "names": list(library.profiles),
        "reasons": list(library.reasons.values()),
        "exceptions": library.exceptions,
        "identify": library.index.identify,
        "asked": library.index.asked,
        "frames": library.index.frames,
        "quotes": library.index.quotes,
    }
    profiles = [
        replace(profile, path=Path(profile.path).name) for profile in library.profiles.values()
    ]
    lines = [
        json.dumps(part, ensure_ascii=False, separators=(",", ":"), default=_plain)
        for part in (first, *profiles)
    ]
    return "\n".join(lines) + "\n"


def sources(folder: Path) -> list[Path]:
    """Return the profiles of a folder, in the order in which they are read."""
    return [path for path in sorted(folder.glob("*.toml")) if path.name != REASONS]


def digest(folder: Path) -> str:
    """Name the bytes that the compiled form depends on: against mistakes, not against attacks."""
    names = [
        field.name for kind in (Rule, Prefix, Profile, Reason, Index) for field in fields(kind)
    ]
    known, size = crc32(" ".join(names).encode()), 0
    for path in (*sources(folder), folder / REASONS):
        data = path.name.encode() + b"\0" + path.read_bytes()
        known, size = crc32(data, known), size + len(data)
    return f"{size}-{known:08x}"


def _plain(value: Any) -> Any:
    if isinstance(value, frozenset):
        return sorted(value)
    return [getattr(value, field.name) for field in fields(value)]


def _profile(values: Sequence[Any], folder: Path) -> Profile:
    given = dict(zip(_PROFILE, values, strict=True))
    given["extends"] = tuple(given["extends"])
    given["prefixes"] = tuple(
        Prefix(pattern, tuple(samples)) for pattern, samples in given["prefixes"]
    )
    given["rules"] = tuple([_rule(row) for row in given["rules"]])
    given["frames"] = tuple((name, Phase(phase)) for name, phase in given["frames"])
    given["path"] = str(folder / given["path"])
    return Profile(**given)


def _rule(row: list[Any]) -> Rule:
    for place, make in _MADE:
        value = row[place]
        if value is not None:
            row[place] = make(value)
    return Rule(*row)


def _word(kind: type[StrEnum]) -> Any:
    known: Mapping[str, Any] = {member.value: member for member in kind}
    return known.__getitem__


_PROFILE: Final = [field.name for field in fields(Profile)]
_FORMS: Final[dict[str, Any]] = {
    "kind": _word(Kind),
    "phase": _word(Phase),
    "certainty": _word(Certainty),
    "speaker": _word(Speaker),
    "own": _word(Own),
    "level": frozenset,
}
# What JSON cannot hold, by the place of its field: words, sets, tuples.
_MADE: Final = [
    (place, _FORMS.get(field.name, tuple))
    for place, field in enumerate(fields(Rule))
    if field.name in _FORMS or str(field.type).startswith("tuple")
]
