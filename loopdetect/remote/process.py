"""Is a process on the host alive? The same rules as for one on this machine, other eyes."""

from __future__ import annotations

import time
from typing import Final

from loopdetect.probe.process_probe import PidFileProbe, PidProbe
from loopdetect.probe.seen import ProcessProbe, ProcessSeen
from loopdetect.remote.session import LinkLost, Session

_DEAD: Final = ("Z", "X", "x")
_STAMP: Final = "%a %b %d %H:%M:%S %Y"


class RemoteProcess:
    """Watches a process of the host by its pid, or by the file on the host that holds it."""

    def __init__(self, pid: int | None, pid_file: str | None) -> None:
        self._pid, self._pid_file = pid, pid_file
        self._probe: ProcessProbe | None = None
        self._session: Session | None = None
        self._started: float | None = None

    def look(self, session: Session) -> ProcessSeen:
        """Return what the host says just now; raises LinkLost."""
        self._session = session
        if self._probe is None:
            if self._pid is not None:
                self._probe = self._watch(self._pid)
            else:
                self._probe = PidFileProbe(self._pid_file or "", self._number, self._watch)
        return self._probe()

    def unseen(self) -> str:
        """Return what is said of the process while the host is out of reach."""
        what = (
            f"process {self._pid}" if self._pid is not None else f"the process in {self._pid_file}"
        )
        return f"{what} is out of sight"

    def _watch(self, pid: int) -> PidProbe:
        return PidProbe(pid, self._born, lambda pid: self._started)

    def _number(self, path: str) -> int | None:
        assert self._session is not None
        return self._session.pid()

    def _born(self, pid: int) -> float | None:
        """Return when the process began on some clock of the host's own, None if it is gone."""
        assert self._session is not None
        words = self._session.process(pid)
        self._started = None
        try:
            return self._read(words)
        except (ValueError, IndexError) as problem:
            raise LinkLost("the shell on the host gives no sense") from problem

    def _read(self, words: list[str]) -> float | None:
        kind, *rest = words
        if kind == "gone" or (rest and rest[0].startswith(_DEAD)):
            return None
        if kind == "alive":
            return 0.0
        if kind == "stamp":
            return time.mktime(time.strptime(" ".join(rest[1:]), _STAMP))
        _, ticks, uptime, hertz = rest
        born = int(ticks) / int(hertz)
        self._started = time.time() - (float(uptime) - born)
        return born
