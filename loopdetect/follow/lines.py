"""Events as lines: for people, and as JSON for programs."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Final

from loopdetect.follow.happened import Happened, What
from loopdetect.render.clock import iso
from loopdetect.render.escape import json_safe, visible
from loopdetect.render.paint import (
    BOLD,
    CYAN,
    DIM,
    GREEN,
    MAGENTA,
    RED,
    STATE_COLORS,
    YELLOW,
    painter,
)
from loopdetect.render.width import columns, cut

COLORS: Final = {
    What.START: CYAN,
    What.RESTART: YELLOW,
    What.READY: GREEN,
    What.RECOVERY: GREEN,
    What.ERROR: RED,
    What.CRASH: RED,
    What.CRASH_LOOP: f"{BOLD};{RED}",
    What.REMINDER: f"{BOLD};{RED}",
    What.STALL: MAGENTA,
    What.PROGRESS: DIM,
}
WIDEST: Final = max(len(what.value) for what in What)
LONGEST_SOURCE: Final = 36
LONGEST_TEXT: Final = 260


def local_time(seconds: float) -> str:
    """Return the time of day where the watcher runs."""
    return time.strftime("%H:%M:%S", time.localtime(seconds))


def text_line(
    event: Happened,
    *,
    color: bool = False,
    width: int | None = None,
    clock: Callable[[float], str] = local_time,
    prefix: str = "",
    source_width: int = 0,
) -> str:
    """Return `time source what text (line N)`.

    `prefix` is left out of the source's name, which is filled up to `source_width` columns.
    """
    paint = painter(color)
    source = source_of(event, prefix, LONGEST_SOURCE if width is None else width // 3)
    source += " " * max(0, source_width - columns(source))
    word = event.what.value
    code = STATE_COLORS[event.state] if event.what is What.STATE else COLORS.get(event.what, "")
    shown = f"{event.state.value}: " if event.what is What.STATE else ""
    where = f" (line {event.line})" if event.line is not None else ""
    head = f"{clock(event.at)}  {source}  {word:<{WIDEST}}  "
    room = LONGEST_TEXT if width is None else max(width - len(head) - len(where), 20)
    body = cut(visible(shown + event.text), room)
    if code:
        return f"{clock(event.at)}  {source}  {paint(f'{word:<{WIDEST}}', code)}  {body}{where}"
    return f"{head}{body}{where}"


def source_of(event: Happened, prefix: str = "", limit: int = LONGEST_SOURCE) -> str:
    """Return the name of the event's source and stream, not longer than a line can bear."""
    name = "stdin" if event.source == "-" else visible(event.source.removeprefix(prefix))
    return cut(
        name + (f" [{visible(event.stream)}]" if event.stream else ""), min(limit, LONGEST_SOURCE)
    )


def json_line(event: Happened) -> str:
    """Return the event as one JSON object."""
    return json_safe(json.dumps(event_object(event), ensure_ascii=False, allow_nan=False))


def event_object(event: Happened) -> dict[str, object]:
    """Return the event with the keys that programs may rely on."""
    return {
        "id": event.id,
        "at": f"{iso(event.at)}Z",
        "source": event.source,
        "stream": event.stream,
        "event": event.what.value,
        "text": event.text,
        "state": event.state.value,
        "phase": event.phase.value,
        "run": event.run,
        "line": event.line,
        "reason": event.reason,
    }
