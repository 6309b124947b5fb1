"""The shipped profiles in a form that is read in a few milliseconds.

The TOML files stay the truth: the compiled form names the bytes it was made from, and where they
are not the ones that lie beside it, the TOML files are read instead. So a stale file, or none,
costs time and nothing else.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, Final
from zlib import crc32

from loopdetect.model import Certainty, Kind, Phase
from loopdetect.profiles.schema import (
    Prefix,
    Profile,
    Reason,
    Rule,
    read_profile,
    read_reasons,
)

FILE: Final = "compiled.json"
REASONS: Final = "reasons.toml"

Shipped = tuple[dict[str, Profile], dict[str, Reason], dict[str, str]]


def load(folder: Path) -> Shipped | None:
    """Return the profiles, reasons and exceptions of a folder; None if they are not compiled."""
    try:
        text = (folder / FILE).read_bytes()
        stored = json.loads(text)
    except (OSError, ValueError):
        return None
    if stored.get("of") != digest(folder):
        return None
    reasons = {code: Reason(*values) for code, *values in _with_codes(stored["reasons"])}
    profiles = {name: _profile(values, folder) for name, values in stored["profiles"].items()}
    return profiles, reasons, stored["exceptions"]


def read(folder: Path) -> Shipped:
    """Read the TOML files of a folder. Raises ProfileError."""
    reasons, exceptions = read_reasons(folder / REASONS)
    known = frozenset(reasons)
    found = [read_profile(path, known, strict=False) for path in sources(folder)]
    return {profile.name: profile for profile in found}, reasons, exceptions


def write(folder: Path) -> None:
    """Compile the TOML files of a folder. Raises ProfileError."""
    (folder / FILE).write_text(form(folder), "utf-8")


def form(folder: Path) -> str:
    """Return the compiled form of a folder, the same wherever it lies. Raises ProfileError."""
    profiles, reasons, exceptions = read(folder)
    stored = {
        "of": digest(folder),
        "profiles": {
            name: _plain(replace(profile, path=Path(profile.path).name))
            for name, profile in profiles.items()
        },
        "reasons": [_plain(reason) for reason in reasons.values()],
        "exceptions": exceptions,
    }
    return json.dumps(stored, ensure_ascii=False, separators=(",", ":"), default=_plain) + "\n"


def sources(folder: Path) -> list[Path]:
    """Return the profiles of a folder, in the order in which they are read."""
    return [path for path in sorted(folder.glob("*.toml")) if path.name != REASONS]


def digest(folder: Path) -> str:
    """Name the bytes that the compiled form depends on: against mistakes, not against attacks."""
    names = [field.name for kind in (Rule, Prefix, Profile, Reason) for field in fields(kind)]
    known, size = crc32(" ".join(names).encode()), 0
    for path in (*sources(folder), folder / REASONS):
        data = path.name.encode() + b"\0" + path.read_bytes()
        known, size = crc32(data, known), size + len(data)
    return f"{size}-{known:08x}"


def _plain(value: Any) -> Any:
    if isinstance(value, frozenset):
        return sorted(value)
    return [getattr(value, field.name) for field in fields(value)]


def _with_codes(rows: Sequence[Sequence[str]]) -> list[list[str]]:
    return [[row[0], *row] for row in rows]


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


def _word(kind: type[Kind] | type[Phase] | type[Certainty]) -> Any:
    known: Mapping[str, Any] = {member.value: member for member in kind}
    return known.__getitem__


_PROFILE: Final = [field.name for field in fields(Profile)]
_FORMS: Final[dict[str, Any]] = {
    "kind": _word(Kind),
    "phase": _word(Phase),
    "certainty": _word(Certainty),
    "level": frozenset,
}
# What JSON cannot hold, by the place of its field: words, sets, tuples.
_MADE: Final = [
    (place, _FORMS.get(field.name, tuple))
    for place, field in enumerate(fields(Rule))
    if field.name in _FORMS or str(field.type).startswith("tuple")
]
