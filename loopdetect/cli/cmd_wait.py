"""`loopdetect wait`: the end of the polling loop."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Final

import click

from loopdetect.cli import library
from loopdetect.cli.exit_codes import ExitCode
from loopdetect.cli.options import format_option, output_options, profile_option
from loopdetect.cli.output import destination
from loopdetect.cli.termination import Terminated, terminable
from loopdetect.cli.wait_options import WaitCommand, goal_options, health_options
from loopdetect.cli.wait_remote import Distant, distant_evidence, ssh_options
from loopdetect.cli.wait_session import Evidence, Request, assemble, code_of, tell
from loopdetect.errors import UsageProblem
from loopdetect.model import State

if TYPE_CHECKING:
    from loopdetect.probe.seen import ProcessProbe
    from loopdetect.remote.place import Place

PROCESS_INTERVAL_S: Final = 0.25
UNIT_INTERVAL_S: Final = 1.0


@click.command(cls=WaitCommand)
@click.argument("log", metavar="LOG")
@health_options
@click.option("--pid", type=click.IntRange(min=1), metavar="N", help="The server's process.")
@click.option("--pid-file", metavar="FILE", help="A file that holds the pid; it may come later.")
@click.option("--unit", metavar="NAME", help="The server's systemd unit.")
@ssh_options
@goal_options
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
    pid: int | None,
    pid_file: str | None,
    unit: str | None,
    host: str | None,
    ssh_command: str,
    since_now: bool,
    **rest: Any,
) -> int:
    """Return the moment that the server is ready, crashed, crash-looping or stalled, and say why.

    LOG is the file that its output goes to; it may not exist yet. - is standard input.
    """
    place = _place_of(log, host)
    log = place.title if place else log
    request = Request(log=log, until=State(until), color=color, **rest)
    target = destination(output, color)
    known, forced = library.load(profiles)
    try:
        with terminable(), ExitStack() as stack:
            if place is not None:
                options = Distant(place, ssh_command, request.health, pid, pid_file, unit)
                evidence = distant_evidence(
                    options, since_now=since_now, timeout=request.timeout, stack=stack
                )
            else:
                process = _process_probe(pid, pid_file, unit)
                pace = UNIT_INTERVAL_S if unit else PROCESS_INTERVAL_S
                evidence = _evidence(log, process, pace, since_now, stack)
            run = assemble(request, known, forced, evidence, stack)
            decision = run.run()
    except Terminated:
        return ExitCode.TERMINATED
    code = code_of(decision)
    tell(decision, run.log, form, request, target, code)
    return code


def _place_of(log: str, host: str | None) -> Place | None:
    if host is None and "://" not in log:
        return None
    from loopdetect.remote.place import place_of

    return place_of(log, host)


def _evidence(
    log: str, process: ProcessProbe | None, pace: float, since_now: bool, stack: ExitStack
) -> Evidence:
    from loopdetect.live.loop import RealClock
    from loopdetect.live.tail import open_tail
    from loopdetect.probe.background import Background

    look = None
    if process is not None:
        look = stack.enter_context(Background(process, pace)).latest
    tail = open_tail(log, skip_present=since_now)
    stack.callback(tail.close)
    return Evidence(tail, RealClock(), process, look, history=log != "-")


def _process_probe(pid: int | None, pid_file: str | None, unit: str | None) -> ProcessProbe | None:
    options = {"--pid": pid, "--pid-file": pid_file, "--unit": unit}
    given = [name for name, value in options.items() if value is not None]
    if len(given) > 1:
        raise UsageProblem(f"{' and '.join(given)} cannot go together", "give one of them")
    if pid is not None:
        from loopdetect.probe.process_probe import PidProbe

        return PidProbe(pid)
    if pid_file is not None:
        from loopdetect.probe.process_probe import PidFileProbe

        return PidFileProbe(pid_file)
    if unit is not None:
        from loopdetect.probe.unit_probe import UnitProbe

        return UnitProbe(unit)
    return None
