"""`loopdetect compare`: the last good start beside the bad one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import click

from loopdetect.cli import library
from loopdetect.cli.known_lines import KnownLines
from loopdetect.cli.lazy import CodedCommand
from loopdetect.cli.options import format_option, output_options, profile_option
from loopdetect.cli.output import destination, write
from loopdetect.cli.progress_bar import reading
from loopdetect.errors import LoopdetectError, UsageProblem
from loopdetect.model import Report, Run
from loopdetect.render import RenderOptions

if TYPE_CHECKING:
    from loopdetect.compare import Comparison, Side
    from loopdetect.notable import Notable
    from loopdetect.profiles import Library

# Format -> module and function.
FORMATS: Final = MappingProxyType(
    {
        "text": ("loopdetect.render.compare_to_text", "compare_to_text"),
        "json": ("loopdetect.render.compare_to_json", "compare_to_json"),
        "html": ("loopdetect.render.compare_to_html", "compare_to_html"),
    }
)


@click.command(cls=CodedCommand)
@click.argument("a", metavar="A")
@click.argument("b", metavar="B")
@format_option(*FORMATS)
@output_options
@profile_option
@click.option(
    "--run-a", type=click.IntRange(min=1), default=None, metavar="N",
    help="The run of A.  [default: the last one that got ready]",
)  # fmt: skip
@click.option(
    "--run-b", type=click.IntRange(min=1), default=None, metavar="N",
    help="The run of B.  [default: the last one]",
)  # fmt: skip
@click.option("-q", "--quiet", is_flag=True, help="No progress bar.")
def compare(
    a: str,
    b: str,
    form: str,
    output: str | None,
    color: str,
    profiles: tuple[str, ...],
    run_a: int | None,
    run_b: int | None,
    quiet: bool,
) -> None:
    """Say how the start in log B differs from the one in log A: arguments, phases that got slower,
    where they part, new error-like lines.

    A holds a good start, B the bad one. They may be the same log: then A is the last good start
    before the bad one. One of them may be - for standard input.
    """
    from loopdetect.compare import compare as hold_against

    if a == b == "-":
        raise UsageProblem("standard input can be read only once", "give a file for A or for B")
    target = destination(output, color)
    known, forced = library.load(profiles)
    reports_a, notable_a = _read(a, known, forced, quiet)
    reports_b, notable_b = (reports_a, notable_a) if a == b else _read(b, known, forced, quiet)
    found = [
        hold_against(side_a, side_b, KnownLines(known, side_b.report.server.name).harmless)
        for side_a, side_b in _sides(
            reports_a, notable_a, reports_b, notable_b, (run_a, run_b), a == b
        )
    ]
    options = RenderOptions(target.color, target.width, 0, target.ascii)
    write(_renderer(form)(found, options), target)


def _renderer(form: str) -> Callable[[Sequence[Comparison], RenderOptions], str]:
    import importlib

    module, function = FORMATS[form]
    found: Callable[[Sequence[Comparison], RenderOptions], str] = getattr(
        importlib.import_module(module), function
    )
    return found


def _read(
    source: str, known: Library, forced: str | None, quiet: bool
) -> tuple[tuple[Report, ...], Notable]:
    from loopdetect.core.detector import Detector
    from loopdetect.notable import Notable
    from loopdetect.source.files import open_source

    detector, notable = Detector(known, source=source, profile=forced), Notable()
    with reading(source, quiet) as on_read:
        for chunk in open_source(source, on_read):
            detector.feed(chunk)
            notable.feed(chunk)
    notable.finish()
    return detector.finish(), notable


def _sides(
    reports_a: Sequence[Report],
    notable_a: Notable,
    reports_b: Sequence[Report],
    notable_b: Notable,
    wanted: tuple[int | None, int | None],
    same: bool,
) -> Iterator[tuple[Side, Side]]:
    from loopdetect.compare import Side, good_run, pairs

    for name, reports in (("A", reports_a), ("B", reports_b)):
        if not any(report.runs for report in reports):
            source = reports[0].source if reports else name
            raise LoopdetectError(
                f"{source}: no start of a server in it",
                f"look at it with loopdetect inspect {source}, or say which server with --profile",
            )
    for left, right in pairs(reports_a, reports_b):
        run_b = _numbered(right, wanted[1]) or right.runs[-1]
        run_a = _numbered(left, wanted[0]) or good_run(left, run_b.first_line if same else None)
        if run_a is None:
            raise LoopdetectError(
                f"{left.source}: run {run_b.number} is the first in it, with none before it",
                "give the log of an earlier start as A",
            )
        yield Side(left, run_a, notable_a), Side(right, run_b, notable_b)


def _numbered(report: Report, number: int | None) -> Run | None:
    if number is None:
        return None
    found = next((run for run in report.runs if run.number == number), None)
    if found is None:
        first, last = report.runs[0].number, report.runs[-1].number
        raise UsageProblem(
            f"{report.source}: there is no run {number}", f"it has runs {first} to {last}"
        )
    return found
