"""`loopdetect run`: start a server, wait for it, and leave it running or stay with it."""

from __future__ import annotations

import os
import signal
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import click

from loopdetect.cli import library
from loopdetect.cli.exit_codes import ExitCode
from loopdetect.cli.options import format_option, output_options, profile_option
from loopdetect.cli.output import Destination, destination
from loopdetect.cli.params import DURATION
from loopdetect.cli.wait_options import WaitCommand, goal_options, health_options
from loopdetect.cli.wait_session import (
    Addition,
    Evidence,
    Request,
    assemble,
    code_of,
    display_of,
    tell,
    to_stderr,
)
from loopdetect.errors import UsageProblem
from loopdetect.model import State
from loopdetect.render.duration import spoken
from loopdetect.render.width import cut

if TYPE_CHECKING:
    from loopdetect.launch.child import Child
    from loopdetect.launch.interrupts import Interrupts
    from loopdetect.launch.output import Output, PassedOn
    from loopdetect.live.judge import Decision
    from loopdetect.live.loop import Wait

# Who stops at once needs no word that it is waited for.
PATIENCE_S: Final = 1.0
LONGEST_LINE: Final = 300


@dataclass(frozen=True, slots=True)
class Care:
    """What becomes of the server: `grace` is in seconds, between SIGTERM and SIGKILL."""

    stay: bool
    leave: bool
    grace: float


@click.command(
    cls=WaitCommand,
    context_settings={"allow_interspersed_args": False},
    options_metavar="[OPTIONS] [--]",
)
@click.argument("command", metavar="CMD...", nargs=-1, required=True, type=click.UNPROCESSED)
@click.option(
    "--log",
    "path",
    metavar="FILE",
    help="Append the server's output to FILE. Without it the output is passed on to standard error, "
    "and goes to a new file too, which the last lines name; with --stay to none.",
)
@click.option("--stay", is_flag=True, help="Stay until the server ends, and tell how.")
@click.option("--leave", is_flag=True, help="Let the server run on when the waiting gives up.")
@click.option(
    "--grace",
    type=DURATION,
    default="10s",
    show_default=True,
    help="How long the server may take to stop before it is killed.",
)
@health_options
@goal_options
@click.option("--since-now", is_flag=True, help="Do not read what FILE holds already.")
@click.option("-q", "--quiet", is_flag=True, help="Say nothing of its own: the exit code tells.")
@format_option("text", "json")
@output_options
@profile_option
def run(
    command: tuple[str, ...],
    path: str | None,
    stay: bool,
    leave: bool,
    grace: float,
    since_now: bool,
    form: str,
    output: str | None,
    color: str,
    profiles: tuple[str, ...],
    until: str,
    **rest: Any,
) -> int:
    """Start a server, return the moment that it is ready or will never be, and say why.

    A server that is ready is left running, in a session of its own: neither the end of this command
    nor a closed terminal ends it. One that crashed, stalls or takes too long is stopped with all that
    it started (SIGTERM, then SIGKILL), unless --leave says otherwise. Ctrl-C and SIGTERM are passed
    on to it.

    With --stay the exit code is that of its end: 0 if it was stopped after it was ready, 1 if it crashed.
    """
    from loopdetect.launch.child import Child, check_command
    from loopdetect.launch.interrupts import LEAVING, Interrupted, Interrupts

    check_command(command[0])
    care = Care(stay, leave, grace)
    quiet = bool(rest["quiet"])
    target = destination(output, color)
    known, forced = library.load(profiles)
    # A closed terminal ends us, and only who stays takes the server along.
    numbers = (*LEAVING, signal.SIGHUP) if stay else LEAVING
    child = Child(command)
    with ExitStack() as stack, Interrupts(*numbers) as signals:
        place = _place(path, os.path.basename(command[0]), care, quiet, since_now)
        stack.callback(lambda: place.close(used=child.pid is not None))
        name = place.path or os.path.basename(command[0])
        request = Request(log=name, until=State(until), color=color, **rest)
        evidence = _evidence(child, place, request)
        wait = assemble(request, known, forced, evidence, stack)
        stack.callback(lambda: wait.display.close())
        session = Session(child, place, request, care, form, target, wait, signals)
        try:
            return session.run()
        except Interrupted as problem:
            asked = signal.SIGTERM if problem.number == signal.SIGHUP else problem.number
            session.stop(asked)
            return ExitCode.INTERRUPTED if problem.number == signal.SIGINT else ExitCode.TERMINATED
        except BaseException:
            session.stop(signal.SIGTERM)
            raise


def _place(path: str | None, name: str, care: Care, quiet: bool, since_now: bool) -> Output:
    """Open what the server writes to."""
    from loopdetect.launch import output

    if path == "-":
        raise UsageProblem("--log: - is not a file", "leave --log out to see the output here")
    if path is not None:
        return output.to_file(path, skip_present=since_now)
    if not care.stay:
        if quiet:
            raise UsageProblem(
                "--quiet without --log: nobody would know where the output is", "give --log FILE"
            )
        return output.to_new_file(name)
    if care.leave:
        raise UsageProblem(
            "--stay --leave: without us nobody would read the output", "give --log FILE too"
        )
    return output.to_pipe(name)


def _evidence(child: Child, place: Output, request: Request) -> Evidence:
    from loopdetect.launch.output import PassedOn
    from loopdetect.live.loop import RealClock
    from loopdetect.live.plain import Plain

    tail, display = place.tail, None
    if isinstance(tail, PassedOn) and not request.quiet:
        display = Plain(lambda text: to_stderr(tail.own_line(f"loopdetect: {text}")))
    history = place.path is not None
    return Evidence(tail, RealClock(), child, lambda: (1, child()), history, display, own=True)


@dataclass(slots=True)
class Session:
    """One server from its start until we leave it."""

    child: Child
    place: Output
    request: Request
    care: Care
    form: str
    target: Destination
    wait: Wait
    signals: Interrupts
    _held: int = field(default=0, init=False)

    def run(self) -> int:
        """Start it, wait, and return the exit code; raises LoopdetectError, Interrupted."""
        from loopdetect.launch.staying import stay
        from loopdetect.live.judge import Ending, Judge

        with self.signals.let_in():
            self._read_history()
        self.child.start(self.place.handle)
        with self.signals.let_in():
            decision = self.wait.go_on(Judge(self.wait.terms, self.wait.called))
        self.wait.display.close()
        reached = decision.ending is Ending.REACHED
        if not (reached and self.care.stay and self.child.alive):
            return self._leave(decision, code_of(decision), reached)
        if self.form == "text" or self.target.path:
            staying = f"staying with process {self.child.pid}"
            self._tell(decision, code_of(decision), (staying,))
        with self.signals.let_in():
            if not self._passing_on:
                self.wait.display = display_of(self.request)
            decision = stay(self.wait, self.child)
        self.wait.display.close()
        clean = decision.ending is Ending.STOPPED
        return self._leave(decision, ExitCode.OK if clean else code_of(decision), False)

    def stop(self, number: int) -> str:
        """End the server with all that it started, and return in words how that went."""
        self.wait.display.close()
        came, began, said = self.signals.count, self.wait.clock.now(), False

        def meanwhile() -> None:
            nonlocal said
            if self._passing_on is not None:
                self._passing_on.drain()
            if not said and self.wait.clock.now() - began > PATIENCE_S and not self.request.quiet:
                said = True
                self._say(f"waiting up to {spoken(self.care.grace)} for process {self.child.pid}")

        return self.child.stop(
            number, self.care.grace, lambda: self.signals.count > came, meanwhile
        )

    def _read_history(self) -> None:
        """Read what earlier servers left in the log, and draw a line under it."""
        path = self.place.path
        if path is None:
            self.wait.begin()
            return
        self.wait.log.next_file(path)
        self.wait.begin()
        self._held = os.path.getsize(path)
        if self._held:
            self.wait.log.next_file(path, restarted=True)

    def _leave(self, decision: Decision, code: int, reached: bool) -> int:
        """Stop the server or let it go on, and tell."""
        pid, alive = self.child.pid, self.child.alive
        if alive and reached:
            done = f"left running: process {pid}"
        elif alive and self.care.leave:
            done = f"left running, as --leave asks: process {pid}"
        else:
            done = "" if self.care.leave else self.stop(signal.SIGTERM)
        if self.child.alive and self.place.path:
            done += f"; its output goes to {self.place.path}"
        self._tell(decision, code, (*self._last_words(decision), *([done] if done else [])))
        return code

    def _last_words(self, decision: Decision) -> list[str]:
        """Return the last lines of a server that ended without a word that is understood."""
        from loopdetect.core.fusion import Log
        from loopdetect.launch.output import last_words
        from loopdetect.live.closing import cause_of
        from loopdetect.live.judge import Ending

        told = decision.seen.log.log is Log.STOPPED or cause_of(decision) is not None
        ended = decision.ending in (Ending.CRASHED, Ending.STOPPED)
        if told or not ended or self._passing_on or not self.place.path:
            return []
        words = last_words(self.place.path, self._held)
        return (
            ["its last lines:", *(f"  {cut(line, LONGEST_LINE)}" for line in words)]
            if words
            else []
        )

    def _tell(self, decision: Decision, code: int, lines: tuple[str, ...]) -> None:
        left = self.child.exit
        facts = {
            "pid": self.child.pid,
            "log": self.place.path,
            "running": self.child.alive,
            "exit_code": left.code,
            "signal": left.signal,
        }
        addition = Addition(lines, {"child": facts})
        tell(decision, self.wait.log, self.form, self.request, self.target, code, addition)

    def _say(self, text: str) -> None:
        line = f"loopdetect: {text}\n"
        to_stderr(self._passing_on.own_line(line) if self._passing_on else line)

    @property
    def _passing_on(self) -> PassedOn | None:
        from loopdetect.launch.output import PassedOn

        return self.place.tail if isinstance(self.place.tail, PassedOn) else None
