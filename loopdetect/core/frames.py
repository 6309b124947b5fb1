"""Looks that no known stamp parts: a line that comes again and again between tails that overlap."""

from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise
from typing import Final

from loopdetect.core.late import Late
from loopdetect.core.looks import HEALTH, is_answer
from loopdetect.core.timestamp import DAY, parse

ENOUGH: Final = 3
TRIED: Final = 6
MIN_WIDTH: Final = 25
MAX_WIDTH: Final = 160
OWN: Final = 8
_DECORATED: Final = re.compile(r"[-=#>*~+$❯\[(]|[A-Za-z]")
TOP: Final = 3
MAX_PAGE: Final = 80
_STARTS: Final = re.compile(r"(?i)start|launch|boot|attempt|\brun\b|round|\btry")
_LOGGED: Final = re.compile(r"\s*\[?(?:TRACE|DEBUG|INFO|WARN(?:ING)?|ERROR|CRITICAL|FATAL)\b")
# A command that looks at a server, as a prompt, an agent or a loop shows it before what it printed.
_COMMAND: Final = Late(
    r"(?!\+ )(?:.{0,90}?[$#>❯%('\"`•⏺●➜&;|:—-] ?|.{0,20}\b(?:[Rr]an|[Rr]un(?:ning)?|[Ee]xec\w*|[Cc]ommand|[Cc]md):? +)?(?:sudo )?"
    r"(?:sleep \S+ ?(?:&&|;) ?)?(?:timeout \S+ )?(?:ssh .{1,60}? )?['\"]?(?:tail -|head -|curl |wget |(?:docker|podman)(?: compose|-compose)? (?:logs|ps|inspect|stats)\b"
    r"|(?:kubectl|oc) .{0,60}?\b(?:logs|get|describe|events)\b|journalctl |systemctl (?:--\S+ )*status |supervisorctl status|pm2 (?:list|ls|logs|status)|pgrep |ps (?:aux|-)|tmux capture-pane"
    r"|nvidia-smi|rocm-smi|squeue|sacct|Get-Content )",
    holds=(
        "tail -", "head -", "curl ", "wget ", "docker", "podman", "kubectl ", "oc ", "journalctl ", "ctl ", "pm2 ",
        "pgrep ", "ps ", "tmux ", "-smi", "squeue", "sacct", "Get-Content ",
    ),
)  # fmt: skip
_SLEEPS: Final = Late(r"\bsleep (?P<n>\d+)(?P<unit>[smh]?)\b")
# Looks without any head: a line of the log that was shown comes again, though later ones came after it.
AGAIN: Final = "\0again"
BACK: Final = 3
BACK_S: Final = 5.0
MAX_BACK: Final = 80
_TIME: Final = Late(r"(?:\d{4}-)?(?:\d\d-\d\d[ T])?(?P<t>\d\d:\d\d:\d\d)")
_DIGITS: Final = re.compile(r"\d+")


def masked(line: str) -> str:
    """Return a line with every number in it the same."""
    return _DIGITS.sub("0", line[: 2 * MAX_WIDTH].strip())


def header_of(lines: list[str], masks: list[str], commonest: list[tuple[str, int]]) -> str | None:
    """Return the masked line that parts looks at one growing log, None where there is none.

    Two tails of one log overlap: what the later one begins with is what the earlier one ended in.
    Starts that a shell loop writes one after the other never do.
    """
    for mask, count in commonest:
        if count >= ENOUGH and _overlap(lines, masks, mask):
            return mask
    return None


def title_of(lines: list[str]) -> str | None:
    """Return the masked line that begins each page of a status script, None where there is none.

    Each page says, beside what it shows of the log, whether the server answers.
    """
    filled = [line for line in lines if line.strip()]
    for first in filled[:TOP]:
        if (
            len(first) > MAX_WIDTH
            or not any(char.isalpha() for char in first)
            or _STARTS.search(first)
            or _LOGGED.match(first)
        ):
            continue
        pages: list[list[str]] = []
        for line in filled:
            if line == first:
                pages.append([])
            elif pages:
                pages[-1].append(line)
        whole = pages[:-1]
        if len(pages) >= ENOUGH and all(map(_page, whole)):
            return masked(first)
    return None


def before_codes(
    lines: list[str], masks: list[str], commonest: list[tuple[str, int]]
) -> str | None:
    """Return the masked line that is followed by a health check's code each time, None where there is none."""
    for mask, count in commonest:
        if count < ENOUGH:
            return None
        after = [lines[n + 1] for n, own in enumerate(masks[:-1]) if own == mask]
        heads = {line for line, own in zip(lines, masks, strict=True) if own == mask}
        if len(heads) == count and all(map(HEALTH.match, after)):
            return mask
    return None


def _page(lines: list[str]) -> bool:
    """True when a page is short and holds an answer, or the want of one, and something of the log."""
    return (
        1 < len(lines) <= MAX_PAGE and any(map(is_answer, lines)) and not all(map(is_answer, lines))
    )


def command_of(lines: list[str]) -> str | None:
    """Return the masked line in which the same command looks again and again, None where there is none."""
    counts = Counter(
        masked(line) for line in lines if len(line) <= MAX_WIDTH and _COMMAND.match(line)
    )
    mask, count = counts.most_common(1)[0] if counts else ("", 0)
    at = [n for n, line in enumerate(lines) if masked(line) == mask] if count >= ENOUGH else []
    looks = [lines[a + 1 : b] for a, b in pairwise(at)]
    shown = [look for look in looks if any(line.strip() for line in look)]
    return mask if shown and len(shown) == len(looks) and max(map(len, shown)) <= MAX_PAGE else None


def slept(line: str) -> float:
    """Return how many seconds a command sleeps before it looks."""
    match = _SLEEPS.search(line)
    return float(match["n"]) * {"m": 60, "h": 3600}.get(match["unit"], 1) if match else 0.0


class Again:
    """Notices where a log that is shown goes back to what was shown before."""

    __slots__ = ("_last", "_latest", "_places", "_since")

    def __init__(self) -> None:
        self._places: dict[str, int] = {}
        self._last = -1
        self._latest: float | None = None
        self._since = 0

    def goes_back(self, line: str) -> bool:
        """True when a line with a time of its own was shown before others that are later."""
        self._since += 1
        match = _TIME.search(line) if len(line) >= MIN_WIDTH else None
        stamp = parse(match["t"]) if match else None
        if stamp is None:
            return False
        at = self._places.setdefault(line.rstrip(), len(self._places))
        gap = self._latest - stamp.seconds if self._latest is not None else 0.0
        back = at < self._last and BACK_S <= gap < DAY / 2 and self._since <= MAX_BACK
        if at != self._last:
            self._last = at
        self._latest = max(self._latest or 0.0, stamp.seconds) if gap < DAY / 2 else stamp.seconds
        self._since = 0 if back else self._since
        return back


def parting(lines: list[str], timed: bool = False) -> str | None:
    """Return the masked line with which each look of a loop begins, None where there is none.

    It is AGAIN where looks begin with no line of their own; neither that nor a command is asked for
    where the loop tells its times.
    """
    masks = [masked(line) for line in lines]
    counts = Counter(
        mask for mask in masks if "0" in mask and len(mask) <= MAX_WIDTH and _DECORATED.match(mask)
    )
    commonest = counts.most_common(TRIED)
    found = (
        header_of(lines, masks, commonest)
        or title_of(lines)
        or before_codes(lines, masks, commonest)
    )
    if found is not None or timed:
        return found
    return command_of(lines) or (AGAIN if _goes_back(lines) else None)


def _goes_back(lines: list[str]) -> bool:
    again = Again()
    return sum(map(again.goes_back, lines)) >= BACK


def _overlap(lines: list[str], masks: list[str], mask: str) -> bool:
    blocks: list[list[str]] = []
    inside: list[str] = []
    headers: set[str] = set()
    for line, own in zip(lines, masks, strict=True):
        if own == mask:
            blocks.append([])
            headers.add(line)
        elif blocks and line.strip():
            blocks[-1].append(line.rstrip())
            inside.append(own[:OWN])
    if inside.count(mask[:OWN]) * 10 > len(inside):
        return False  # it begins like the log's own lines
    pairs = [(a, b) for a, b in pairwise(blocks) if a and b]
    if len(pairs) < ENOUGH - 1 or len(headers) < ENOUGH:
        return False
    more = sum(grown(a, b) for a, b in pairs)
    same = sum(a == b for a, b in pairs)
    return more >= 2 and (more + same) * 2 >= len(pairs)


def bodies_of(lines: list[str], at: list[int]) -> list[list[str]]:
    """Return the filled lines that stand behind each head, up to the next one."""
    return [
        [line.rstrip() for line in lines[a + 1 : b] if line.strip()]
        for a, b in pairwise([*at, len(lines)])
    ]


def grown(before: list[str], now: list[str]) -> bool:
    """True when `now` goes on where `before` ended, and shows some of its end once more."""
    if before == now or len(now[0]) < MIN_WIDTH:
        return False
    return any(
        before[at:] == now[: len(before) - at]
        for at, line in enumerate(before)
        if line == now[0] and len(before) - at <= len(now)
    )
