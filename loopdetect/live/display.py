"""A wait on a terminal: phase, the server's own bar, elapsed and remaining time, evidence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TextIO

from loopdetect.live.plain import history, where
from loopdetect.live.status import Status
from loopdetect.model import Phase, State
from loopdetect.render.duration import spoken
from loopdetect.render.escape import visible
from loopdetect.render.figures import bar as figures

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.live import Live

STYLES: Final = {
    State.LOADING: "yellow",
    State.READY: "bold green",
    State.STALLED: "magenta",
    State.STOPPED: "cyan",
    State.CRASHED: "bold red",
    State.CRASH_LOOPING: "bold red",
    State.UNKNOWN: "dim",
}
BAR_COLUMNS: Final = 40


class LiveDisplay:
    """Redraws a few lines in place and leaves nothing behind."""

    def __init__(self, stream: TextIO, source: str, color: bool) -> None:
        from rich.console import Console
        from rich.live import Live

        self._source = source
        console = Console(file=stream, no_color=not color, highlight=False, markup=False)
        self._live: Live = Live(
            console=console, transient=True, auto_refresh=False, redirect_stdout=False,
            redirect_stderr=False,
        )  # fmt: skip
        self._live.start()

    def show(self, status: Status) -> None:
        """Draw the newest status."""
        self._live.update(panel(status, self._source), refresh=True)

    def close(self) -> None:
        """Take the lines away and show the cursor again."""
        self._live.stop()


def panel(status: Status, source: str) -> RenderableType:
    """Return the lines that are drawn."""
    from rich.console import Group
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    def line(text: str, style: str = "") -> Text:
        return Text(visible(text), style=style, no_wrap=True, overflow="ellipsis")

    name = f"{source} ({status.server})" if status.server else source
    head = Text.assemble(
        (visible(name), "bold"), "  ",
        (status.state.value if status.phase is Phase.UNKNOWN else where(status),
         STYLES[status.state]),
        f"  {spoken(status.elapsed_s)}",
        no_wrap=True, overflow="ellipsis",
    )  # fmt: skip
    if status.left_s is not None:
        head.append(f", about {spoken(status.left_s)} left {visible(status.left_from)}")
    rows: list[RenderableType] = [head]
    bar = status.bar
    if bar is not None and bar.total:
        grid = Table.grid(padding=(0, 1))
        drawn = ProgressBar(total=bar.total, completed=min(bar.done, bar.total), width=BAR_COLUMNS)
        grid.add_row(drawn, line(f"{figures(bar)} {bar.label}"))
        rows.append(grid)
    told = history(status)
    if told:
        rows.append(line(told, "red"))
    rows.append(line("; ".join((status.why, *status.beside)), "dim"))
    return Group(*rows)
