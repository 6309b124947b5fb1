"""LOG arguments: file names, `-`, and globs that a shell left alone."""

from __future__ import annotations

import os
from collections.abc import Iterable

from loopdetect.errors import SourceError, UsageProblem
from loopdetect.source.files import MAGIC


def expand(arguments: Iterable[str]) -> tuple[list[str], list[SourceError]]:
    """Return the sources in order, and a problem for each glob that matched nothing.

    Raises UsageProblem if standard input is asked for twice.
    """
    sources: list[str] = []
    problems: list[SourceError] = []
    for argument in arguments:
        if argument == "-" and "-" in sources:
            raise UsageProblem("standard input can be read only once", "give - once")
        if argument == "-" or os.path.lexists(argument) or MAGIC.isdisjoint(argument):
            sources.append(argument)
            continue
        import glob

        found = [
            name for name in sorted(glob.glob(argument, recursive=True)) if os.path.isfile(name)
        ]
        if not found:
            problems.append(SourceError(f"{argument}: no file matches", "check the pattern"))
        sources.extend(found)
    return sources, problems
