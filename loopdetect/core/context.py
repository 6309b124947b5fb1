"""The lines round a cause: two before, two after."""

from __future__ import annotations

from typing import Final

from loopdetect.core.event import Failure

AROUND: Final = 2
NEAR: Final = 8
MAX_KEPT: Final = 400
WIDTH: Final = 400
HEAD: Final = 60


class Contexts:
    """Collects context for failure lines; bounded, the newest are kept."""

    __slots__ = ("_after", "_before", "_open")

    def __init__(self) -> None:
        self._before: dict[int, tuple[str, ...]] = {}
        self._after: dict[int, list[str]] = {}
        self._open: set[int] = set()

    @property
    def waiting(self) -> bool:
        """True while some failure still needs the lines after it."""
        return bool(self._open)

    def want(self, failure: Failure, current: int, before: tuple[str, ...], text: str) -> None:
        """Remember what stood before a failure, and ask for what comes after it.

        `before` are the lines before the `current` one. The exception of a traceback is known only
        at a later line: then it is among them.
        """
        line = failure.line
        if line in self._before:
            return
        if len(self._before) >= MAX_KEPT:
            oldest = next(iter(self._before))
            self._before.pop(oldest)
            self._after.pop(oldest, None)
            self._open.discard(oldest)
        earlier: tuple[str, ...] = before
        later: tuple[str, ...] = ()
        if current != line:
            start = failure.text[:HEAD]
            place = next(
                (i for i in range(len(before) - 1, -1, -1) if start in before[i]), len(before)
            )
            earlier, later = before[:place], (*before[place + 1 :], text)
        self._before[line] = tuple(t[:WIDTH] for t in earlier[-AROUND:])
        self._after[line] = [t[:WIDTH] for t in later[:AROUND]]
        if len(self._after[line]) < AROUND:
            self._open.add(line)

    def after(self, line: int, text: str) -> None:
        """Offer a line that follows."""
        for wanted in list(self._open):
            if line > wanted and text.strip():
                self._after[wanted].append(text[:WIDTH])
                if len(self._after[wanted]) >= AROUND:
                    self._open.discard(wanted)

    def around(self, line: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the lines before and after `line` that are known."""
        return self._before.get(line, ()), tuple(self._after.get(line, ()))
