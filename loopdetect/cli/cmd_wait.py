"""`loopdetect wait`: the end of the polling loop."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import TYPE_CHECKING, Final

import click

from loopdetect.cli import library
from loopdetect.cli.cmd_inspect import make_policy
from loopdetect.cli.exit_codes import ExitCode
from loopdetect.cli.lazy import CodedCommand
from loopdetect.cli.options import format_option, output_options, profile_option
from loopdetect.cli.output import Destination, destination, wants_color, write
from loopdetect.cli.params import DURATION
from loopdetect.errors import UsageProblem
from loopdetect.model import Policy, State
from loopdetect.render import RenderOptions, renderer
from loopdetect.render.escape import json_safe
from loopdetect.render.paint import painter

if TYPE_CHECKING:
    from loopdetect.live.judge import Decision
    from loopdetect.live.log_watch import LogWatch
    from loopdetect.live.loop import Wait
    from loopdetect.live.status import Display
    from loopdetect.probe.seen import ProcessProbe
    from loopdetect.profiles import Library

GOALS: Final = tuple(state.value for state in State if state is not State.UNKNOWN)
PROCESS_INTERVAL_S: Final = 0.25
UNIT_INTERVAL_S: Final = 1.0


class Terminated(BaseException):
    """SIGTERM came."""


class Pattern(click.ParamType[re.Pattern[str]]):
    """A regular expression."""

    name = "regex"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> re.Pattern[str]:
        """Return it compiled."""
        if isinstance(value, re.Pattern):
            return value
        try:
            return re.compile(str(value))
        except re.error as problem:
            self.fail(f"{str(value)!r} is not a regular expression: {problem}", param, ctx)


class WaitCommand(CodedCommand):
    """Shows all codes that a wait can end with."""

    codes = (
        ExitCode.OK,
        ExitCode.FINDING,
        ExitCode.UNABLE,
        ExitCode.BUG,
        ExitCode.UNDECIDED,
        ExitCode.LOOPING,
        ExitCode.STALLED,
        ExitCode.TIME_LIMIT,
        ExitCode.INTERRUPTED,
        ExitCode.TERMINATED,
    )


@dataclass(frozen=True, slots=True)
class Request:
    """What the command line asks for; times in seconds."""

    log: str
    health: str | None
    token_env: str | None
    ca_file: str | None
    insecure: bool
    pid: int | None
    pid_file: str | None
    unit: str | None
    until: State
    timeout: float
    stall: float | None
    settle: float
    tolerate: int | None
    interval: float
    ready_line: re.Pattern[str] | None
    fail_line: re.Pattern[str] | None
    since_now: bool
    quiet: bool
    color: str


@click.command(cls=WaitCommand)
@click.argument("log", metavar="LOG")
@click.option(
    "--health",
    metavar="URL",
    help="Ask this URL too; any 2xx counts, the body does not. Also unix:/run/x.sock:/health.",
)
@click.option(
    "--health-token-env",
    "token_env",
    metavar="NAME",
    help="The environment variable that holds the bearer token for the health URL.",
)
@click.option("--health-ca", "ca_file", metavar="FILE", help="Trust these certificates.")
@click.option("--health-insecure", "insecure", is_flag=True, help="Trust any certificate.")
@click.option("--pid", type=click.IntRange(min=1), metavar="N", help="The server's process.")
@click.option("--pid-file", metavar="FILE", help="A file that holds the pid; it may come later.")
@click.option("--unit", metavar="NAME", help="The server's systemd unit.")
@click.option(
    "--until",
    type=click.Choice(GOALS),
    default="ready",
    show_default=True,
    help="What to wait for.",
)
@click.option(
    "--timeout",
    type=DURATION,
    default="15m",
    show_default=True,
    help="The hard limit, whatever still moves.",
)
@click.option(
    "--stall",
    type=DURATION,
    help="How long nothing may advance; compile (45m) and graph-capture (15m) keep a longer limit."
    "  [default: 5m]",
)
@click.option(
    "--settle",
    type=DURATION,
    default="0s",
    show_default=True,
    help="How long ready must hold before it counts.",
)
@click.option(
    "--tolerate",
    type=click.IntRange(min=0),
    metavar="N",
    help="Give up only after more than N crashes.  [default: at a crash that nothing follows, or "
    "at a crash loop]",
)
@click.option(
    "--ready-on-line",
    "ready_line",
    type=Pattern(),
    metavar="REGEX",
    help="A line that says ready, for a server that is not known.",
)
@click.option(
    "--fail-on-line",
    "fail_line",
    type=Pattern(),
    metavar="REGEX",
    help="A line that says that it is hopeless.",
)
@click.option(
    "--interval",
    type=DURATION,
    default="1s",
    show_default=True,
    help="How often to ask the health URL; the log is looked at all the time.",
)
@click.option("--since-now", is_flag=True, help="Do not read what the log holds already.")
@click.option("-q", "--quiet", is_flag=True, help="Print nothing: the exit code tells.")
@format_option("text", "json")
@output_options
@profile_option
def wait(
    log: str,
    form: str,
    output: str | None,
    color: str,
    profiles: tuple[str, ...],
    until: str,
    quiet: bool,
    **rest: object,
) -> int:
    """Return the moment that the server is ready, crashed, crash-looping or stalled, and say why.

    LOG is the file that its output goes to; it may not exist yet. - is standard input.
    """
    request = Request(log=log, until=State(until), quiet=quiet, color=color, **rest)  # type: ignore[arg-type]
    target = destination(output, color)
    known, forced = library.load(profiles)
    try:
        with _terminable(), ExitStack() as stack:
            run, watch = _prepare(request, known, forced, stack)
            decision = run.run()
    except Terminated:
        return ExitCode.TERMINATED
    code = _codes()[decision.ending.value]
    _tell(decision, watch, form, request, target, code)
    return code


def _codes() -> dict[str, ExitCode]:
    from loopdetect.live.judge import Ending

    return {
        Ending.REACHED: ExitCode.OK,
        Ending.CRASHED: ExitCode.FINDING,
        Ending.STOPPED: ExitCode.FINDING,
        Ending.CRASH_LOOPING: ExitCode.LOOPING,
        Ending.STALLED: ExitCode.STALLED,
        Ending.TIME_LIMIT: ExitCode.TIME_LIMIT,
        Ending.UNDECIDED: ExitCode.UNDECIDED,
    }


def _prepare(
    request: Request, known: Library, forced: str | None, stack: ExitStack
) -> tuple[Wait, LogWatch]:
    # The last words are imported before they are needed: the answer should not be late for them.
    import loopdetect.live.closing  # noqa: F401
    from loopdetect.core.detector import Detector
    from loopdetect.live.judge import Terms
    from loopdetect.live.log_watch import LogWatch
    from loopdetect.live.loop import RealClock, Wait
    from loopdetect.live.patterns import LinePatterns
    from loopdetect.live.tail import open_tail
    from loopdetect.probe.background import Background

    clock = RealClock()
    called = clock.now()
    policy: Policy = make_policy(None, None, request.stall)
    detector = Detector(known, policy, source=request.log, profile=forced)
    watch = LogWatch(detector, policy, LinePatterns(request.ready_line, request.fail_line), called)
    process = _process_probe(request)
    health_look = process_look = None
    if process is not None:
        pace = UNIT_INTERVAL_S if request.unit else PROCESS_INTERVAL_S
        process_look = stack.enter_context(Background(process, pace)).latest
    if request.health is not None:
        from loopdetect.probe.http_probe import HttpProbe, target_of
        from loopdetect.probe.process_probe import owner_of

        probe = HttpProbe(
            target_of(request.health),
            token=_token(request.token_env),
            ca_file=_readable(request.ca_file),
            verify=not request.insecure,
            owner=lambda port: owner_of(port, process),
        )
        health_look = stack.enter_context(Background(probe, max(request.interval, 0.05))).latest
    tail = open_tail(request.log, skip_present=request.since_now)
    stack.callback(tail.close)
    display = _display(request)
    stack.callback(display.close)
    terms = Terms(request.until, request.timeout, request.settle, request.tolerate)
    history = request.log != "-"
    return (
        Wait(tail, watch, terms, display, clock, called, health_look, process_look, history),
        watch,
    )


def _process_probe(request: Request) -> ProcessProbe | None:
    given = [
        name
        for name, value in (
            ("--pid", request.pid),
            ("--pid-file", request.pid_file),
            ("--unit", request.unit),
        )
        if value is not None
    ]
    if len(given) > 1:
        raise UsageProblem(f"{' and '.join(given)} cannot go together", "give one of them")
    if request.pid is not None:
        from loopdetect.probe.process_probe import PidProbe

        return PidProbe(request.pid)
    if request.pid_file is not None:
        from loopdetect.probe.process_probe import PidFileProbe

        return PidFileProbe(request.pid_file)
    if request.unit is not None:
        from loopdetect.probe.unit_probe import UnitProbe

        return UnitProbe(request.unit)
    return None


def _token(name: str | None) -> str | None:
    if name is None:
        return None
    token = os.environ.get(name, "").strip()
    if not token:
        raise UsageProblem(
            f"--health-token-env: the variable {name} is not set", "export it, or leave it out"
        )
    return token


def _readable(path: str | None) -> str | None:
    if path is not None and not os.path.isfile(path):
        raise UsageProblem(f"--health-ca: {path}: no such file", "check the path")
    return path


def _display(request: Request) -> Display:
    from loopdetect.live.plain import Plain, Silent

    if request.quiet:
        return Silent()
    if sys.stderr.isatty() and os.environ.get("TERM") not in (None, "", "dumb"):
        from loopdetect.live.display import LiveDisplay

        color = wants_color(request.color, os.environ, True)
        return LiveDisplay(sys.stderr, request.log, color)
    return Plain(_to_stderr)


def _to_stderr(text: str) -> None:
    encoding = sys.stderr.encoding or "utf-8"
    sys.stderr.write(text.encode(encoding, "backslashreplace").decode(encoding))
    sys.stderr.flush()


def _tell(
    decision: Decision,
    watch: LogWatch,
    form: str,
    request: Request,
    target: Destination,
    code: int,
) -> None:
    from loopdetect.live import closing

    if form == "json":
        reports = closing.final_reports(decision, watch)
        document = json.loads(renderer("json")(reports, RenderOptions()))
        document["wait"] = closing.wait_object(decision, watch, code)
        write(json_safe(json.dumps(document, ensure_ascii=False, indent=2)) + "\n", target)
    elif not request.quiet or target.path:
        paint = painter(target.color)
        lines = closing.closing_lines(decision, watch, request.log, paint, target.width)
        write("".join(f"{line}\n" for line in lines), target)


@contextmanager
def _terminable() -> Iterator[None]:
    """Let SIGTERM end the wait in good order."""

    def leave(number: int, frame: FrameType | None) -> None:
        raise Terminated

    before = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
