"""`loopdetect redact`: a copy of a log that can be shown to others."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING

import click

from loopdetect.cli import library
from loopdetect.cli.complaint import complain
from loopdetect.cli.exit_codes import ExitCode
from loopdetect.cli.lazy import CodedCommand
from loopdetect.cli.options import now_option, profile_option
from loopdetect.errors import LoopdetectError
from loopdetect.render.figures import counted

if TYPE_CHECKING:
    from loopdetect.core.detector import Detector
    from loopdetect.model import Report
    from loopdetect.redact.rules import Sort

IN_MEMORY = 1 << 25


@click.command(cls=CodedCommand)
@click.argument("log", metavar="LOG")
@click.option("--excerpt", is_flag=True, help="Only the lines that the verdict rests on.")
@click.option("--keep", multiple=True, metavar="GLOB", help="A text to leave as it is. Repeatable.")
@click.option(
    "-o", "--output", metavar="FILE", default=None, help="Write to FILE, replaced in one step."
)
@profile_option
@now_option
@click.option("-q", "--quiet", is_flag=True, help="No summary on standard error.")
def redact(
    log: str,
    excerpt: bool,
    keep: tuple[str, ...],
    output: str | None,
    profiles: tuple[str, ...],
    now: float | None,
    quiet: bool,
) -> int:
    """Write a copy of LOG with tokens, keys, e-mail and IP addresses, host and user names and home
    paths replaced: the same text by the same placeholder, line by line. The copy is judged like
    the log itself; exit 1 if it is not. LOG is a file, or - for standard input.
    """
    from loopdetect.core.detector import Detector
    from loopdetect.redact.redaction import Redaction
    from loopdetect.redact.same import changed
    from loopdetect.redact.search import Search
    from loopdetect.redact.words import telling_words

    known, forced = library.load(profiles)
    before, after = (Detector(known, source=log, profile=forced) for _ in range(2))
    with _readable_twice(log) as chunks:
        redaction = Redaction(_watched(chunks, before), Search(keep, telling_words(known)))
        with tempfile.SpooledTemporaryFile(IN_MEMORY) as copy:
            for chunk in redaction.copy():
                after.feed(chunk)
                copy.write(chunk)
            old, new = before.finish(now=now), after.finish(now=now)
            kept = list(_excerpt(copy, new)) if excerpt else _chunks(copy)
            _deliver(kept, output)
    if not quiet:
        complain(_said(redaction.counts), word="note")
    if excerpt and not quiet:
        alone = Detector(known, source=log, profile=forced)
        alone.feed(b"".join(kept))
        _tell_apart(new, alone.finish(now=now))
    different = changed(old, new)
    if different:
        complain(
            f"the copy is judged differently: {', '.join(different)}",
            "find the text that matters, and leave it with --keep",
            word="warning",
        )
    return ExitCode.FINDING if different else ExitCode.OK


@contextlib.contextmanager
def _readable_twice(log: str) -> Iterator[Callable[[], Iterable[bytes]]]:
    from loopdetect.source.files import STDIN, open_source

    if log != STDIN:
        yield lambda: open_source(log)
        return
    with tempfile.SpooledTemporaryFile(IN_MEMORY) as held:
        for chunk in open_source(log):
            held.write(chunk)
        yield lambda: _chunks(held)


def _watched(
    chunks: Callable[[], Iterable[bytes]], detector: Detector
) -> Callable[[], Iterator[bytes]]:
    """Return the same chunks, which the detector reads too the first time."""
    rounds: list[None] = []

    def watched() -> Iterator[bytes]:
        first = not rounds
        rounds.append(None)
        for chunk in chunks():
            if first:
                detector.feed(chunk)
            yield chunk

    return watched


def _excerpt(copy: IO[bytes], reports: Sequence[Report]) -> Iterator[bytes]:
    from loopdetect.redact.excerpt import excerpt, wanted_lines
    from loopdetect.redact.redaction import blocks

    for line in excerpt(blocks(_chunks(copy)), wanted_lines(reports)):
        yield line.encode("utf-8", "surrogateescape")


def _chunks(file: IO[bytes]) -> Iterator[bytes]:
    file.seek(0)
    while chunk := file.read(1 << 18):
        yield chunk


def _deliver(chunks: Iterable[bytes], output: str | None) -> None:
    if output in (None, "-"):
        sys.stdout.buffer.writelines(chunks)
        sys.stdout.buffer.flush()
        return
    path = Path(str(output)).resolve()
    special = path.exists() and not path.is_file()
    draft = path if special else path.with_name(f".{path.name[:40]}.{os.getpid()}")
    try:
        with draft.open("wb" if special else "xb") as file:
            file.writelines(chunks)
        if not special:
            draft.replace(path)
    except OSError as problem:
        if not special:
            draft.unlink(missing_ok=True)
        raise LoopdetectError(
            f"{output}: cannot write it: {problem.strerror}",
            "give -o a file in a folder you can write to",
        ) from problem


def _tell_apart(whole: Sequence[Report], alone: Sequence[Report]) -> None:
    """Say so where the lines of an excerpt do not tell all that the log does."""
    states = [
        ", ".join(report.verdict.state.value for report in reports) for reports in (whole, alone)
    ]
    if states[0] != states[1]:
        complain(f"the log is {states[0]}; read alone, the excerpt is {states[1]}", word="note")


def _said(counts: dict[Sort, int]) -> str:
    if not counts:
        return "nothing had to be replaced"
    parts = (counted(count, sort.value.replace("-", " ")) for sort, count in sorted(counts.items()))
    return f"replaced {', '.join(parts)}; read it through before you share it"
