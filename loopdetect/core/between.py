"""What happened between two looks of a polling loop, and when the last of them was."""

from __future__ import annotations

from loopdetect.core.envelope import peel
from loopdetect.core.event import Event
from loopdetect.core.snapshot import Snapshot
from loopdetect.core.stream import Stream
from loopdetect.core.timestamp import Clock, Stamp
from loopdetect.model import Kind


class Stopped(Clock):
    """The clock of the looks after the last of them: times in the lines that were shown do not move it."""

    __slots__ = ("_looks",)

    def __init__(self, looks: Clock) -> None:
        super().__init__()
        self._looks = looks
        self.frame, self.last, self.shift = looks.frame, looks.last, looks.shift

    def seconds(self, stamp: Stamp) -> float:
        """Return the time of the last look, whatever the stamp."""
        return self.last if self.last is not None else self._looks.seconds(stamp)

    def now(self, seconds: float) -> float:
        """Put a wall-clock time (seconds since 1970) on the clock of the looks."""
        return self._looks.now(seconds)


def loads_again(stream: Stream, snapshot: Snapshot, fresh: list[tuple[int, str]]) -> bool:
    """True when a look shows a start-up, though the one before saw the run dead."""
    run = stream.machine.open
    if run is None or run.dead_line is None or run.dead_line >= snapshot.line:
        return False
    return any(stream.starts_up(peel(text)) for _, text in fresh)


def over(snapshot: Snapshot, stream: Stream, stamp: Stamp | None) -> None:
    """Say that the process was seen to be gone, and with which code."""
    run = stream.machine.open
    asked = run is not None and (run.stop_line is not None or run.goodbye_line is not None)
    code = 137 if snapshot.oom and not snapshot.exit_code else snapshot.exit_code
    if code is not None:
        time = stream.clock.seconds(stamp) if stamp is not None else None
        text = f"the process is gone, exit code {code}"
        event = Event(Kind.EXIT, snapshot.line, text, time=time, fields={"code": str(code)})
        stream.machine.fold(event)
    elif run is not None and run.dead_line is None and not asked:
        stream.note(Kind.CASCADE, snapshot.line, "the process is gone", stamp)
