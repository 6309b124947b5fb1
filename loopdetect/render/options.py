"""What a reader wants of a report, and what a renderer is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from loopdetect.model import Report


@dataclass(frozen=True, slots=True)
class RenderOptions:
    """`width` is in columns, None for no limit; `detail` is -1 quiet, 0 usual, 1 everything.

    `ascii` is for terminals that can't draw.
    """

    color: bool = False
    width: int | None = None
    detail: int = 0
    ascii: bool = False


class Renderer(Protocol):
    """Turns reports into one text that ends with a newline."""

    def __call__(self, reports: Sequence[Report], options: RenderOptions) -> str:
        """Return the text."""
