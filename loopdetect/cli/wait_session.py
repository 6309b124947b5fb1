"""What `wait` and `run` do alike: make a wait of the options, show it, tell what it came to."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from loopdetect.cli.exit_codes import ExitCode
from loopdetect.cli.output import Destination, wants_color, write
from loopdetect.cli.policy import make_policy
from loopdetect.errors import UsageProblem
from loopdetect.model import State
from loopdetect.render import RenderOptions, renderer
from loopdetect.render.escape import json_safe, visible
from loopdetect.render.paint import painter
from loopdetect.render.width import wrap

if TYPE_CHECKING:
    from loopdetect.cli.wait_remote import Remote
    from loopdetect.core.fusion import Writer
    from loopdetect.live.judge import Decision
    from loopdetect.live.log_watch import LogWatch
    from loopdetect.live.loop import Clock, ProcessLook, Wait
    from loopdetect.live.status import Display
    from loopdetect.live.tail import Tail
    from loopdetect.probe.seen import HealthProbe, ProcessProbe
    from loopdetect.profiles import Library


@dataclass(frozen=True, slots=True)
class Request:
    """What the command line asks for; `log` is the name that is shown, times are in seconds."""

    log: str
    health: str | None
    token_env: str | None
    ca_file: str | None
    insecure: bool
    until: State
    timeout: float
    stall: float | None
    settle: float
    tolerate: int | None
    interval: float
    ready_line: re.Pattern[str] | None
    fail_line: re.Pattern[str] | None
    quiet: bool
    color: str


@dataclass(frozen=True, slots=True)
class Evidence:
    """Where a wait looks: the log, and the process if one is known, itself and its newest look."""

    tail: Tail
    clock: Clock
    process: ProcessProbe | None = None
    look: ProcessLook | None = None
    history: bool = True
    display: Display | None = None
    own: bool = False
    remote: Remote | None = None


@dataclass(frozen=True, slots=True)
class Addition:
    """What is told besides: lines of the text, and keys of the JSON document."""

    lines: tuple[str, ...] = ()
    keys: Mapping[str, object] = field(default_factory=dict)


def assemble(
    request: Request,
    known: Library,
    forced: str | None,
    evidence: Evidence,
    stack: ExitStack,
) -> Wait:
    """Return the wait that was asked for; what it holds open is closed with `stack`.

    Raises UsageProblem.
    """
    # The last words are imported before they are needed: the answer should not be late for them.
    import loopdetect.live.closing  # noqa: F401
    from loopdetect.core.detector import Detector
    from loopdetect.live.judge import Terms
    from loopdetect.live.log_watch import LogWatch
    from loopdetect.live.loop import Wait
    from loopdetect.live.patterns import LinePatterns

    remote = evidence.remote
    called = remote.called if remote else evidence.clock.now()
    policy = make_policy(None, None, request.stall)
    detector = Detector(known, policy, source=request.log, profile=forced)
    watch = LogWatch(detector, policy, LinePatterns(request.ready_line, request.fail_line), called)
    health_look = None
    if request.health is not None:
        from loopdetect.probe.background import Background

        probe = _health_probe(request, request.health, evidence)
        health_look = stack.enter_context(Background(probe, max(request.interval, 0.05))).latest
    display = evidence.display or display_of(request)
    stack.callback(display.close)
    made = Wait(
        evidence.tail,
        watch,
        Terms(request.until, request.timeout, request.settle, request.tolerate),
        display,
        evidence.clock,
        called,
        health_look,
        evidence.look,
        evidence.history,
        own=evidence.own,
    )
    if remote is not None:
        made.out_of_reach, made.writers = remote.link.out_of_reach, _unseen
    return made


def _unseen(name: str, modified: float) -> Writer:
    """Who has a log open on another machine cannot be seen from here."""
    from loopdetect.core.fusion import Writer

    return Writer.UNKNOWN


def _health_probe(request: Request, url: str, evidence: Evidence) -> HealthProbe:
    from loopdetect.probe.http_probe import HttpProbe, target_of
    from loopdetect.probe.process_probe import owner_of

    token, ca_file = _token(request.token_env), _readable(request.ca_file)
    if evidence.remote is not None:
        return evidence.remote.health_probe(token, ca_file, not request.insecure)
    return HttpProbe(
        target_of(url),
        token=token,
        ca_file=ca_file,
        verify=not request.insecure,
        owner=lambda port: owner_of(port, evidence.process),
    )


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


def display_of(request: Request) -> Display:
    """Return what shows the wait: a drawing on a terminal, else lines, or nothing if quiet."""
    from loopdetect.live.plain import Plain, Silent

    if request.quiet:
        return Silent()
    if sys.stderr.isatty() and os.environ.get("TERM") not in (None, "", "dumb"):
        from loopdetect.live.display import LiveDisplay

        color = wants_color(request.color, os.environ, True)
        return LiveDisplay(sys.stderr, request.log, color)
    return Plain(to_stderr)


def to_stderr(text: str) -> None:
    """Write at once, whatever the encoding of standard error."""
    encoding = sys.stderr.encoding or "utf-8"
    sys.stderr.write(text.encode(encoding, "backslashreplace").decode(encoding))
    sys.stderr.flush()


def code_of(decision: Decision) -> ExitCode:
    """Return the exit code of what a wait came to."""
    from loopdetect.live.judge import Ending

    return {
        Ending.REACHED: ExitCode.OK,
        Ending.CRASHED: ExitCode.FINDING,
        Ending.STOPPED: ExitCode.FINDING,
        Ending.CRASH_LOOPING: ExitCode.LOOPING,
        Ending.STALLED: ExitCode.STALLED,
        Ending.TIME_LIMIT: ExitCode.TIME_LIMIT,
        Ending.UNDECIDED: ExitCode.UNDECIDED,
    }[decision.ending]


def tell(
    decision: Decision,
    watch: LogWatch,
    form: str,
    request: Request,
    target: Destination,
    code: int,
    addition: Addition = Addition(),
) -> None:
    """Write what the wait came to."""
    from loopdetect.live import closing

    if form == "json":
        reports = closing.final_reports(decision, watch)
        document = json.loads(renderer("json")(reports, RenderOptions()))
        document["wait"] = closing.wait_object(decision, watch, code)
        document.update(addition.keys)
        write(json_safe(json.dumps(document, ensure_ascii=False, indent=2)) + "\n", target)
    elif not request.quiet or target.path:
        paint = painter(target.color)
        lines = [*closing.closing_lines(decision, watch, request.log, paint, target.width)]
        for line in addition.lines:
            lines += wrap(visible(line), target.width, "  ")
        write("".join(f"{line}\n" for line in lines), target)
