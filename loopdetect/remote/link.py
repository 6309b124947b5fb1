"""The link to a host: connects, follows, notices that it is cut, and takes it up again."""

from __future__ import annotations

import queue
import threading
from contextlib import suppress
from typing import Final

from loopdetect.core.fusion import Process
from loopdetect.errors import SourceError
from loopdetect.live.tail import Look
from loopdetect.probe.seen import ProcessSeen
from loopdetect.remote.follow import RemoteFile
from loopdetect.remote.process import RemoteProcess
from loopdetect.remote.session import CONNECT_S, Caller, LinkLost, Session

PACE_S: Final = 0.15
# So long an answer may take before what was seen last is no longer believed.
SILENT_S: Final = 5.0
QUEUED: Final = 32
FIRST_PAUSE_S: Final = 0.5
LONGEST_PAUSE_S: Final = 15.0
# A jump host and a slow login come on top of the time for the connection itself.
LEAVE_S: Final = 2.0
LONGEST_LOGIN_S: Final = 3.0 * CONNECT_S
_HINT: Final = "check that `ssh {host}` works without a question, or see --ssh-command"


class Link:
    """A log that grows on a host, and what else is seen over the same connection.

    One thread talks to the host; what it saw of the process is told only after the bytes that it
    read next, so whatever a process wrote before it was seen gone has been given out by then.
    """

    def __init__(
        self, caller: Caller, file: RemoteFile, process: RemoteProcess | None = None
    ) -> None:
        self.name = file.title
        self.lost: str | None = None
        self._caller, self._file, self._process = caller, file, process
        self._looks: queue.Queue[Look] = queue.Queue(QUEUED)
        self._state = Look(exists=False)
        self._complete = False
        self._problem: SourceError | None = None
        self._seen: tuple[int, ProcessSeen | None] = (0, None)
        self._over = threading.Event()
        self._news = threading.Condition()
        self._heard = 0
        self._session: Session | None = None
        self._thread: threading.Thread | None = None

    def connect(self, limit: float) -> None:
        """Reach the host within `limit` seconds; raises SourceError."""
        try:
            self._session = self._log_in(min(limit, LONGEST_LOGIN_S))
        except LinkLost as problem:
            host = self._caller.host
            raise SourceError(f"cannot reach {host}: {problem}", _HINT.format(host=host)) from None
        self._thread = threading.Thread(target=self._run, name="loopdetect-link", daemon=True)
        self._thread.start()

    # -- a tail

    def look(self) -> Look:
        """Return the next bytes; raises SourceError."""
        wait = 0.0 if self._complete else PACE_S
        with suppress(queue.Empty):
            look = self._looks.get(timeout=wait) if wait else self._looks.get_nowait()
            self._state = Look(exists=look.exists, modified=look.modified)
            return look
        if self._problem is not None:
            raise self._problem
        if self._complete or not self._looks.empty():
            return self._state
        # Until all that the log held was read once, its history is not known.
        return Look(more=True, exists=self._state.exists, modified=self._state.modified)

    def close(self) -> None:
        """Let go of the host."""
        self._over.set()
        session = self._session
        if session is not None:
            session.end()
        if self._thread is not None:
            self._thread.join(LEAVE_S)

    # -- what else is seen

    def process(self) -> tuple[int, ProcessSeen | None]:
        """Return how many looks at the process there were, and the latest one."""
        return self._seen

    def out_of_reach(self) -> str | None:
        """Return why nothing can be seen just now, None while all is in sight."""
        lost, session = self.lost, self._session
        if lost is None and session is not None and session.silence() > SILENT_S:
            lost = "the link is silent"
        return None if lost is None else f"cannot reach {self._caller.host}: {lost}"

    def refused(self) -> tuple[int, str]:
        """Return how often the host would not connect the forwarded port, and why at last."""
        return self._session.refused if self._session is not None else (0, "")

    def answers(self, within: float) -> bool:
        """True when the host says something more in that many seconds."""
        with self._news:
            # One answer may have been under way; the next one was asked for afterwards.
            enough = self._heard + 2
            self._news.wait_for(lambda: self._heard >= enough or self.lost is not None, within)
            return self._heard >= enough and self.lost is None

    # -- the thread

    def _log_in(self, limit: float) -> Session:
        return Session(self._caller, limit, self._hear, self._over)

    def _hear(self) -> None:
        with self._news:
            self._heard += 1
            self._news.notify_all()

    def _run(self) -> None:
        session = self._session
        while session is not None:
            try:
                self._follow(session)
            except LinkLost as problem:
                self._cut(str(problem))
            except SourceError as problem:
                self._problem = problem
                self._over.set()
            session.close()
            session = self._session = self._again()

    def _follow(self, session: Session) -> None:
        while not self._over.is_set():
            seen = self._process.look(session) if self._process else None
            for look in self._file.looks(session):
                self._give(look)
            if seen is not None:
                self._seen = (self._seen[0] + 1, seen)
            self._complete, self.lost = True, None
            session.pause()
            self._over.wait(PACE_S)

    def _give(self, look: Look) -> None:
        if look.data or look.turn:
            look = Look(look.data, look.turn, True, look.ended, look.exists, look.modified)
            while not self._over.is_set():
                with suppress(queue.Full):
                    self._looks.put(look, timeout=PACE_S)
                    return
        elif self._looks.empty():
            self._state = look

    def _cut(self, why: str) -> None:
        if self._process is not None:
            self._seen = (self._seen[0] + 1, ProcessSeen(Process.UNKNOWN, self._process.unseen()))
        with self._news:
            self.lost = why
            self._news.notify_all()

    def _again(self) -> Session | None:
        """Return a new connection, None when nobody wants one any more."""
        pause = FIRST_PAUSE_S
        while not self._over.wait(pause):
            try:
                session = self._log_in(LONGEST_LOGIN_S)
            except (LinkLost, SourceError) as problem:
                self._cut(str(problem))
                pause = min(2 * pause, LONGEST_PAUSE_S)
                continue
            if not self._over.is_set():
                return session
            session.close()
        return None
