"""`loopdetect check`: logs held against what is expected of them, for pre-commit and CI."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path

import click

from loopdetect.check.examine import STDIN, Job, check_logs, expectation_of, read_reports
from loopdetect.cli import inputs, library
from loopdetect.cli.complaint import complain
from loopdetect.cli.exit_codes import ExitCode
from loopdetect.cli.lazy import USUAL, CodedCommand
from loopdetect.cli.options import format_option, now_option, output_options, profile_option
from loopdetect.cli.output import Destination, destination, write
from loopdetect.cli.params import STATES
from loopdetect.cli.policy import make_policy, policy_options
from loopdetect.errors import LoopdetectError, UsageProblem
from loopdetect.expectation import SUFFIX, expectation_path, log_beside
from loopdetect.finding import CheckedLog, Finding, Level
from loopdetect.model import State
from loopdetect.render import RenderOptions
from loopdetect.render.escape import visible
from loopdetect.render.findings import FINDING_FORMATS, finding_renderer, open_findings

# Formats whose readers want paths as the repository has them.
ROOTED = frozenset({"github", "sarif"})


class CheckCommand(CodedCommand):
    """`check` can also find nothing to judge."""

    codes = (*USUAL[:3], ExitCode.BUG, ExitCode.UNDECIDED)


@click.command(cls=CheckCommand)
@click.argument("logs", nargs=-1, required=True, metavar="LOG...")
@click.option(
    "--expect",
    type=STATES,
    default=None,
    help="States that are right for logs without an expectation file.  "
    "[default: all but crashed, crash-looping, stalled]",
)
@click.option("--update", is_flag=True, help="Write or refresh the expectation beside each LOG.")
@click.option("--baseline", metavar="FILE", default=None, help="Known failures to let through.")
@click.option(
    "--accept", metavar="WHY", default=None, help="Add what is found to the --baseline file."
)
@click.option(
    "--secrets/--no-secrets", default=False, help="Also fail where redact would replace something."
)
@click.option("--keep", multiple=True, metavar="GLOB", help="A text that is no secret. Repeatable.")
@format_option(*FINDING_FORMATS)
@click.option(
    "--report",
    "reports",
    multiple=True,
    metavar="FORMAT=FILE",
    help="Write it in another format too, such as sarif=loopdetect.sarif. Repeatable.",
)
@output_options
@profile_option
@now_option
@policy_options
@click.option(
    "--jobs",
    type=click.IntRange(min=0),
    default=0,
    metavar="N",
    help="Processes; 0 is as many as pay off.  [default: 0]",
)
@click.option("-q", "--quiet", is_flag=True, help="No summary on standard error.")
@click.option("-v", "--verbose", is_flag=True, help="The fingerprint of each finding too.")
def check(
    logs: tuple[str, ...],
    expect: frozenset[State] | None,
    update: bool,
    baseline: str | None,
    accept: str | None,
    secrets: bool,
    keep: tuple[str, ...],
    form: str,
    reports: tuple[str, ...],
    output: str | None,
    color: str,
    profiles: tuple[str, ...],
    now: float | None,
    loop_after: int | None,
    stable_after: float | None,
    stall_after: float | None,
    jobs: int,
    quiet: bool,
    verbose: bool,
) -> int:
    """Check that each LOG shows what is expected of it: what x.expect.toml beside x.log says, else
    a state of --expect, else anything but crashed, crash-looping and stalled. Silent on success.
    """
    extra = [_report(word) for word in reports]
    if accept is not None and baseline is None:
        raise UsageProblem("--accept needs a file to write to", "add --baseline FILE")
    if accept is not None and not accept.strip():
        raise UsageProblem("--accept needs to say why", "write --accept 'reproduces a known bug'")
    paths = _paths(logs)
    known, forced = library.load(profiles)
    policy = make_policy(loop_after, stable_after, stall_after)
    job = Job(known, forced, policy, now, expect, secrets, keep)
    if update:
        return _update(paths, job)
    checked = check_logs(paths, job, jobs)
    if baseline is not None:
        checked = _with_baseline(checked, baseline, accept, _today(now))
    target = destination(output, color)
    for kind, place in [(form, target), *extra]:
        options = RenderOptions(place.color, place.width, int(verbose))
        write(
            finding_renderer(kind)(_rooted(checked) if kind in ROOTED else checked, options), place
        )
    for log in checked:
        if log.problem:
            complain(log.problem, log.hint)
    if not quiet:
        _summarise(checked)
    return _exit_code(checked)


def _report(word: str) -> tuple[str, Destination]:
    form, equals, file = word.partition("=")
    if not equals or not file or form not in FINDING_FORMATS:
        hint = f"write FORMAT=FILE with one of {', '.join(FINDING_FORMATS)}"
        raise UsageProblem(f"--report {word}: not a format and a file", hint)
    return form, destination(file, "never")


def _paths(logs: Sequence[str]) -> list[str]:
    """Return the logs, each once; an expectation file stands for the log that it belongs to."""
    sources, problems = inputs.expand(logs)
    if problems:
        raise problems[0]
    paths: dict[str, None] = {}
    for source in sources:
        if not source.endswith(SUFFIX):
            paths[source] = None
            continue
        log = log_beside(source)
        if log is None:
            raise UsageProblem(f"{source}: there is no log beside it", "add the log, or remove it")
        paths[str(log)] = None
    return list(paths)


def _today(now: float | None) -> date:
    return (datetime.now(UTC) if now is None else datetime.fromtimestamp(now, UTC)).date()


def _with_baseline(
    checked: list[CheckedLog], path: str, accept: str | None, today: date
) -> list[CheckedLog]:
    from loopdetect.check.baseline import apply, load_baseline

    fresh = accept is not None and not Path(path).exists()
    entries = () if fresh else load_baseline(path)
    applied = [replace(log, findings=apply(entries, log.findings, today)) for log in checked]
    if accept is None or not open_findings(applied):
        return applied
    _accept(open_findings(applied), path, accept, fresh)
    entries = load_baseline(path)
    return [replace(log, findings=apply(entries, log.findings, today)) for log in checked]


def _accept(findings: Sequence[Finding], path: str, because: str, fresh: bool) -> None:
    """Add the findings to a baseline file, which is made if it is `fresh`."""
    from loopdetect.check.baseline import HEAD, entry_text
    from loopdetect.render.figures import counted

    old = HEAD if fresh else Path(path).read_text("utf-8").rstrip("\n") + "\n"
    new = dict.fromkeys(entry_text(finding, because) for finding in findings)
    write("\n".join([old, *new]), destination(path, "never"))
    complain(f"{counted(len(new), 'finding')} added to {path}", word="note")


def _update(paths: Sequence[str], job: Job) -> int:
    from loopdetect.check.update import refreshed

    code = ExitCode.OK
    for path in paths:
        if path == STDIN:
            raise UsageProblem("standard input has no expectation file", "give files")
        file = expectation_path(path)
        try:
            expectation = expectation_of(path)
            reports, problem = read_reports(path, job, expectation)
            if problem:
                raise problem
        except LoopdetectError as failed:
            complain(str(failed), failed.hint)
            code = ExitCode.UNABLE
            continue
        old = file.read_text("utf-8") if file.is_file() else None
        text = refreshed(old, reports, os.path.basename(path), job.now)
        if text != old:
            write(text, destination(str(file), "never"))
            complain(str(file), word="wrote" if old is None else "refreshed")
    return code


def _rooted(checked: Sequence[CheckedLog]) -> list[CheckedLog]:
    """Return the same with paths from the top of the workspace, where they are within it."""
    root = os.path.realpath(os.environ.get("GITHUB_WORKSPACE") or os.curdir)
    rooted: list[CheckedLog] = []
    for log in checked:
        real = os.path.join(os.path.realpath(os.path.dirname(log.path)), os.path.basename(log.path))
        inside = log.path != STDIN and real.startswith(root + os.sep)
        rooted.append(log.under(os.path.relpath(real, root)) if inside else log)
    return rooted


def _summarise(checked: Sequence[CheckedLog]) -> None:
    found = open_findings(checked)
    if not found:
        return
    from loopdetect.render.figures import counted

    bad = sum(1 for log in checked if log.open)
    known = sum(len(log.findings) - len(log.open) for log in checked)
    told = f", {counted(known, 'known failure')} accepted" if known else ""
    logs = counted(len(checked), "log")
    sys.stderr.write(
        visible(f"loopdetect: {counted(len(found), 'finding')} in {bad} of {logs}{told}")
    )
    sys.stderr.write("\n")


def _exit_code(checked: Sequence[CheckedLog]) -> ExitCode:
    found = open_findings(checked)
    if any(log.problem for log in checked):
        return ExitCode.UNABLE
    if any(finding.level is Level.ERROR for finding in found):
        return ExitCode.FINDING
    return ExitCode.UNDECIDED if found else ExitCode.OK
