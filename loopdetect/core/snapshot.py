"""One look of a polling loop: what it showed, and what two of them tell when they are compared."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from loopdetect.core.block import HEADER
from loopdetect.core.looks import OWN_END, RESTARTING
from loopdetect.core.progress import Bar, find_bar

_RAISED: Final = re.compile(r"(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Exit|Interrupt)(?::|$)")
MEMORY_HELD_MIB: Final = 1000
MAX_LAST_WORDS: Final = 500
_DATED: Final = re.compile(
    r"\d\d:\d\d:\d\d[ .,\]]|\bpid[=: ]\d+|\[\d{2,7}\]|^\d+\.\d\d\.\d{3}\.\d{3} "
)


@dataclass(slots=True)
class Snapshot:
    """What one look showed."""

    line: int
    time: float | None
    health: int | None = None
    size: str | None = None
    restarts: int | None = None
    uptime: float | None = None
    pid: str | None = None
    memory: int | None = None
    ready: bool = False
    lines: list[tuple[int, str]] = field(default_factory=list)

    @property
    def texts(self) -> list[str]:
        """The lines without their numbers."""
        return [text for _, text in self.lines]

    def last_bar(self) -> Bar | None:
        """Return the bar that the snapshot ends in, or None if it ends in something else."""
        last = next((text for _, text in reversed(self.lines) if text.strip()), "")
        found = find_bar(last.rstrip("\r").rpartition("\r")[2] or last)
        return found[0] if found and not last[found[2] :].strip() else None

    def dated(self) -> bool:
        """True when a line carries a wall-clock time or a pid, so that equal text means equal writing."""
        return any(_DATED.search(text) for _, text in self.lines)


def restarted(before: Snapshot, now: Snapshot) -> str | None:
    """Return what beside the lines shows that the server was started again between two looks."""
    if _shrank(before, now):
        return "the log became smaller"
    if before.pid is not None and now.pid is not None and before.pid != now.pid:
        return f"the process id changed from {before.pid} to {now.pid}"
    if before.restarts is not None and now.restarts is not None and now.restarts > before.restarts:
        return f"the supervisor's count rose to {now.restarts}"
    if before.uptime is not None and now.uptime is not None and now.uptime < before.uptime:
        return "the container is up for a shorter time than before"
    if before.memory and now.memory is not None and _given_back(before.memory, now.memory):
        return f"the GPU's memory was given back: {before.memory} MiB, then {now.memory} MiB"
    if now.uptime is not None and any(RESTARTING in text for text in before.texts):
        return "the container is up again"
    return None


def _given_back(before: int, now: int) -> bool:
    return before >= MEMORY_HELD_MIB and now * 10 < before


def all_run(texts: list[str]) -> bool:
    """True for a page of `serve status` on which every application and deployment runs."""
    said = [text.split(":")[1].strip() for text in texts if text.strip().startswith("status:")]
    page = any(text.startswith("applications:") for text in texts)
    return page and bool(said) and all(word in ("RUNNING", "HEALTHY") for word in said)


def headed(shown: list[tuple[int, str]]) -> list[tuple[int, str]]:
    """Give a traceback of which a tail shows only the end its header back."""
    texts = [text for _, text in shown]
    ends = (n for n, text in enumerate(texts) if n and _RAISED.match(text))
    end = next((n for n in ends if texts[n - 1].startswith("    ")), None)
    if end is None or any(HEADER in text for text in texts):
        return shown
    start = end
    while start and texts[start - 1].startswith("  "):
        start -= 1
    return [*shown[:start], (shown[start][0], f"{HEADER}:"), *shown[start:]]


def without_own_end(snapshot: Snapshot) -> None:
    """Take off the traceback of the script that waited, where that is what the transcript ends with."""
    texts = [text for text in snapshot.texts if text.strip()]
    if not texts or len(texts[-1]) > MAX_LAST_WORDS or not OWN_END.match(texts[-1]):
        return
    start = next((n for n, text in enumerate(snapshot.texts) if text.startswith(HEADER)), None)
    if start is not None:
        del snapshot.lines[start:]


def _shrank(before: Snapshot, now: Snapshot) -> bool:
    sizes = [(s.size or "").strip() for s in (before, now)]
    return all(size.isdigit() for size in sizes) and int(sizes[1]) < int(sizes[0])


def cut_short(cut: Snapshot, whole: Snapshot) -> bool:
    """True when a last snapshot is the beginning of the same text, broken off."""
    text = "\n".join(cut.texts).rstrip(". …")
    return bool(text) and "\n".join(whole.texts).startswith(text)
