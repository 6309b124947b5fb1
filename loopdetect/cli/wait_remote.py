"""`--ssh`: what a wait looks at, as another machine sees it."""

from __future__ import annotations

import os
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from loopdetect.errors import UsageProblem

if TYPE_CHECKING:
    from collections.abc import Callable

    from loopdetect.cli.wait_session import Evidence
    from loopdetect.probe.seen import HealthProbe
    from loopdetect.remote.health import Forward
    from loopdetect.remote.link import Link
    from loopdetect.remote.place import Place

Command = TypeVar("Command", bound="Callable[..., Any]")
# The path of a socket may have about a hundred bytes, and ssh adds some for a moment.
LONGEST_FOLDER: Final = 60
SHORT_FOLDER: Final = "/tmp"


@dataclass(frozen=True, slots=True)
class Remote:
    """The way to the host: the link, the forwarded port, and when the command was called."""

    link: Link
    forward: Forward | None
    called: float

    def health_probe(self, token: str | None, ca_file: str | None, verify: bool) -> HealthProbe:
        """Return what asks the health URL on the host."""
        assert self.forward is not None
        return self.forward.probe(token, ca_file, verify, self.link)


def ssh_options(command: Command) -> Command:
    """`--ssh` and what belongs to it."""
    command = click.option(
        "--ssh-command",
        metavar="COMMAND",
        default="ssh",
        show_default=True,
        help="How to call ssh, such as 'ssh -F file'.",
    )(command)
    return click.option(
        "--ssh",
        "host",
        metavar="HOST",
        help="LOG, the health URL and the pid are those of this host; also as a log: "
        "ssh://user@host:22/path.",
    )(command)


@dataclass(frozen=True, slots=True)
class Distant:
    """What is asked of another machine."""

    place: Place
    ssh_command: str
    health: str | None
    pid: int | None
    pid_file: str | None
    unit: str | None


def distant_evidence(
    wanted: Distant, *, since_now: bool, timeout: float, stack: ExitStack
) -> Evidence:
    """Reach the host; what is held open is closed with `stack`.

    Raises UsageProblem, and SourceError if the host cannot be reached.
    """
    from loopdetect.cli.wait_session import Evidence
    from loopdetect.live.loop import RealClock
    from loopdetect.remote.follow import RemoteFile
    from loopdetect.remote.health import Forward
    from loopdetect.remote.link import Link
    from loopdetect.remote.process import RemoteProcess
    from loopdetect.remote.session import Caller

    class CalledClock(RealClock):
        """The command was called before the host was reached, which may take a while."""

        def __init__(self) -> None:
            self._called_at = super().called_at()

        def called_at(self) -> float:
            return self._called_at

    clock = CalledClock()
    called = clock.now()
    _refuse(wanted)
    process = None
    if wanted.pid is not None or wanted.pid_file is not None:
        process = RemoteProcess(wanted.pid, wanted.pid_file)
    forward = None
    if wanted.health is not None:
        forward = Forward(wanted.health, os.path.join(_folder(stack), "health"))
    caller = Caller(
        _words(wanted.ssh_command),
        wanted.place.host,
        wanted.place.port,
        wanted.place.path,
        wanted.pid_file or "",
        forward.words if forward else None,
    )
    link = Link(caller, RemoteFile(wanted.place.title, skip_present=since_now), process)
    stack.callback(link.close)
    link.connect(timeout)
    look = link.process if process else None
    return Evidence(link, clock, look=look, remote=Remote(link, forward, called))


def _refuse(wanted: Distant) -> None:
    if wanted.unit is not None:
        raise UsageProblem(
            "--unit is asked on this machine and cannot go with --ssh",
            "give the --pid-file on the host, or run loopdetect there",
        )
    if wanted.pid is not None and wanted.pid_file is not None:
        raise UsageProblem("--pid and --pid-file cannot go together", "give one of them")


def _words(command: str) -> list[str]:
    import shlex

    try:
        words = shlex.split(command)
    except ValueError as problem:
        raise UsageProblem(f"--ssh-command: {problem}", "quote it as for a shell") from problem
    if not words:
        raise UsageProblem("--ssh-command is empty", "write it like 'ssh -F file'")
    return words


def _folder(stack: ExitStack) -> str:
    """Return a new folder of our own whose path is short enough for a socket in it."""
    import shutil
    import tempfile

    usual = tempfile.gettempdir()
    short = SHORT_FOLDER if len(usual) > LONGEST_FOLDER and os.path.isdir(SHORT_FOLDER) else usual
    folder = tempfile.mkdtemp(prefix="loopdetect-", dir=short)
    stack.callback(shutil.rmtree, folder, ignore_errors=True)
    return folder
