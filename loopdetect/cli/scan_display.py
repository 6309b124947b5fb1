"""How far a scan is, on a terminal only."""

from __future__ import annotations

import os
import sys
import time
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Final, Protocol, Self

from loopdetect.model import FAILED

if TYPE_CHECKING:
    from rich.progress import Progress

    from loopdetect.scan.found import Logs
    from loopdetect.scan.groups import Tally

INTERVAL_S: Final = 0.1


class Display(Protocol):
    """Is told of each log that is done; entered before the first and left after the last."""

    def done(self, size: int) -> None:
        """Count a log of `size` bytes."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *problem: object) -> None: ...


class Nothing(AbstractContextManager["Nothing"]):
    """For outputs that are no terminal."""

    def done(self, size: int) -> None:
        """Leave the log uncounted."""

    def __exit__(self, *problem: object) -> None:
        """Leave nothing behind."""


class Bar(AbstractContextManager["Bar"]):
    """A bar by bytes, the logs done, how many of them failed."""

    def __init__(self, logs: Logs, tally: Tally) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        # No thread of its own draws it: workers are forked meanwhile.
        self._bar: Progress = Progress(
            BarColumn(),
            TextColumn("{task.fields[told]}", markup=False),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=True,
            auto_refresh=False,
            redirect_stdout=False,
        )
        self._logs, self._tally = len(logs.histories), tally
        self._task = self._bar.add_task("", total=sum(logs.sizes) or None, told="")
        self._done, self._drawn = 0, 0.0

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, *problem: object) -> None:
        self._bar.stop()

    def done(self, size: int) -> None:
        """Count a log of `size` bytes and draw, a few times a second."""
        self._done += 1
        failed = sum(self._tally.states[state] for state in FAILED)
        told = f"{self._done:,}/{self._logs:,} logs, {failed:,} failed"
        self._bar.update(self._task, advance=size, told=told)
        now = time.monotonic()
        if now - self._drawn >= INTERVAL_S or self._done == self._logs:
            self._drawn = now
            self._bar.refresh()


def display(logs: Logs, tally: Tally, *, quiet: bool) -> Display:
    """Return a bar where a person looks on, else nothing."""
    if quiet or not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        return Nothing()
    return Bar(logs, tally)
