"""Ctrl-C and SIGTERM while a child is in our care: none may come between its start and its end."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

Handler = Callable[[int, FrameType | None], object] | int | None

LEAVING: Final = (signal.SIGINT, signal.SIGTERM)


class Interrupted(BaseException):
    """A signal came; `number` is which one."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class Interrupts:
    """Counts the signals that would end us, and raises them only where `let_in` allows that."""

    def __init__(self, *numbers: signal.Signals) -> None:
        self._numbers = numbers or LEAVING
        self._before: dict[int, Handler] = {}
        self._open = False
        self._first: int | None = None
        self.count = 0

    def __enter__(self) -> Interrupts:
        for number in self._numbers:
            # Who is started with a signal ignored (nohup, a shell's &) goes on ignoring it.
            if signal.getsignal(number) is not signal.SIG_IGN:
                self._before[number] = signal.signal(number, self._came)
        return self

    def __exit__(self, *problem: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    @contextmanager
    def let_in(self) -> Iterator[None]:
        """Raise Interrupted in here for what comes now, and for what came before."""
        self._open = True
        try:
            if self._first is not None:
                raise Interrupted(self._first)
            yield
        finally:
            self._open = False

    def _came(self, number: int, frame: FrameType | None) -> None:
        self.count += 1
        self._first = self._first or number
        if self._open:
            self._open = False
            raise Interrupted(number)
