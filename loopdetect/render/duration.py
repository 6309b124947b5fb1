"""Seconds as people say them."""

from __future__ import annotations

import math
from typing import Final

_UNITS: Final = (("d", 86400), ("h", 3600), ("min", 60), ("s", 1))
NONE: Final = "-"


def spoken(seconds: float | None) -> str:
    """Return the two largest units, such as `8 min 50 s`, `3 h`, `0.42 s`; `-` for None."""
    if seconds is None or not math.isfinite(seconds):
        return NONE
    if seconds < 0:
        return f"-{spoken(-seconds)}"
    if seconds < 10:
        return f"{round(seconds, 2 if seconds < 1 else 1):g} s"
    left = round(seconds)
    parts: list[str] = []
    for unit, size in _UNITS:
        count, left = divmod(left, size)
        if count or parts:
            parts.append(f"{count} {unit}" if count else "")
        if len(parts) == 2:
            break
    return " ".join(part for part in parts if part)
