"""One look of a polling loop: what it showed, and what two of them tell when they are compared."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from loopdetect.core.block import HEADER
from loopdetect.core.looks import LOGGED, RESTARTING
from loopdetect.core.progress import Bar, find_bar
from loopdetect.core.sayings import OWN_END

_RAISED: Final = re.compile(r"(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Exit|Interrupt)(?::|$)")
MEMORY_HELD_MIB: Final = 1000
MAX_LAST_WORDS: Final = 500
DUMP: Final = 12
DUMPED_SHARE: Final = 0.8
_DATED: Final = re.compile(
    r"\d\d:\d\d:\d\d[ .,\]]|\bpid[=: ]\d+|\[\d{2,7}\]|^\d+\.\d\d\.\d{3}\.\d{3} "
)


# What stands where somebody stopped the loop with the keyboard, not the server.
_OWN_LAST: Final = re.compile(
    r"\s*(?:\^C)?\s*$|make(?:\[\d+\])?: \*\*\* |command terminated with exit code"
)
TITLES: Final = 3
ROWS: Final = 4
# A loop's words over what it shows; no line of a log begins with a picture and ends in a colon.
_TITLE: Final = re.compile(
    r"(?:[^\x00-\u2010\u2500-\u259f] ?.{0,60}:|.{1,40}(?:logs?|lines|status|usage)\b.{0,20}:|([-=#*_])\1{2,}) *$",
    re.I,
)
_LOGGED: Final = re.compile(
    r"\(\w+ pid=\d|\[?\d{4}-\d\d-\d\d|(?:INFO|WARNING|ERROR|DEBUG)\b|[A-Z]\w+ing \w+.*\d+%|\[\w[\w-]*\] "
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
    alive: bool | None = None
    begun: bool = False
    exit_code: int | None = None
    oom: bool = False
    lines: list[tuple[int, str]] = field(default_factory=list)

    @property
    def texts(self) -> list[str]:
        """The lines without their numbers."""
        return [text for _, text in self.lines]

    def last_bar(self) -> Bar | None:
        """Return the bar that the snapshot ends in, or None if it ends in something else."""
        last = next((text for _, text in reversed(self.lines) if text.strip()), "")
        drawn = last.rstrip("\r").rpartition("\r")[2] or last
        found = find_bar(drawn)
        return found[0] if found and not drawn[found[2] :].strip(" |\r\n") else None

    def dated(self) -> bool:
        """True when a line carries a wall-clock time or a pid, so that equal text means equal writing."""
        return any(_DATED.search(text) for _, text in self.lines)


@dataclass(slots=True)
class Known:
    """What the looks so far told of the process beside its log."""

    counted: bool = False
    last: Snapshot | None = None
    pid: str | None = None
    restarts: int | None = None
    alive: bool | None = None

    def restarted(self, now: Snapshot) -> str | None:
        """Return what beside the lines shows that the server was started again since the look before."""
        before, self.last = self.last, now
        pid, restarts, alive = self.pid, self.restarts, self.alive
        self.pid = now.pid if now.pid is not None else pid
        self.restarts = now.restarts if now.restarts is not None else restarts
        self.alive = now.alive if now.alive is not None else alive
        if before is None:
            return None
        if _shrank(before, now):
            return "the log became smaller"
        if pid is not None and self.pid != pid:
            return f"the process id changed from {pid} to {self.pid}"
        if restarts is not None and (self.restarts or 0) > restarts:
            return f"the supervisor's count rose to {self.restarts}"
        if before.uptime is not None and now.uptime is not None and now.uptime < before.uptime:
            return "the container is up for a shorter time than before"
        if before.memory and now.memory is not None and _given_back(before.memory, now.memory):
            return f"the GPU's memory was given back: {before.memory} MiB, then {now.memory} MiB"
        if now.uptime is not None and any(RESTARTING in text for text in before.texts):
            return "the container is up again"
        if not self.counted and alive is False and now.alive:
            return "it was over, and runs again"
        return "the loop started it again" if not self.counted and now.begun else None


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
    ends = (n for n, text in enumerate(texts) if _RAISED.match(text))
    # With more behind it, a tail that begins with the exception left the frames out.
    end = next(
        (n for n in ends if (texts[n - 1].startswith("    ") if n else len(texts) > 1)), None
    )
    if end is None or any(HEADER in text for text in texts):
        return shown
    start = end
    while start and texts[start - 1].startswith("  "):
        start -= 1
    return [*shown[:start], (shown[start][0], f"{HEADER}:"), *shown[start:]]


def without_own_end(snapshot: Snapshot) -> None:
    """Take off the traceback of the script that waited, where that is what the transcript ends with."""
    while snapshot.lines and _OWN_LAST.match(snapshot.texts[-1]):
        snapshot.lines.pop()
    texts = [text for text in snapshot.texts if text.strip()]
    if not texts or len(texts[-1]) > MAX_LAST_WORDS or not OWN_END.match(texts[-1]):
        return
    start = next((n for n, text in enumerate(snapshot.texts) if text.startswith(HEADER)), None)
    del snapshot.lines[start if start is not None else len(snapshot.lines) - 1 :]


def without_what_is_dumped(snapshots: list[Snapshot]) -> None:
    """Take the lines out of earlier looks where the last one holds the whole log, as a script prints it at its end."""
    last = snapshots[-1]
    earlier = {text for snapshot in snapshots[:-1] for text in snapshot.texts if text.strip()}
    most = max((len(snapshot.lines) for snapshot in snapshots[:-1]), default=0)
    if not earlier or len(last.lines) < max(DUMP, 3 * most):
        return
    dumped = set(last.texts)
    if sum(text in dumped for text in earlier) >= DUMPED_SHARE * len(earlier):
        for snapshot in snapshots[:-1]:
            snapshot.lines.clear()
        later = {text for _, text in last.lines[most:]}
        own = [entry for entry in last.lines[:most] if entry[1] not in later]
        last.lines = own + last.lines[most:]


def without_rows(snapshots: list[Snapshot]) -> None:
    """Take off the rows of a tool's that nearly every look shows with other numbers, and what heads them."""
    shown = [snapshot for snapshot in snapshots if snapshot.lines]
    counts = Counter(row for snapshot in shown for row in {_numberless(t) for t in snapshot.texts})
    common = {row for row, n in counts.items() if n >= ROWS and n * 5 >= len(shown) * 4 and row}
    texts = Counter(_numberless(text) for text in {t for s in shown for t in s.texts})
    rows = {row for row in common if texts[row] * 2 > counts[row]}
    if not rows:
        return
    for snapshot in shown:
        kinds = [_numberless(text) for text in snapshot.texts]
        heads = {n for n, kind in enumerate(kinds[:-1]) if kind in common and kinds[n + 1] in rows}
        snapshot.lines = [
            entry
            for n, entry in enumerate(snapshot.lines)
            if n not in heads and kinds[n] not in rows
        ]


def _numberless(text: str) -> str:
    """Return what is the same in a tool's row each time; nothing for a server's own line."""
    if LOGGED.search(text) or find_bar(text):
        return ""
    return re.sub(r"\d+", "0", text).strip()


def without_titles(snapshots: list[Snapshot]) -> None:
    """Take off the lines with which a loop heads a part of each look: `📝 Recent logs:`, a rule.

    The log's own lines behind such a line, all of them moved to the right, are moved back.
    """
    counts: Counter[str] = Counter()
    for snapshot in snapshots:
        counts.update({text for text in snapshot.texts if _TITLE.match(text)})
    shown = sum(bool(snapshot.lines) for snapshot in snapshots)
    titles = {text for text, n in counts.items() if n >= TITLES and n * 2 >= shown}
    for snapshot in snapshots:
        kept: list[tuple[int, str]] = []
        block: list[tuple[int, str]] = []
        headed_by = ":"
        for line, text in snapshot.lines:
            if text.startswith("  ") or (block and not text.strip()):
                block.append((line, text))
                continue
            kept += _moved_back(block) if headed_by.endswith(":") else block
            block = []
            headed_by = text.rstrip()
            if text not in titles:
                kept.append((line, text))
        kept += _moved_back(block) if headed_by.endswith(":") else block
        snapshot.lines = kept


def _moved_back(block: list[tuple[int, str]]) -> list[tuple[int, str]]:
    """Return lines without their common indentation, frames of a traceback and fields as they are."""
    inner = [text.lstrip("\r") for _, text in block if text.strip()]
    by = min((len(text) - len(text.lstrip(" ")) for text in inner), default=0)
    if not by or not any(_LOGGED.match(text[by:].lstrip("\r")) for text in inner):
        return block
    return [(line, text[by:] if not text[:by].strip() else text) for line, text in block]


def _shrank(before: Snapshot, now: Snapshot) -> bool:
    sizes = [(s.size or "").strip() for s in (before, now)]
    return all(size.isdigit() for size in sizes) and int(sizes[1]) < int(sizes[0])


def cut_short(cut: Snapshot, whole: Snapshot) -> bool:
    """True when a last snapshot is the beginning of the same text, broken off."""
    text = "\n".join(cut.texts).rstrip(". …")
    return bool(text) and "\n".join(whole.texts).startswith(text)
