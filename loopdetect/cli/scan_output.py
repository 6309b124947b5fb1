"""Where a scan's output goes, piece by piece: standard output, or a file replaced at the end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from loopdetect.cli.output import Destination, replaced, write
from loopdetect.errors import LoopdetectError


class _Unwritable(Exception):
    """The file could not be written; only this is told as its fault."""


@contextmanager
def pieces(to: Destination) -> Iterator[Callable[[str], None]]:
    """Give a function that writes a piece; raises LoopdetectError where that can't be done."""
    if to.path is None:
        yield lambda text: write(text, to) if text else None
        return
    try:
        with replaced(Path(to.path)) as file:

            def put(text: str) -> None:
                try:
                    file.write(text.encode("utf-8", "backslashreplace"))
                except OSError as problem:
                    raise _Unwritable from problem

            yield put
    except (_Unwritable, OSError) as problem:
        told = problem.__cause__ if isinstance(problem, _Unwritable) else problem
        what = getattr(told, "strerror", None) or str(told)
        raise LoopdetectError(
            f"{to.path}: cannot write it: {what}", "give -o a file in a folder you can write to"
        ) from problem
