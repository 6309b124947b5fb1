"""`loopdetect scan`: many logs, grouped by how they failed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import click

from loopdetect import written
from loopdetect.cli import library
from loopdetect.cli.complaint import complain
from loopdetect.cli.exit_codes import ExitCode
from loopdetect.cli.lazy import CodedCommand
from loopdetect.cli.options import format_option, now_option, output_options, profile_option
from loopdetect.cli.output import Destination, destination, write
from loopdetect.cli.params import STATES, Written
from loopdetect.cli.policy import make_policy, policy_options
from loopdetect.cli.scan_output import pieces
from loopdetect.cli.termination import Terminated, terminable
from loopdetect.model import State
from loopdetect.render import RenderOptions

if TYPE_CHECKING:
    from loopdetect.scan.found import Logs
    from loopdetect.scan.groups import Tally
    from loopdetect.scan.outcome import Outcome, Trouble
    from loopdetect.scan.work import Judge

FORMATS: Final = ("text", "json", "jsonl", "markdown")
# Formats that hold each report, not only the groups.
WITH_REPORTS: Final = frozenset({"json", "jsonl"})
TOP: Final = 20


def _past(value: object) -> float:
    """Return the seconds since 1970 of an ISO time or of how long ago; raises ValueError."""
    text = str(value).strip()
    if isinstance(value, float) or text.isdecimal():
        return written.moment(value)
    try:
        return time.time() - written.duration(text)
    except ValueError:
        pass
    try:
        return written.moment(text)
    except ValueError as problem:
        raise ValueError(f"{problem}, or how long ago: 2h, 7d") from problem


PAST: Final = Written("time", _past, "TIME")


@click.command(cls=CodedCommand)
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    default=None,
    metavar="N",
    help="Processes; 1 reads in this one; with --cluster, the logs that are read at a time."
    "  [default: the processors that may be used]",
)
@click.option(
    "--cluster",
    metavar="ADDRESS",
    default=None,
    help="Read on the Ray cluster at ADDRESS: auto, HOST:PORT, ray://HOST:PORT, or local.",
)
@format_option(*FORMATS)
@output_options
@click.option("--state", "states", type=STATES, default=None, help="Only streams in these states.")
@click.option(
    "--fail-on", type=STATES, default=None, help="Exit 1 if a stream is in one of these states."
)
@click.option(
    "--since",
    type=PAST,
    default=None,
    metavar="TIME",
    help="Only logs that were last written to since then: an ISO time (UTC without a zone), or how "
    "long ago, such as 2h or 7d.",
)
@click.option(
    "--top",
    type=click.IntRange(min=0),
    default=None,
    metavar="N",
    help=f"How many groups, 0 for all.  [default: {TOP}, all for json]",
)
@profile_option
@now_option
@policy_options
@click.option(
    "--join/--no-join",
    default=True,
    help="Read rotated logs and 0.log 1.log … together, or each file for itself.  [default: join]",
)
@click.option(
    "-q",
    "--quiet",
    is_flag=True,
    help="Only the table; no progress, and unreadable logs only counted.",
)
@click.option(
    "-v", "--verbose", is_flag=True, help="More examples, and the fingerprint, of a group."
)
def scan(
    paths: tuple[str, ...],
    jobs: int | None,
    cluster: str | None,
    form: str,
    output: str | None,
    color: str,
    states: frozenset[State] | None,
    fail_on: frozenset[State] | None,
    since: float | None,
    top: int | None,
    profiles: tuple[str, ...],
    now: float | None,
    loop_after: int | None,
    stable_after: float | None,
    stall_after: float | None,
    join: bool,
    quiet: bool,
    verbose: bool,
) -> int:
    """Read many logs and group them by how they failed: server, phase, reason, cause.

    PATH is a file (plain or compressed), a folder with all logs below it, a glob, an address such as
    s3://bucket/logs, gs:// or hdfs://, or - for standard input.
    """
    from loopdetect.scan.found import find, grouped
    from loopdetect.scan.work import Job, Judge

    target = destination(output, color)
    known, forced = library.load(profiles)
    policy = make_policy(loop_after, stable_after, stall_after)
    found = find(paths, target.path)
    for trouble in found.troubles:
        complain(trouble.text, trouble.hint)
    logs = grouped(found, join=join, since=since)
    judge = Judge(known, Job(forced, policy, now, states, form in WITH_REPORTS))
    run = Scan(logs, judge, target, Wish(form, top, int(verbose) - int(quiet)))
    try:
        with terminable():
            tally = run.run(jobs, cluster)
    except Terminated:
        return ExitCode.TERMINATED
    if run.bugs:
        return ExitCode.BUG
    if found.missing or not (tally.logs or logs.too_old):
        return ExitCode.UNABLE
    failed = fail_on is not None and any(tally.states[state] for state in fail_on)
    return ExitCode.FINDING if failed else ExitCode.OK


@dataclass(frozen=True, slots=True)
class Wish:
    """How to tell: `top` groups (0: all), `detail` as renderers take it."""

    form: str
    top: int | None
    detail: int

    @property
    def groups(self) -> int | None:
        """How many groups are told, None for all."""
        if self.top is None:
            return None if self.form in WITH_REPORTS else TOP
        return self.top or None


class Scan:
    """One scan: reads the logs, folds what comes and tells it as it comes."""

    def __init__(self, logs: Logs, judge: Judge, target: Destination, wish: Wish) -> None:
        from loopdetect.scan.groups import Tally

        self._logs, self._judge, self._target, self._wish = logs, judge, target, wish
        self._tally = Tally()
        self.bugs = 0

    def run(self, jobs: int | None, cluster: str | None) -> Tally:
        """Read everything; raises LoopdetectError where that can't begin."""
        if self._wish.form in WITH_REPORTS:
            with pieces(self._target) as put:
                self._with_reports(put, jobs, cluster)
        else:
            for _ in self._outcomes(jobs, cluster):
                pass
            if self._tally.logs or self._logs.too_old:
                self._groups()
        return self._tally

    def _with_reports(
        self, put: Callable[[str], None], jobs: int | None, cluster: str | None
    ) -> None:
        from loopdetect.scan.to_json import Document
        from loopdetect.scan.words import shown

        document = Document() if self._wish.form == "json" else None
        if document is not None:
            put(document.head())
        for outcome in self._outcomes(jobs, cluster):
            put(document.reports(outcome.lines) if document is not None else outcome.lines)
        if document is not None:
            put(document.tail(shown(self._tally, self._wish.groups)))

    def _groups(self) -> None:
        from loopdetect.scan import to_markdown, to_text
        from loopdetect.scan.words import shown

        target, told = self._target, shown(self._tally, self._wish.groups)
        options = RenderOptions(target.color, target.width, self._wish.detail, target.ascii)
        if self._wish.form == "markdown":
            write(to_markdown.to_markdown(told, options), target)
        else:
            write(to_text.to_text(told, options), target)

    def _outcomes(self, jobs: int | None, cluster: str | None) -> Iterator[Outcome]:
        """Yield what became of each log, in their order, once it is counted and complained of."""
        from loopdetect.cli.scan_display import display
        from loopdetect.scan.reading import outcomes

        logs, tally = self._logs, self._tally
        # Reports that are written to a terminal are enough to look at.
        hidden = self._wish.form in WITH_REPORTS and self._target.width is not None
        watched = display(logs, tally, quiet=hidden or self._wish.detail < 0)
        with watched, closing(outcomes(logs, self._judge, jobs, cluster)) as done:
            for index, outcome in done:
                for trouble in outcome.troubles:
                    self._complain(trouble)
                if outcome.log is None:
                    tally.unread += 1
                else:
                    tally.add(index, outcome.log)
                watched.done(logs.sizes[index])
                yield outcome

    def _complain(self, trouble: Trouble) -> None:
        self.bugs += trouble.bug
        if self._wish.detail >= 0 or trouble.bug:
            complain(trouble.text, trouble.hint)
