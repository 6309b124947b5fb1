"""Polling transcripts: what a wait loop printed while it looked at a log and at a health check.

How this works: the text is cut into snapshots at the loop's own stamps. What a snapshot shows that
the one before did not is fed to the ordinary stream, on the clock of the stamps. A few facts that
only snapshots have are added: health codes, file sizes, words such as READY, a bar that fell back,
and the same finished bar over and over, which is either a log that did not grow or a start-up that
comes to the same point each time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from loopdetect.core.envelope import ANSI, Enveloped
from loopdetect.core.line import Line
from loopdetect.core.progress import Bar, find_bar
from loopdetect.core.stream import Stream
from loopdetect.core.timestamp import DAY, Frame, Stamp, parse
from loopdetect.model import Kind, Phase

MAX_SNAPSHOTS: Final = 20000
MAX_LINES: Final = 200
REPEATS: Final = 3
REPEAT_FLOOR_S: Final = 120.0
REPEAT_BAR_FACTOR: Final = 5.0

_ELAPSED: Final = re.compile(
    r"\[?(?:t ?[=+] ?|T\+|\+)?(?:(?P<h>\d+)h ?)?(?:(?P<m>\d+) ?m(?:in)? ?)?(?:(?P<s>\d+(?:\.\d+)?) ?s(?:ec(?:onds)?)?)?(?: elapsed)?\]"
    r"(?: |$)(?P<rest>.*)",
    re.DOTALL,
)
_WAITING: Final = re.compile(
    r"(?:\[?\w*\]? ?)(?:[Ss]till )?[Ww]aiting\b[^\n\d]{0,60}?\(?(?P<s>\d+) ?s(?:ec(?:onds)?)?(?: elapsed)?\)?[ .…]*(?P<rest>.*)",
    re.DOTALL,
)
_SECONDS: Final = re.compile(r"(?:t[=+])?(?P<s>\d{1,6}) ?s(?:ec)?: +(?P<rest>.*)", re.DOTALL)
_ATTEMPT: Final = re.compile(
    r"\[?(?:[Aa]ttempt|ATTEMPT|[Tt]ry|[Rr]etry|[Cc]heck|[Pp]oll|[Pp]robe) ?#?(?P<n>\d+)(?: ?(?:/|of) ?\d+)?\]?(?:[:.…]+| -)? ?(?P<rest>.*)",
    re.DOTALL,
)
_CLOCK: Final = re.compile(
    r"(?:[-=#>* ]{0,8})(?:\[(?P<a>(?:\d{4}-\d\d-\d\d[ T])?\d\d:\d\d:\d\d(?:Z|[+-]\d\d:?\d\d)?)\]"
    r"|(?P<b>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:Z|[+-]\d\d:?\d\d)?)(?=:? |$):?"
    r"|(?P<e>\d\d:\d\d:\d\d)(?= .*(?:\.\.\.|…|[-=]>|[:=]) ?(?:000|[2-5]\d\d)\s*$)"
    r"|(?P<c>(?:[A-Z][a-z]{2} )?[A-Z][a-z]{2} +\d{1,2} \d\d:\d\d:\d\d(?: [A-Z]{2,5})? \d{4})(?=$))[-=#<* ]{0,8}(?P<rest>.*)",
    re.DOTALL,
)
_HEALTH: Final = re.compile(
    r"(?:(?:[Hh]ealth|HEALTH|status|http(?:_code)?|HTTP(?:/[\d.]+)?|code|curl)(?:[-_ ]?(?:check|code|status))?[ =:]+)(?P<code>\d{3})\b[,;|]? ?"
    r"|^(?P<bare>000|200|204|404|429|500|502|503|504)(?= |$) ?"
)
_HEALTH_AT_END: Final = re.compile(
    r"[^{}\[\]]{0,160}(?:\.\.\.|…|[-=]>|[:=]) ?(?P<code>000|[2-5]\d\d)\s*$"
)
# What a health check answers, or curl says in its place, where only that is shown.
_BODIES: Final = (
    (re.compile(r'\{ ?"status": ?"(?:ok|healthy|ready|UP)"', re.IGNORECASE), 200),
    (
        re.compile(
            r'"Loading model"|"status": ?"(?:loading|starting|initializing|unhealthy)|"code": ?503',
            re.IGNORECASE,
        ),
        503,
    ),
    (re.compile(r"curl: \(7\)|[Cc]onnection refused|Couldn't connect|Failed to connect to"), 0),
)
_SIZE: Final = re.compile(
    r"\b(?:size|bytes|offset|inode|mtime)[ =:]+(?P<value>[\d.:TZ+-]+)[,;|]? ?"
)
_RESTARTS: Final = re.compile(
    r"\brestarts?(?:[-_ ]?count)?[ =:]+(?P<count>\d{1,6})\b[,;|]? ?", re.IGNORECASE
)
_PID: Final = re.compile(r"pid[ =:]+(?P<pid>\d{1,8})[,;|]? ?")
_WORD: Final = re.compile(
    r"(?:status|health|state)[ =:]+(?P<word>[a-z-]+)\b[,;|]? ?", re.IGNORECASE
)
_LISTED: Final = re.compile(
    r"\s*(?:[-rwx.+]{10,11} .*? )?(?P<value>\d{2,15}) +(?:\S+ +){0,3}?\S+\.(?:log|out|txt|err)\s*$"
)
_READY: Final = re.compile(
    r"(?:[-=#>*✓✔✅ ]*)(?:(?:[Ss]erver|[Ss]ervice|[Mm]odel|[Ee]ndpoint|vLLM|SGLang|[Hh]ealth(?: check)?)\b[^\n]{0,40}?(?:is )?)?"
    r"(?:READY|[Rr]eady|HEALTHY|[Hh]ealthy|is up|UP)\b(?:[ !.:]*| after\b.*| in\b.*| \(.*\))$"
)
_GAVE_UP: Final = re.compile(
    r"(?:[-=#>*✗❌ ]*)(?:TIMEOUT|TIMED OUT|[Tt]imed? ?out|FAILED|[Ff]ailed|GIVING UP|[Gg]iving up|ERROR: (?:server|timeout))\b.{0,80}$"
)


# A rule that a loop draws between two looks: `-----`, `=== tail of server.log ===`, `### check`.
_RULE: Final = re.compile(r"([-=#*~_])\1{2,}(?: ?[^\n]{0,60}? ?\1{2,})?\s*$")
_BLANK: Final = re.compile(r"\s*$")
_DATE_LINE: Final = re.compile(
    r"(?:[A-Z][a-z]{2} )[A-Z][a-z]{2} +\d{1,2} \d\d:\d\d:\d\d(?: [AP]M)?(?: [A-Z]{2,5})? \d{4}\s*$"
)


@dataclass(slots=True)
class Snapshot:
    """What one look showed."""

    line: int
    time: float | None
    health: int | None = None
    size: str | None = None
    restarts: int | None = None
    pid: str | None = None
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


_DATED: Final = re.compile(
    r"\d\d:\d\d:\d\d[ .,\]]|\bpid[=: ]\d+|\[\d{2,7}\]|^\d+\.\d\d\.\d{3}\.\d{3} "
)


def _stamp(text: str) -> tuple[float | None, str] | None:
    match = _ELAPSED.match(text)
    if match and any(match[g] for g in "hms"):
        value = float(match["h"] or 0) * 3600 + float(match["m"] or 0) * 60 + float(match["s"] or 0)
        return value, match["rest"]
    match = _WAITING.match(text) or _SECONDS.match(text)
    if match:
        return float(match["s"]), match["rest"]
    match = _ATTEMPT.match(text)
    if match:
        return None, match["rest"]
    return None


def _clock(text: str) -> tuple[float | None, str] | None:
    match = _CLOCK.match(text)
    if not match:
        return None
    stamp = parse(match["a"] or match["b"] or match["c"] or match["e"])
    return (stamp.seconds, match["rest"]) if stamp else None


def looks_like_transcript(head: bytes) -> bool:
    """True when the first lines are snapshots under a polling loop's stamps."""
    lines = [ANSI.sub("", raw.decode("utf-8", "replace")) for raw in head.split(b"\n")]
    elapsed = [t for t, _ in filter(None, map(_stamp, lines)) if t is not None]
    if len(elapsed) >= 2 and elapsed == sorted(elapsed):
        return True
    numbers = [int(m["n"]) for m in map(_ATTEMPT.match, lines) if m]
    if len(numbers) >= 3 and numbers == list(range(numbers[0], numbers[0] + len(numbers))):
        return True
    stamped = [s for s in map(_clock, lines) if s]
    polled = sum(
        bool(_HEALTH.match(rest) or _SIZE.match(rest) or _HEALTH_AT_END.match(rest))
        for _, rest in stamped
    )
    if len(stamped) >= 3 and polled >= 2 and polled * 2 >= len(stamped):
        return True
    if sum(_DATE_LINE.match(line) is not None for line in lines) >= 3:
        return True
    filled = [line for line in lines if line.strip()]
    # A server's own stamped lines all say something else; a loop's say the same each time.
    says = {re.sub(r"\d+", "0", rest).strip() for _, rest in stamped}
    if len(stamped) >= 3 and len(says) <= len(stamped) // 2 and len(stamped) < len(filled):
        blocks = "\n".join("\0" if _clock(line) else line for line in filled).split("\0")
        bodies = [b.strip() for b in blocks if b.strip()]
        if len(bodies) >= 3 and len(set(bodies)) <= len(bodies) // 2:
            return True
    if _ruled(filled):
        return True
    # No stamps at all: bare bars that repeat, closed by the loop's own word.
    closing = any(_READY.match(line) or _GAVE_UP.match(line) for line in filled[-2:])
    bars = [line for line in filled if find_bar(line)]
    return closing and len(filled) <= 400 and len(bars) >= 2 and len(bars) >= len(filled) - 2


def _ruled(filled: list[str]) -> bool:
    """True when one and the same rule stands between looks that mostly show the same last bar.

    Without a bar it may be the rule that a shell loop draws before each start.
    """
    rules = [line.strip() for line in filled if _RULE.match(line)]
    if len(rules) < REPEATS - 1 or len(set(rules)) > 1:
        return False
    marked = "\n".join("\0" if _RULE.match(line) else line for line in filled)
    bodies = [body.strip() for body in marked.split("\0") if body.strip()]
    return (
        len(bodies) >= REPEATS
        and len(set(bodies)) <= len(bodies) // 2
        and all(find_bar(body.rpartition("\n")[2]) for body in bodies)
    )


class Transcript:
    """The snapshots of one transcript, in order."""

    def __init__(self, sample: bytes = b"") -> None:
        self.snapshots: list[Snapshot] = []
        self._line = 1
        self._clocked: bool | None = None
        lines = [ANSI.sub("", raw.decode("utf-8", "replace")) for raw in sample.split(b"\n")]
        stamped = any(_stamp(line) or _clock(line) for line in lines)
        ruled = any(_RULE.match(line) for line in lines)
        self._between = None if stamped else _RULE if ruled else _BLANK

    def feed(self, region: bytes) -> None:
        """Add whole physical lines."""
        for raw in region.split(b"\n")[: region.count(b"\n") + (not region.endswith(b"\n"))]:
            self._take(ANSI.sub("", raw.decode("utf-8", "replace")))
            self._line += 1

    def _take(self, text: str) -> None:
        stamped = (None, "") if self._between and self._between.match(text) else _stamp(text)
        if stamped is None and self._clocked is not False:
            stamped = _clock(text) if self._is_clocked(text) else None
        elif stamped is not None and self._clocked is None:
            self._clocked = False
        if stamped is not None and len(self.snapshots) < MAX_SNAPSHOTS:
            self.snapshots.append(Snapshot(self._line, self._onward(stamped[0])))
            text = stamped[1]
        if not self.snapshots:
            self.snapshots.append(Snapshot(self._line, None))
        snapshot = self.snapshots[-1]
        text = self._facts(snapshot, text)
        if text and len(snapshot.lines) < MAX_LINES:
            snapshot.lines.append((self._line, text))

    def _onward(self, time: float | None) -> float | None:
        """Carry a clock without a date over midnight."""
        last = next((s.time for s in reversed(self.snapshots) if s.time is not None), None)
        if time is not None and last is not None and self._clocked:
            while time < last - DAY / 2:
                time += DAY
        return time

    def _is_clocked(self, text: str) -> bool:
        found = _clock(text)
        if found is None:
            return False
        if self._clocked is None:
            self._clocked = True
        return True

    def _facts(self, snapshot: Snapshot, text: str) -> str:
        """Take health codes, sizes and the loop's own words off a line; return what is the log's."""
        for _ in range(6):
            health, size, pid = _HEALTH.match(text), _SIZE.match(text), _PID.match(text)
            count, word = _RESTARTS.match(text), _WORD.match(text)
            found = health or size or pid or count or word
            if found is None:
                break
            if health:
                snapshot.health = int(health["code"] or health["bare"])
            elif size:
                snapshot.size = f"{snapshot.size or ''} {size['value']}"
            elif pid:
                snapshot.pid = pid["pid"]
            elif count:
                snapshot.restarts = int(count["count"])
            elif word:
                snapshot.ready = snapshot.ready or word["word"].lower() in ("healthy", "ready")
            text = text[found.end() :]
        ending = (
            _HEALTH_AT_END.match(text) if snapshot.health is None and not snapshot.lines else None
        )
        if ending:
            snapshot.health = int(ending["code"])
            return ""
        for pattern, code in _BODIES if snapshot.health is None else ():
            if len(text) < 400 and pattern.search(text):
                snapshot.health = code
                return ""
        listed = _LISTED.match(text)
        if listed and snapshot.size is None:
            snapshot.size = listed["value"]
            return ""
        if _READY.match(text.strip()) and text.strip():
            snapshot.ready = True
            return ""
        if _GAVE_UP.match(text.strip()) and text.strip():
            return ""
        return text

    # -- judging

    def play(self, stream: Stream) -> Finding:
        """Feed what each snapshot shows anew to `stream`; return what only the snapshots tell."""
        finding = Finding()
        seen: list[str] = []
        fallen: dict[tuple[str, float | None], float] = {}
        stream.recognise(text for snapshot in self.snapshots for text in snapshot.texts)
        for snapshot, before in zip(self.snapshots, [None, *self.snapshots], strict=False):
            sign = _restarted(before, snapshot) if before is not None else None
            if sign is not None:
                stream.note_restart(snapshot.line, sign)
                seen = []
            stamp = Stamp(snapshot.time, Frame.FULL) if snapshot.time is not None else None
            for line, text in self._fresh(snapshot, seen):
                stream.take_polled(Line(line, Enveloped(text, stamp), hit=True))
            if snapshot.texts:
                seen = snapshot.texts
            if stamp is not None:
                stream.last_time = stream.clock.seconds(stamp)
            self._bar_fell(snapshot, fallen, finding, stream)
            self._health(snapshot, stream, stamp, finding)
        self._repeats(finding)
        return finding

    def _fresh(self, snapshot: Snapshot, seen: list[str]) -> Iterator[tuple[int, str]]:
        texts = snapshot.texts
        keep = 0
        for size in range(min(len(seen), len(texts)), 0, -1):
            if seen[-size:] == texts[:size]:
                keep = size
                break
        if not keep and seen and texts and seen[-1] in texts:
            keep = texts.index(seen[-1]) + 1
        for line, text in snapshot.lines[keep:]:
            for part in text.split("\r"):
                if part.strip():
                    yield line, part

    def _bar_fell(
        self,
        snapshot: Snapshot,
        tops: dict[tuple[str, float | None], float],
        finding: Finding,
        stream: Stream,
    ) -> None:
        bar = snapshot.last_bar()
        if bar is None or not bar.label:
            return
        key = (bar.label, bar.total)
        before = tops.get(key)
        tops[key] = bar.done
        run = stream.machine.open
        if (
            before is not None
            and bar.done < before
            and run is not None
            and run.phase in (Phase.LOAD_WEIGHTS, Phase.UNKNOWN)
        ):
            finding.falls.append(snapshot.line)

    def _health(
        self, snapshot: Snapshot, stream: Stream, stamp: Stamp | None, finding: Finding
    ) -> None:
        up = snapshot.ready or (snapshot.health is not None and 200 <= snapshot.health < 300)
        if up:
            stream.note(Kind.READY, snapshot.line, "the health check answered", stamp)
            finding.answered = True
        elif snapshot.health == 0 and stream.machine.open is not None and stream.machine.open.ready:
            stream.note(Kind.CASCADE, snapshot.line, "the health check is refused again", stamp)

    def _repeats(self, finding: Finding) -> None:
        """Count identical snapshots that end in a finished bar without date or pid."""
        if any(s.ready or (s.health or 0) // 100 == 2 for s in self.snapshots):
            return
        filled = [s for s in self.snapshots if s.lines]
        best: list[Snapshot] = []
        current: list[Snapshot] = []
        for snapshot in filled:
            if current and snapshot.texts == current[-1].texts:
                current.append(snapshot)
            else:
                current = [snapshot]
            if len(current) > len(best):
                best = list(current)
        if len(best) < 2 or (
            best[-1] is not (filled[-1] if filled else None)
            and best[-1] is not (filled[-2] if len(filled) > 1 else None)
        ):
            return
        bar = best[-1].last_bar()
        if bar is None or not bar.finished or best[-1].dated():
            return
        sizes = {s.size for s in best}
        if len(sizes) == 1 and None not in sizes:
            finding.did_not_grow = True
            return
        cut = (
            len(best) == REPEATS - 1
            and best[-1] is not filled[-1]
            and _cut_short(filled[-1], best[-1])
        )
        if len(best) < REPEATS and not cut:
            return
        first, last = best[0].time, filled[-1].time if cut else best[-1].time
        needed = max(REPEAT_FLOOR_S, REPEAT_BAR_FACTOR * (bar.elapsed_s or 0.0))
        if first is not None and last is not None and last - first < needed:
            return
        finding.repeats = len(best) + cut
        finding.repeat_line = best[0].line


def _restarted(before: Snapshot, now: Snapshot) -> str | None:
    """Return what beside the lines shows that the server was started again between two looks."""
    if _shrank(before, now):
        return "the log became smaller"
    if before.pid is not None and now.pid is not None and before.pid != now.pid:
        return f"the process id changed from {before.pid} to {now.pid}"
    if before.restarts is not None and now.restarts is not None and now.restarts > before.restarts:
        return f"the supervisor's count rose to {now.restarts}"
    return None


def _shrank(before: Snapshot, now: Snapshot) -> bool:
    sizes = [(s.size or "").strip() for s in (before, now)]
    return all(size.isdigit() for size in sizes) and int(sizes[1]) < int(sizes[0])


def _cut_short(cut: Snapshot, whole: Snapshot) -> bool:
    """True when a last snapshot is the beginning of the same text, broken off."""
    text = "\n".join(cut.texts).rstrip(". …")
    return bool(text) and "\n".join(whole.texts).startswith(text)


@dataclass(slots=True)
class Finding:
    """What the snapshots say beyond the lines in them."""

    repeats: int = 0
    repeat_line: int = 0
    falls: list[int] = field(default_factory=list)
    did_not_grow: bool = False
    answered: bool = False
