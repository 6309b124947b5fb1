"""The servers that loopdetect knows, read from TOML files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Final

from loopdetect.errors import ProfileError
from loopdetect.profiles import compiled
from loopdetect.profiles.library import Library, index_of
from loopdetect.profiles.schema import Prefix, Profile, Reason, Rule

__all__ = [
    "ALWAYS",
    "Library",
    "Prefix",
    "Profile",
    "Reason",
    "Rule",
    "library_with",
    "load_library",
]

SHIPPED: Final = Path(__file__).parent
ALWAYS: Final = ("supervisors", "generic")


def user_folder() -> Path:
    """The folder in which users keep profiles of their own."""
    named = os.environ.get("LOOPDETECT_PROFILES")
    config = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    return Path(named) if named else Path(config) / "loopdetect" / "profiles"


@lru_cache(maxsize=1)
def _shipped() -> Library:
    return compiled.load(SHIPPED) or compiled.read(SHIPPED)


def load_library(extra: Sequence[Path] = ()) -> Library:
    """Read the shipped profiles, the user's folder and `extra` files; later ones replace earlier.

    Raises ProfileError.
    """
    folder = user_folder()
    return library_with([*(sorted(folder.glob("*.toml")) if folder.is_dir() else ()), *extra])


def library_with(files: Sequence[Path]) -> Library:
    """Read the shipped profiles and these files, later ones replace earlier. Raises ProfileError."""
    shipped = _shipped()
    if not files:
        return shipped
    from loopdetect.profiles.reading import read_profile

    profiles = dict(shipped.profiles)
    for file in files:
        profile = read_profile(file, frozenset(shipped.reasons))
        profiles[profile.name] = profile
    for profile in profiles.values():
        for other in profile.extends:
            if other not in profiles:
                raise ProfileError(
                    f"{profile.path}: extends: there is no profile '{other}'",
                    f"Known profiles: {', '.join(sorted(profiles))}.",
                )
    return Library(profiles, shipped.reasons, shipped.exceptions, index_of(profiles))
