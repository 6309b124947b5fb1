"""Probes that may be slow run beside the loop: it takes the latest answer and never waits."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

Seen = TypeVar("Seen")


class Background(Generic[Seen]):
    """Calls a probe every `interval` seconds, in a thread of its own."""

    def __init__(self, probe: Callable[[], Seen], interval: float) -> None:
        self._probe = probe
        self._interval = interval
        self._latest: Seen | None = None
        self._count = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="loopdetect-probe", daemon=True)

    def __enter__(self) -> Background[Seen]:
        self._thread.start()
        return self

    def __exit__(self, *problem: object) -> None:
        self._over.set()

    def latest(self) -> tuple[int, Seen | None]:
        """Return how many answers there were, and the last one."""
        return self._count, self._latest

    def _run(self) -> None:
        while not self._over.is_set():
            self._latest = self._probe()
            self._count += 1
            self._over.wait(self._interval)
