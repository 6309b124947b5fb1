"""A wait in plain lines, where there is no terminal: one at each change, one each minute."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from loopdetect.live.status import FAILURE_SHOWN, Status
from loopdetect.model import Phase
from loopdetect.render.duration import spoken
from loopdetect.render.escape import visible
from loopdetect.render.figures import bar
from loopdetect.render.width import cut

HEARTBEAT_S: Final = 60.0


class Plain:
    """Writes lines with `write`."""

    def __init__(self, write: Callable[[str], object]) -> None:
        self._write = write
        self._essence: tuple[object, ...] | None = None
        self._said_at = 0.0

    def show(self, status: Status) -> None:
        """Say what changed, or that it still goes on."""
        changed = status.essence != self._essence
        if not changed and status.elapsed_s - self._said_at < HEARTBEAT_S:
            return
        self._essence, self._said_at = status.essence, status.elapsed_s
        self._write(f"[{spoken(status.elapsed_s)}] {sentence(status)}\n")

    def close(self) -> None:
        """Nothing is left open."""


class Silent:
    """Shows nothing."""

    def show(self, status: Status) -> None:
        """Say nothing."""

    def close(self) -> None:
        """Nothing is left open."""


def sentence(status: Status) -> str:
    """Return the status on one line."""
    parts = [status.state.value if status.phase is Phase.UNKNOWN else where(status)]
    if not status.obvious:
        parts.append(visible(status.why))
    if status.left_s is not None:
        parts.append(f"about {spoken(status.left_s)} left ({visible(status.left_from)})")
    told = history(status)
    if told:
        parts.append(cut(visible(told), FAILURE_SHOWN))
    parts.extend(visible(text) for text in status.beside)
    return "; ".join(parts)


def history(status: Status) -> str:
    """Return what came of this start, or of those before it."""
    failed = status.last_failure.split("\n")[0]
    number = status.attempt
    if number == 0:
        return f"before the wait: {failed}" if failed else ""
    if status.died:
        return f"attempt {number}: {failed}" if number > 1 else failed
    if number == 1:
        return ""
    return f"attempt {number}" + (f"; the last one: {failed}" if failed else "")


def where(status: Status) -> str:
    """Return state, phase and bar."""
    text = f"{status.state.value}: {status.phase.value}"
    return f"{text} {bar(status.bar)}" if status.bar else text
