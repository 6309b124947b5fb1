"""What systemd says of a unit, through the user's own `systemctl`."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Mapping
from typing import Final

from loopdetect.core.fusion import Process
from loopdetect.errors import UsageProblem
from loopdetect.probe.seen import ProcessSeen

PROPERTIES: Final = "LoadState,ActiveState,SubState,Result,MainPID"
TIMEOUT_S: Final = 5.0
MANAGERS: Final = ((), ("--user",))

# ActiveState and SubState, SubState empty for any -> what it means.
STATES: Final = {
    ("activating", "auto-restart"): Process.RESTARTING,
    ("activating", ""): Process.ALIVE,
    ("active", "exited"): Process.STOPPED,
    ("active", ""): Process.ALIVE,
    ("reloading", ""): Process.ALIVE,
    ("deactivating", ""): Process.ALIVE,
    ("failed", ""): Process.GONE,
    ("inactive", ""): Process.STOPPED,
}

Ask = Callable[[str, tuple[str, ...]], Mapping[str, str]]


def ask_systemctl(unit: str, manager: tuple[str, ...]) -> Mapping[str, str]:
    """Return the unit's properties, none where systemd cannot be asked."""
    command = ["systemctl", *manager, "show", f"--property={PROPERTIES}", "--", unit]
    try:
        done = subprocess.run(
            command, capture_output=True, timeout=TIMEOUT_S, check=False, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.TimeoutExpired):
        return {}
    lines = done.stdout.decode("utf-8", "replace").splitlines()
    return dict(line.split("=", 1) for line in lines if "=" in line)


class UnitProbe:
    """Watches one unit of the system's manager, or of the user's where that one knows it."""

    def __init__(self, unit: str, ask: Ask = ask_systemctl) -> None:
        self._unit = unit
        self._ask = ask
        self._manager = self._find()
        self._ran = False

    def _find(self) -> tuple[str, ...]:
        if self._ask is ask_systemctl and shutil.which("systemctl") is None:
            raise UsageProblem("--unit: there is no systemctl here", "use --pid or --pid-file")
        answers = {manager: self._ask(self._unit, manager) for manager in MANAGERS}
        for manager, found in answers.items():
            if found.get("LoadState") not in (None, "not-found"):
                return manager
        if any(answers.values()):
            raise UsageProblem(
                f"--unit: systemd knows no unit {self._unit!r}", "see systemctl list-units"
            )
        raise UsageProblem("--unit: systemd does not answer here", "use --pid or --pid-file")

    def __call__(self) -> ProcessSeen:
        """Return what systemd says just now."""
        said = self._ask(self._unit, self._manager)
        active, sub = said.get("ActiveState", ""), said.get("SubState", "")
        found = STATES.get((active, sub)) or STATES.get((active, ""))
        if found is None:
            return ProcessSeen(Process.UNKNOWN, "systemd does not answer")
        pid = _number(said.get("MainPID")) or None
        text = f"unit {self._unit} is {active} ({sub})"
        if found is Process.GONE:
            text += f", result {said.get('Result', '?')}"
            if said.get("Result") == "start-limit-hit":
                found = Process.GAVE_UP
        if found is Process.STOPPED and not self._ran:
            return ProcessSeen(Process.UNKNOWN, f"{text}: not started yet", pid)
        self._ran = self._ran or found in (Process.ALIVE, Process.RESTARTING)
        return ProcessSeen(found, text, pid)


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isdigit() else None
