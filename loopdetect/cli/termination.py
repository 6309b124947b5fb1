"""SIGTERM as an exception, so that what was begun is ended in good order."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Terminated(KeyboardInterrupt):
    """SIGTERM came. Libraries that wait let a KeyboardInterrupt through, and nothing else."""


@contextmanager
def terminable() -> Iterator[None]:
    """Raise Terminated for a SIGTERM in here."""
    came = False

    def leave(number: int, frame: FrameType | None) -> None:
        nonlocal came
        came = True
        raise Terminated

    before = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    except KeyboardInterrupt:
        if came:
            raise Terminated from None
        raise
    finally:
        signal.signal(signal.SIGTERM, before)
