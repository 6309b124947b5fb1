"""One way to tell: a queue and a thread, so that a slow receiver never holds up the watching."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Final, Protocol

from loopdetect.alert.message import Message

HELD_AT_MOST: Final = 1000


class Sender(Protocol):
    """Delivers one message."""

    name: str

    def send(self, message: Message, stopping: threading.Event) -> str | None:
        """Deliver it; return what went wrong. Ends soon after `stopping` is set."""


class Channel:
    """Sends messages one after the other; each problem is said once until something succeeds."""

    def __init__(self, sender: Sender, say: Callable[[str], None]) -> None:
        self.name = sender.name
        self._sender = sender
        self._say = say
        self._changed = threading.Condition()
        self._waiting: deque[Message] = deque()
        self._done: list[str] = []
        self._busy = False
        self._draining = False
        self._stopping = threading.Event()
        self._trouble: str | None = None
        self.sent = self.failed = 0
        self._thread = threading.Thread(target=self._work, name=f"loopdetect-{self.name}")
        self._thread.daemon = True
        self._thread.start()

    def put(self, message: Message) -> None:
        """Add a message; the oldest is dropped where too many wait."""
        dropped = False
        with self._changed:
            if len(self._waiting) >= HELD_AT_MOST:
                self._done.append(self._waiting.popleft().id)
                self.failed += 1
                dropped = True
            self._waiting.append(message)
            self._changed.notify_all()
        if dropped:
            self._complain("too many alarms wait; the oldest were dropped")

    def done(self) -> list[str]:
        """Return the ids that were delivered, or given up, since the last call."""
        with self._changed:
            done, self._done = self._done, []
        return done

    def close(self, seconds: float) -> int:
        """Finish what waits, at most for `seconds`; return how many messages are left."""
        with self._changed:
            self._draining = True
            self._changed.notify_all()
            self._changed.wait_for(lambda: not (self._waiting or self._busy), seconds)
        self._stopping.set()
        with self._changed:
            self._changed.notify_all()
        self._thread.join(1.0)
        with self._changed:
            return len(self._waiting) + int(self._busy)

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(
                    lambda: self._waiting or self._draining or self._stopping.is_set()
                )
                if self._stopping.is_set() or not self._waiting:
                    return
                message = self._waiting.popleft()
                self._busy = True
            try:
                problem = self._sender.send(message, self._stopping)
            except Exception as unexpected:  # a channel must not die of one message
                problem = f"{type(unexpected).__name__}: {unexpected}"
            self._after(message, problem)

    def _after(self, message: Message, problem: str | None) -> None:
        cut_off = problem is not None and self._stopping.is_set()
        if problem is None:
            self.sent += 1
            self._trouble = None
        elif not cut_off:
            self.failed += 1
            self._complain(problem)
        with self._changed:
            if not cut_off:
                self._busy = False
                self._done.append(message.id)
            self._changed.notify_all()

    def _complain(self, problem: str) -> None:
        if problem != self._trouble:
            self._trouble = problem
            self._say(f"{self.name}: {problem}")
