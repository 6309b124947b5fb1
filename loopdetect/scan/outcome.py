"""What became of one log: its digest, its report as lines, and what went wrong."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

from loopdetect.scan.digest import LogDigest


@dataclass(frozen=True, slots=True)
class Trouble:
    """What kept a log from being read, or from being read to its end; `bug` says whose fault."""

    text: str
    hint: str | None = None
    bug: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """`log` is None where nothing could be read; `lines` are JSON, one a report that is wanted."""

    log: LogDigest | None
    troubles: tuple[Trouble, ...] = ()
    lines: str = ""


# Outcomes with the index of their log; to close it ends whoever reads.
Judged = Generator[tuple[int, Outcome], None, None]
