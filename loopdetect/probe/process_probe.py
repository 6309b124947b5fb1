"""Is a process alive? A pid alone is not enough: the system gives it to others later."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Final

from loopdetect.core.fusion import Port, Process
from loopdetect.probe.seen import ProcessProbe, ProcessSeen
from loopdetect.probe.writers import started_at

SAME_START_S: Final = 0.02

Born = Callable[[int], float | None]


class PidProbe:
    """Watches one process by pid and the time it was created."""

    def __init__(self, pid: int, born: Born | None = None, started: Born = started_at) -> None:
        """`born` and `started` tell when a process was created, the one on any clock at all."""
        self.pid = pid
        self._born = born or (lambda pid: created_at(pid))
        self._started = started
        self._created = self._born(pid)

    def __call__(self) -> ProcessSeen:
        """Return whether the process that had this pid at first still runs."""
        if self._created is None:
            text = f"there is no process {self.pid}"
            return ProcessSeen(Process.GONE, text, self.pid)
        now = self._born(self.pid)
        if now is None:
            return ProcessSeen(Process.GONE, f"process {self.pid} is gone", self.pid)
        if abs(now - self._created) > SAME_START_S:
            text = f"process {self.pid} is gone; its number belongs to another one now"
            return ProcessSeen(Process.GONE, text, self.pid)
        text = f"process {self.pid} lives"
        return ProcessSeen(Process.ALIVE, text, self.pid, started=self._started(self.pid))


class PidFileProbe:
    """Watches the process that a file names; the file may come later and change."""

    def __init__(
        self,
        path: str,
        read: Callable[[str], int | None] | None = None,
        watch: Callable[[int], PidProbe] = PidProbe,
    ) -> None:
        """`read` gives the number that the file holds, `watch` a probe of that process."""
        self._path = path
        self._read = read or pid_in
        self._watch = watch
        self._probe: PidProbe | None = None

    def __call__(self) -> ProcessSeen:
        """Return whether the process that the file names now runs."""
        return replace(self._look(), final=False)

    def _look(self) -> ProcessSeen:
        pid = self._read(self._path)
        if pid is None:
            if self._probe is not None:
                seen = self._probe()
                if seen.process is Process.ALIVE:
                    return seen
                return ProcessSeen(Process.GONE, f"{seen.text}, and so is its pid file", seen.pid)
            return ProcessSeen(Process.UNKNOWN, f"{self._path} holds no pid yet")
        if self._probe is None or self._probe.pid != pid:
            first = self._probe is None
            probe = self._watch(pid)
            seen = probe()
            # A file left over from an earlier life names nobody: its server is still to come.
            if first and seen.process is Process.GONE:
                return ProcessSeen(Process.UNKNOWN, f"{self._path} names no live process", pid)
            self._probe = probe
            return seen
        return self._probe()


def pid_in(path: str) -> int | None:
    """Return the number in a pid file, None if there is none."""
    try:
        text = Path(path).read_text("ascii", "replace")[:64]
    except OSError:
        return None
    match = re.match(r"\s*(\d{1,10})\s*(?:$|\n)", text)
    return int(match[1]) if match and int(match[1]) > 0 else None


def created_at(pid: int) -> float | None:
    """Return when the process was created, None if it does not run (a zombie does not)."""
    import psutil

    try:
        process = psutil.Process(pid)
        with process.oneshot():
            if process.status() in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD):
                return None
            return float(process.create_time())
    except psutil.AccessDenied:
        return 0.0
    except (psutil.Error, OSError, ValueError, OverflowError):
        return None


def owner_of(port: int, probe: ProcessProbe | None) -> tuple[Port, str]:
    """Return whether the process that is watched, or one of its children, listens on the port."""
    import psutil

    try:
        listening = psutil.net_connections(kind="tcp")
    except (psutil.Error, OSError):
        return Port.UNKNOWN, ""
    owners = {
        link.pid
        for link in listening
        if link.status == psutil.CONN_LISTEN and link.laddr and link.laddr.port == port
    }
    if not owners or None in owners:
        return Port.UNKNOWN, ""
    name = ", ".join(f"process {pid}" for pid in sorted(p for p in owners if p is not None))
    mine = probe().pid if probe is not None else None
    if mine is None:
        return Port.UNKNOWN, name
    try:
        tree = {mine, *(child.pid for child in psutil.Process(mine).children(recursive=True))}
    except psutil.Error:
        return Port.UNKNOWN, name
    return (Port.OURS if owners & tree else Port.FOREIGN), name
