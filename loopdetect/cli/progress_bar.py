"""A progress bar on standard error while a large file is read."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

LARGE: Final = 20_000_000


@contextmanager
def reading(name: str, quiet: bool) -> Iterator[Callable[[int], None] | None]:
    """Give a function that is told of each chunk read, None where no bar is wanted."""
    size = 0 if quiet or not sys.stderr.isatty() else _size(name)
    if size < LARGE:
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress

    from loopdetect.render.escape import visible

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(visible(os.path.basename(name)).replace("[", r"\["), total=size)
        yield lambda count: bar.advance(task, count)


def _size(name: str) -> int:
    try:
        status = os.stat(name)
    except OSError:
        return 0
    return status.st_size if stat.S_ISREG(status.st_mode) else 0
