"""`loopdetect inspect`: the post-mortem of logs that are there already."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import click

from loopdetect.cli import inputs, library
from loopdetect.cli.annotated import annotated
from loopdetect.cli.complaint import complain
from loopdetect.cli.exit_codes import ExitCode
from loopdetect.cli.lazy import CodedCommand
from loopdetect.cli.options import (
    detail_options,
    format_option,
    now_option,
    output_options,
    profile_option,
)
from loopdetect.cli.output import destination, write
from loopdetect.cli.params import STATES
from loopdetect.cli.policy import make_policy, policy_options
from loopdetect.cli.progress_bar import reading
from loopdetect.errors import SourceError
from loopdetect.model import Policy, Report, State
from loopdetect.render import RenderOptions, renderer

if TYPE_CHECKING:
    from loopdetect.profiles import Library
    from loopdetect.source.histories import History

FORMATS = ("text", "json", "jsonl", "markdown", "html")


@dataclass(frozen=True, slots=True)
class Inspection:
    """What every log of one call is read with."""

    library: Library
    profile: str | None
    policy: Policy
    now: float | None
    quiet: bool
    join: bool | None = None
    notable: bool = False
    transcript: bool | None = None


@dataclass(slots=True)
class Findings:
    """The reports so far, and whether every source could be read to its end."""

    reports: list[Report] = field(default_factory=list)
    whole: bool = True

    def problem(self, problem: SourceError) -> None:
        """Say what went wrong with one source."""
        complain(str(problem), problem.hint)
        self.whole = False


@click.command(cls=CodedCommand)
@click.argument("logs", nargs=-1, required=True, metavar="LOG...")
@format_option(*FORMATS)
@output_options
@click.option(
    "--fail-on", type=STATES, default=None, help="Exit 1 if a stream is in one of these states."
)
@profile_option
@now_option
@policy_options
@click.option(
    "--join/--no-join",
    default=None,
    help="Read all LOGs as one history in the order of time, or each for itself."
    "  [default: rotated logs and 0.log 1.log … together]",
)
@click.option(
    "--as",
    "kind",
    type=click.Choice(("log", "transcript")),
    default=None,
    help="What LOG is: a server's own output, or what a polling loop printed of it."
    "  [default: recognised]",
)
@detail_options
def inspect(
    logs: tuple[str, ...],
    form: str,
    output: str | None,
    color: str,
    fail_on: frozenset[State] | None,
    profiles: tuple[str, ...],
    now: float | None,
    loop_after: int | None,
    stable_after: float | None,
    stall_after: float | None,
    join: bool | None,
    kind: str | None,
    quiet: bool,
    verbose: bool,
) -> int:
    """Say what each server was doing at the end of its log: state, runs, phases, cause, hint.

    LOG is a file (plain, gzip, xz, bzip2 or zstd), a glob, or - for standard input.
    """
    target = destination(output, color)
    known, forced = library.load(profiles)
    policy = make_policy(loop_after, stable_after, stall_after)
    transcript = None if kind is None else kind == "transcript"
    inspection = Inspection(known, forced, policy, now, quiet, join, form == "html", transcript)
    findings = examine(logs, inspection)
    options = RenderOptions(target.color, target.width, int(verbose) - int(quiet), target.ascii)
    if findings.reports or findings.whole or form == "json":
        write(renderer(form)(findings.reports, options), target)
    if not findings.whole:
        return ExitCode.UNABLE
    found = fail_on is not None and any(r.verdict.state in fail_on for r in findings.reports)
    return ExitCode.FINDING if found else ExitCode.OK


def examine(logs: Iterable[str], inspection: Inspection) -> Findings:
    """Read every log and return what was found; problems are said as they come."""
    findings = Findings()
    from loopdetect.source.histories import apart, histories, joined

    sources, problems = inputs.expand(logs)
    for problem in problems:
        findings.problem(problem)
    grouped = {None: histories, True: lambda files: [joined(files)], False: apart}
    for history in grouped[inspection.join](sources) if sources else ():
        _examine(history, inspection, findings)
    return findings


def _examine(history: History, inspection: Inspection, findings: Findings) -> None:
    from loopdetect.core.detector import Detector
    from loopdetect.notable import Notable
    from loopdetect.source.files import CutShort, open_source

    notable = Notable(bars=True) if inspection.notable else None
    detector = Detector(
        inspection.library,
        policy=inspection.policy,
        source=history.name,
        profile=inspection.profile,
        transcript=inspection.transcript,
    )
    read = 0
    for file in history.files:
        detector.next_file(file, restarted=history.restarts)
        if notable is not None:
            notable.next_file()
        try:
            with reading(file, inspection.quiet) as on_read:
                for chunk in open_source(file, on_read):
                    detector.feed(chunk)
                    if notable is not None:
                        notable.feed(chunk)
            read += 1
        except CutShort as problem:
            findings.problem(problem)
            read += 1
        except SourceError as problem:
            findings.problem(problem)
    if not read:
        return
    reports = detector.finish(now=inspection.now)
    if notable is not None:
        notable.finish()
        reports = tuple(annotated(report, notable, inspection.library) for report in reports)
    findings.reports.extend(reports)
