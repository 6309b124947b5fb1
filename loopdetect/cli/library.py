"""What `--profile` says: more profiles, or which server it is."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from loopdetect.errors import ProfileError, UsageProblem, suggestion

if TYPE_CHECKING:
    from loopdetect.profiles import Library


def load(words: Iterable[str]) -> tuple[Library, str | None]:
    """Return the library and the name of the server that the words force, if any.

    Raises ProfileError for a bad profile, UsageProblem for an unknown or second name.
    """
    from loopdetect.profiles import load_library

    words = list(words)
    files = [Path(word) for word in words if _is_file(word)]
    names = sorted({word for word in words if not _is_file(word)})
    for file in files:
        if not file.is_file():
            raise ProfileError(f"{file}: no such profile file", "check the path")
    library = load_library(files)
    if len(names) > 1:
        raise UsageProblem(
            f"--profile can name one server, not {' and '.join(names)}", "give one name"
        )
    if names and names[0] not in library.profiles:
        raise UsageProblem(f"no profile {names[0]!r}", suggestion(names[0], library.profiles))
    return library, names[0] if names else None


def _is_file(word: str) -> bool:
    return word.endswith(".toml") or os.sep in word
