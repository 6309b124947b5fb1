"""Settings put behind the options of every command."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from loopdetect.settings import defaults, effective

# Commands that hold commands.
NESTED: Final[Mapping[str, Sequence[str]]] = {"profiles": ("list", "show", "test")}


def default_map(
    commands: Mapping[str, object], arguments: Sequence[str], file: str | None
) -> dict[str, Any]:
    """Return what click takes for an option that is not given; raises SettingsError.

    Who asks for help gets it, however wrong a settings file is.
    """
    # What follows -- is another program's.
    own = arguments[: arguments.index("--")] if "--" in arguments else arguments
    if "--help" in own or "-h" in own:
        return {}
    values = effective(os.environ, Path.cwd(), file)
    inner = {name: dict.fromkeys(NESTED.get(name, ())) or None for name in commands}
    return defaults(values, inner)
