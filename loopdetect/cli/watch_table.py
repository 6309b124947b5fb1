"""A watch on a terminal: one row a stream, redrawn in place, and the latest events below."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from loopdetect.cli.watch_output import DETAIL
from loopdetect.cli.watch_rows import lines, shared_folder, table, tally
from loopdetect.follow.happened import Happened, What
from loopdetect.follow.lines import source_of, text_line
from loopdetect.metrics.board import Board
from loopdetect.model import State
from loopdetect.render.width import columns

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

STYLES: Final = {
    State.LOADING: "yellow",
    State.READY: "green",
    State.STALLED: "magenta",
    State.STOPPED: "cyan",
    State.CRASHED: "red",
    State.CRASH_LOOPING: "bold red",
    State.UNKNOWN: "dim",
}
EVENTS: Final = 8
# A terminal is drawn at most so often, in seconds.
EVERY: Final = 0.25


class LiveTable:
    """Shows the board; `console` is for tests."""

    def __init__(
        self, board: Board, *, color: bool, quiet: bool = False, console: Console | None = None
    ) -> None:
        from rich.console import Console
        from rich.live import Live

        self._board = board
        self._quiet = quiet
        self._events: deque[Happened] = deque(maxlen=EVENTS)
        self._console = console or Console(
            no_color=not color, highlight=False, markup=False, soft_wrap=False
        )
        self._live = Live(
            console=self._console, auto_refresh=False, vertical_overflow="crop",
            redirect_stdout=False,
        )  # fmt: skip
        self._drawn_at = float("-inf")
        self._changed = True
        self._live.start()

    def write(self, events: Iterable[Happened]) -> None:
        """Take note of events."""
        for event in events:
            self._changed = True
            if event.alarm and event.what is not What.REMINDER:
                continue
            if not (self._quiet and event.what in DETAIL):
                self._events.append(event)

    def written(self, event: Happened) -> bool:
        """False: a terminal keeps nothing."""
        return False

    def refresh(self, *, changed: bool = False) -> None:
        """Draw what is new, if the last drawing is not too fresh."""
        self._changed = self._changed or changed
        now = time.monotonic()
        if self._changed and now - self._drawn_at >= EVERY:
            self._draw()
            self._drawn_at, self._changed = now, False

    def close(self) -> None:
        """Draw the last state and leave it standing."""
        self._draw()
        self._live.stop()

    def _draw(self) -> None:
        self._live.update(self.picture(), refresh=True)

    def picture(self) -> RenderableType:
        """Return what is drawn."""
        from rich.text import Text

        width, height = self._console.size
        found = table(self._board.rows())
        told = list(self._events)[-max(1, height // 3) :]
        room = max(1, height - len(told) - 4)
        shown = found[:room] if len(found) > room else found
        text = Text(no_wrap=True, overflow="crop")
        for line, state in lines(shown, width - 1):
            text.append(line + "\n", style="bold" if state is None else STYLES[state])
        if len(found) > len(shown):
            hidden = found[len(shown) :]
            text.append(f"… {len(hidden)} more: {tally(hidden)}\n", style="dim")
        if not found:
            text.append("Nothing is followed yet.\n", style="dim")
        if told:
            text.append("\n")
        prefix = shared_folder([row.report.source for row in self._board.rows()])
        limit = width // 3
        widest = max((columns(source_of(event, prefix, limit)) for event in told), default=0)
        for event in told:
            line = text_line(event, width=width - 1, prefix=prefix, source_width=widest)
            text.append(line + "\n", style="red" if event.what is What.CRASH_LOOP else "dim")
        text.right_crop(1)
        return text
