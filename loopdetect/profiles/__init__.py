"""The servers that loopdetect knows, read from TOML files."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Final

from loopdetect.errors import ProfileError
from loopdetect.model import Phase, Shared
from loopdetect.profiles import compiled
from loopdetect.profiles.schema import Prefix, Profile, Reason, Rule, read_profile

__all__ = ["ALWAYS", "Library", "Prefix", "Profile", "Reason", "Rule", "load_library"]

SHIPPED: Final = Path(__file__).parent
ALWAYS: Final = ("supervisors", "generic")


@dataclass(frozen=True, slots=True)
class Library(Shared):
    """All profiles and reasons in force."""

    profiles: Mapping[str, Profile]
    reasons: Mapping[str, Reason]
    exceptions: Mapping[str, str]
    frames: Mapping[str, Phase] = field(default_factory=dict)

    def lineage(self, name: str) -> tuple[Profile, ...]:
        """Return the profile and all that it extends, nearest first."""
        found: dict[str, Profile] = {}
        pending = [name]
        while pending:
            profile = self.profiles[pending.pop(0)]
            if profile.name not in found:
                found[profile.name] = profile
                pending.extend(profile.extends)
        return tuple(found.values())


def user_folder() -> Path:
    """The folder in which users keep profiles of their own."""
    named = os.environ.get("LOOPDETECT_PROFILES")
    config = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    return Path(named) if named else Path(config) / "loopdetect" / "profiles"


@lru_cache(maxsize=1)
def _shipped() -> tuple[dict[str, Profile], dict[str, Reason], dict[str, str]]:
    return compiled.load(SHIPPED) or compiled.read(SHIPPED)


def load_library(extra: Sequence[Path] = ()) -> Library:
    """Read the shipped profiles, the user's folder and `extra` files; later ones replace earlier.

    Raises ProfileError.
    """
    shipped, reasons, exceptions = _shipped()
    profiles = dict(shipped)
    folder = user_folder()
    files = [*(sorted(folder.glob("*.toml")) if folder.is_dir() else ()), *extra]
    for file in files:
        profile = read_profile(file, frozenset(reasons))
        profiles[profile.name] = profile
    for profile in profiles.values():
        for other in profile.extends:
            if other not in profiles:
                raise ProfileError(
                    f"{profile.path}: extends: there is no profile '{other}'",
                    f"Known profiles: {', '.join(sorted(profiles))}.",
                )
    frames = {name: phase for each in profiles.values() for name, phase in each.frames}
    return Library(profiles, reasons, exceptions, frames)
