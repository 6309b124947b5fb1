"""A server as a child: in a session of its own, so that a closed terminal does not end it.

It is its own process group too: a signal to the group reaches its workers as well, and nothing that
holds a GPU is left behind when the server itself is gone.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from typing import Final

from loopdetect.core.fusion import Process
from loopdetect.errors import UsageProblem
from loopdetect.model import Exit
from loopdetect.probe.seen import ProcessSeen
from loopdetect.probe.writers import PROC, started_at
from loopdetect.render.duration import spoken

STEP_S: Final = 0.05
# Workers that outlive the server have no reason to take their time.
REST_GRACE_S: Final = 2.0
# Who ends so was asked to; a shell adds 128 to the number of its child's signal.
ASKED: Final = frozenset({signal.SIGHUP, signal.SIGINT, signal.SIGTERM})
SHELL_BASE: Final = 128


def check_command(name: str) -> None:
    """Raise UsageProblem if there is no such program that can be run."""
    if shutil.which(name) is not None:
        return
    found = name if os.sep in name else shutil.which(name, os.F_OK)
    if found is None or not os.path.exists(found):
        raise UsageProblem(f"{name}: no such command", "check its name and PATH")
    if os.path.isdir(found):
        raise UsageProblem(f"{name}: this is a folder, not a command", "give the program in it")
    raise UsageProblem(f"{name}: it is not executable", f"run chmod +x {found}, or name its shell")


class Child:
    """One command; a process probe too."""

    def __init__(self, command: Sequence[str]) -> None:
        self._command = tuple(command)
        self._process: subprocess.Popen[bytes] | None = None
        self._started: float | None = None

    def start(self, output: int) -> None:
        """Start it, both its outputs going to the handle `output`; raises UsageProblem."""
        name = self._command[0]
        try:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        except FileNotFoundError as problem:
            raise UsageProblem(
                f"{name}: the interpreter that its first line names is not there",
                "mend the first line, or name the interpreter in the command",
            ) from problem
        except (OSError, ValueError) as problem:
            what = getattr(problem, "strerror", None) or str(problem)
            raise UsageProblem(
                f"{name}: cannot be started: {what}", "check the command"
            ) from problem
        self._started = started_at(self._process.pid)

    @property
    def pid(self) -> int | None:
        """Its number, None before it is started."""
        return self._process.pid if self._process else None

    @property
    def alive(self) -> bool:
        """True from its start to its end."""
        return self._process is not None and self._process.poll() is None

    @property
    def exit(self) -> Exit:
        """How it left, empty while it lives."""
        code = self._process.poll() if self._process else None
        if code is None or code >= 0:
            return Exit(code)
        return Exit(signal=_signal_name(-code))

    def __call__(self) -> ProcessSeen:
        """Return whether it lives, and how it left."""
        code = self._process.poll() if self._process else None
        if self._process is None:
            return ProcessSeen(Process.UNKNOWN, "not started yet")
        pid = self._process.pid
        if code is None:
            return ProcessSeen(Process.ALIVE, f"process {pid} lives", pid, started=self._started)
        asked = code == 0 or -code in ASKED or code - SHELL_BASE in ASKED
        kind = Process.STOPPED if asked else Process.GONE
        text = f"process {pid} {left(code)}"
        return ProcessSeen(kind, text, pid, started=self._started, exit=self.exit)

    def send(self, number: int) -> None:
        """Send a signal to it and its workers; nothing happens if there is none."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, number)

    def stop(
        self, number: int, grace: float, hurry: Callable[[], bool], meanwhile: Callable[[], object]
    ) -> str:
        """End it and its workers, in the end by force, and return in words how that went.

        `hurry` cuts the time of grace (in seconds) short; `meanwhile` is called while it lasts.
        """
        if self._process is None:
            return ""
        began = time.monotonic()
        lived = self.alive
        self.send(number)
        end = began + grace
        while self.alive and time.monotonic() < end and not hurry():
            meanwhile()
            time.sleep(STEP_S)
        if not self.alive:
            end = min(end, time.monotonic() + REST_GRACE_S)
        while group_lives(self._process.pid) and time.monotonic() < end and not hurry():
            time.sleep(STEP_S)
        forced = group_lives(self._process.pid)
        if forced:
            self.send(signal.SIGKILL)
        code = self._process.wait()
        meanwhile()
        sent = _signal_name(number) + (" and SIGKILL" if forced else "")
        if not lived:
            return f"its workers got {sent}" if forced else ""
        took = spoken(time.monotonic() - began)
        return f"process {self._process.pid} got {sent} and {left(code)} after {took}"


def left(code: int) -> str:
    """Return how a process left, by the number that Popen has for it."""
    if code >= 0:
        return f"exited with code {code}"
    return f"was killed by signal {-code} ({_signal_name(-code)})"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"SIG{number}"


def group_lives(group: int) -> bool:
    """True while the process group holds a process that is more than a zombie."""
    try:
        os.killpg(group, 0)
        pids = [name for name in os.listdir(PROC) if name.isdigit()]
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return any(_group_of(pid) == group for pid in pids)


def _group_of(pid: str) -> int | None:
    try:
        with open(f"{PROC}/{pid}/stat", "rb") as file:
            state, _, group = file.read().rpartition(b")")[2].split()[:3]
    except (OSError, ValueError):
        return None
    return None if state in (b"Z", b"X") else int(group)
