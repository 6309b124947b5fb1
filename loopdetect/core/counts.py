"""Heads of looks that only count: a number that goes up by the same step before, or on, each look.

How this works: the beginning of each line is cut before what looks like a server's own line and
after each number in it. Beginnings that are alike but for their numbers, one of which goes up by
the same step each time, are heads where what stands between them, or behind them, is the same log
again and again. A server's own lines carry times too, but those come when something happens.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from loopdetect.core.block import HEADER
from loopdetect.core.frames import MAX_PAGE, OWN, bodies_of, grown, masked
from loopdetect.core.late import Late
from loopdetect.core.looks import HEALTH, LOGGED, is_answer
from loopdetect.core.progress import find_bar
from loopdetect.core.sayings import plain, says_not_yet
from loopdetect.core.timestamp import Frame, Stamp

ENOUGH: Final = 3
MAX_HEAD: Final = 120
MAX_LINES: Final = 400
TRIED: Final = 12
CUTS: Final = 6
FIRST: Final = 5
EVEN: Final = 1.6
LAG_S: Final = 3.0
_LOOKS: Final = Late(
    r"(?i).*\b(?:wait|check|poll|look|prob|health|status|minute|elapsed|still|loop|cycle|sleep|sleeping|watchdog|heartbeat)|.*\b(?:code|up|alive|ready|ts|time)[=:]|[^\w\s]|.*\d ?/ ?\d"
)
MAX_TAIL: Final = 8
_CLOCKED: Final = Late(r"\W?(?:\d{4}-)?(?:\d\d-\d\d)?[ T]?\d\d:\d\d:\d\d")
# `2m05s`, `1 min 10 sec`: what follows the minutes.
_SECONDS: Final = Late(r" ?m(?:in(?:ute)?s?)? ?(?P<s>\d{1,2}) ?s(?:ec(?:ond)?s?)?\b")
_MERE: Final = Late(r"\s*0[\s:.)|>-]*$|.*\w\[0\]:\s*$")
_DRAWN: Final = re.compile(r"[#=.░▒▓█■□▪_>-]{2,}")
_INNER: Final = Late(r"(?<![\d:])\d\d:\d\d:\d\d(?![\d:])")
_BAR: Final = Late(r"(?P<label>[A-Z]\w+ing [^%|]{3,60}?):? +\d{1,3}%")
_JOINED: Final = Late(r"[\w%./]")
_CODES: Final = frozenset({"000", "200", "204", "404", "429", "500", "502", "503", "504"})
_NUMBER: Final = Late(r"\d+(?:[.:]\d+)*")
_AFTER: Final = Late(r"[^\s\w]*\s*(?:(?:s|sec|secs|seconds|min|mins|minutes|m|elapsed)\b[^\s\w]*\s*)*(?:[|:—–>=·-]+\s*)?(?:(?:last|tail|log)(?: (?:log|line))*[:=]\s*)?")  # fmt: skip
_STARTS: Final = Late(
    r"(?i).*(?<!since )(?<!to )(?<!the )(?<!after )\b(?:re)?(?:start|launch|boot)(?:ing|ed|s)?\b|.*\brun\b|.*\b(?-i:GET|POST|HEAD|PUT)\b"
)
_UNIT: Final = Late(
    r" ?(?:(?P<min>m(?:in(?:ute)?s?)?\b)|(?P<h>h(?:ours?)?\b)|s(?:ec(?:ond)?s?)?\b|(?:seg|sek|secondes|сек|с\b)|[秒초])|/\d+ ?s"
)
_NAMED: Final = Late(r"(?i).*\b(?:elapsed|waited|t|after|time|slept|seconds)\W{0,3}$")
_RESULT: Final = Late(r"(?i).*(?:rc|exit(?:[ _-]?(?:code|status))?|ret|curl)[=: ]{1,2}$")


@dataclass(frozen=True, slots=True)
class Counted:
    """The shape of heads that count, and how a line of that shape is read."""

    count: int
    pattern: re.Pattern[str]
    time: int | None
    code: int | None
    result: int | None

    def read(self, text: str) -> tuple[Stamp | None, bool, str] | None:
        """Return a head's time, whether it is on a clock, and what follows; None for another line."""
        text = seen(text)
        match = self.pattern.match(text)
        if match is None:
            return None
        numbers = _numbers(match[0])
        if self.time is None or self.time >= len(numbers):
            return None, False, text[match.end() :]
        seconds, clock = numbers[self.time].seconds
        return Stamp(seconds, Frame.DAY_TIME if clock else Frame.FULL), clock, text[match.end() :]

    def answer(self, text: str) -> int | None:
        """Return the health check's code that a head tells, None where it tells none."""
        match = self.pattern.match(seen(text))
        numbers = _numbers(match[0]) if match else []
        if self.code is not None and self.code < len(numbers):
            return int(numbers[self.code].text)
        if self.result is not None and self.result < len(numbers):
            return 200 if int(numbers[self.result].text) == 0 else 0
        return None


@dataclass(frozen=True, slots=True)
class _Number:
    text: str
    before: str
    after: str

    @property
    def value(self) -> float:
        parts = self.text.split(":")
        if len(parts) == 1:
            return float(self.text) if self.text.count(".") < 2 else 0.0
        seconds = 0.0
        for part in parts:
            seconds = seconds * 60 + (float(part) if part.count(".") < 2 else 0.0)
        return seconds

    @property
    def seconds(self) -> tuple[float, bool]:
        """The number as a time, and whether that is one of day."""
        if ":" in self.text:
            return self.value, self.text.count(":") == 2 and not _SECONDS.match(self.after)
        unit = _UNIT.match(self.after)
        scale = 60.0 if unit and unit["min"] else 3600.0 if unit and unit["h"] else 1.0
        return self.value * scale, False

    @property
    def timed(self) -> bool:
        """True for a time: on a clock, with a unit, or called one."""
        return ":" in self.text or bool(_UNIT.match(self.after) or _NAMED.match(self.before))


def seen(line: str) -> str:
    """Return what a terminal shows of a line that a spinner drew anew, without the spinner."""
    return plain(line.rstrip("\r ").rpartition("\r")[2])


def counted(lines: list[str]) -> Counted | None:
    """Return the shape of the heads that count, None where there is none."""
    groups: dict[str, list[tuple[int, int]]] = defaultdict(list)
    said = []
    lines = [seen(line) for line in lines[:MAX_LINES]]
    for n, line in enumerate(lines):
        if not line.strip() or (LOGGED.match(line) and not _CLOCKED.match(line)):
            continue  # a server's own
        for end in _cuts(line):
            groups[_key(line[:end])].append((n, end))
        if len(line) <= MAX_HEAD and _says(line):
            said.append(n)
    worded = _shape_of_words(lines, said)
    if worded is not None:
        return worded
    ranked = sorted(groups.items(), key=lambda item: (-len(item[1]), item[1][0][0], -len(item[0])))
    for mask, at in ranked[:TRIED]:
        if len(at) < ENOUGH:
            return None
        found = _shape(lines, mask, at)
        if found is not None:
            return found
    return None


def _cuts(line: str) -> list[int]:
    """Return where a head may end: before a server's own line, and after each number."""
    if line[0] in "{\t" or line.startswith("  File "):
        return []
    own = [match.start() for match in LOGGED.finditer(line[: 2 * MAX_HEAD])]
    if own[:1] == [0] and not own[1:]:
        return []
    own = [start for start in own if start]
    end = own[0] if own else min(len(line.rstrip()), MAX_HEAD)
    if end > MAX_HEAD:
        return []
    ends = []
    for match in _NUMBER.finditer(line):
        if match.end() > end:
            break
        after = _AFTER.match(line[match.end() : end])
        ends.append(match.end() + (after.end() if after else 0))
    return list(dict.fromkeys([*ends[:CUTS], end, *own[1:3]])) if ends else []


def _numbers(text: str) -> list[_Number]:
    found: list[_Number] = []
    for match in _NUMBER.finditer(text):
        before, after = text[: match.start()], text[match.end() :]
        spans = _SECONDS.match(after)
        # Minutes and the seconds behind them are one number.
        told = f"{match[0]}:{int(spans['s']):02d}" if spans else match[0].rstrip(".:")
        if found and _SECONDS.match(found[-1].after):
            told = found[-1].text
        found.append(_Number(told, before, after))
    return found


def _shape(lines: list[str], mask: str, at: list[tuple[int, int]]) -> Counted | None:
    heads = [lines[n][:end] for n, end in at]
    mask = masked(heads[0])
    if _MERE.match(mask):
        return None  # the number of a line
    if _STARTS.match(mask) and not says_not_yet(mask) and "ait" not in mask:
        return None
    first = zip(*map(_numbers, heads[:FIRST]), strict=False)
    if not any(
        _rises(column) or _rises(column[::-1]) or (_in_minutes(column[0]) and _grows(column))
        for column in first
    ):
        return None
    columns = list(zip(*map(_numbers, heads), strict=False))
    rising = [k for k, column in enumerate(columns) if _rises(column)]
    falling = [k for k, column in enumerate(columns) if _rises(column[::-1])]
    if not rising and not falling:
        return None
    rests = [lines[n][end:].strip() for n, end in at]
    if any(rests) and not _behind(lines, rests, [columns[k] for k in rising + falling]):
        return None
    counts = {*rising, *falling}
    codes = [k for k, column in enumerate(columns) if k not in counts and all(map(_coded, column))]
    results = [k for k, column in enumerate(columns) if _RESULT.match(column[0].before)]
    told = bool(codes or results or _LOOKS.match(mask) or any(columns[k][0].timed for k in counts))
    if not any(rests) and not _between(lines, [n for n, _ in at], told):
        return None
    times = [k for k in rising if columns[k][0].timed]
    clocks = [k for k in times if ":" in columns[k][0].text]
    spans = [k for k in times if k not in clocks]
    return Counted(
        len(at),
        _pattern(heads[0]),
        next(iter([*spans, *clocks]), None),
        codes[-1] if codes else None,
        results[0] if results else None,
    )


def _says(line: str) -> bool:
    """True for a line that is nothing but a loop's word for a look."""
    return (is_answer(line) or bool(HEALTH.match(line))) and not LOGGED.search(line)


def _shape_of_words(lines: list[str], said: list[int]) -> Counted | None:
    """Return the shape of looks that begin with the same word each time, None where there is none."""
    if len(said) < ENOUGH or not _between(lines, said, True):
        return None
    words = {masked(lines[n]): lines[n] for n in said}
    pattern = "|".join(_pattern(word).pattern for word in words.values())
    return Counted(len(said), re.compile(rf"(?=\s*(?:{pattern})$)"), None, None, None)


def _key(head: str) -> str:
    """Return what is the same in all heads of one shape, whatever its numbers and however long its drawing."""
    return _DRAWN.sub("~", masked(head))


def _pattern(head: str) -> re.Pattern[str]:
    parts = [_DRAWN.split(part) for part in re.split(r"\d+", head.strip())]
    drawn = [r"[#=.░▒▓█■□▪_>-]+".join(_spaced(bit) for bit in part) for part in parts]
    return re.compile(r" *" + r"\d+".join(drawn) + r"\s*")


def _spaced(text: str) -> str:
    return re.sub(r"(?:\\ )+", r" *", re.escape(text))


def _coded(number: _Number) -> bool:
    return number.text in _CODES and not _JOINED.match(number.after)


def _rises(column: tuple[_Number, ...]) -> bool:
    """True when numbers go up by the same step, or minutes by one now and then."""
    steps = [b.value - a.value for a, b in pairwise(column)]
    if min(steps) > 0:
        middle = sorted(steps)[len(steps) // 2]
        if middle < 1 and not _in_minutes(column[0]):
            return False  # no loop looks that often
        even = sum(middle / EVEN <= step <= middle * EVEN for step in steps)
        return even * 4 >= 3 * len(steps)
    rises = sum(step > 0 for step in steps)
    return min(steps) == 0 and len(set(steps)) == 2 and rises >= ENOUGH and _in_minutes(column[0])


def _grows(column: tuple[_Number, ...]) -> bool:
    return all(a.value <= b.value for a, b in pairwise(column))


def _in_minutes(number: _Number) -> bool:
    unit = _UNIT.match(number.after)
    return number.text.count(":") == 1 or bool(unit and unit["min"])


def _behind(lines: list[str], rests: list[str], rising: list[tuple[_Number, ...]]) -> bool:
    """True when what stands behind the heads is a log's: the same line for a while, bars, older lines."""
    filled = sum(bool(line.strip()) for line in lines[:MAX_LINES])
    shown = [rest for rest in rests if rest]
    if len(rests) * 5 < filled * 4 or len(shown) * 2 < len(rests):
        return False
    labels = [_label(rest) for rest in shown]
    own = sum(bool(label or LOGGED.search(rest)) for label, rest in zip(labels, shown, strict=True))
    if own * 2 < len(shown):
        return False
    same = sum(a == b and bool(a) for a, b in pairwise(rests))
    bars = [label for label in labels if label]
    again = len(bars) - len(set(bars))
    clocks = [column for column in rising if ":" in column[0].text]
    if len(clocks) < len(rising):
        return same + again >= ENOUGH - 1
    # A collector's clock stands before bars too; what it does not do is show a line twice.
    late = same > 0 and _lags([number.value for number in clocks[0]], rests)
    return same >= ENOUGH - 1 or late


def _lags(shown: list[float], rests: list[str]) -> bool:
    """True when lines are shown some time after they were written, now more and now less."""
    lags = []
    for seconds, rest in zip(shown, rests, strict=True):
        inner = _INNER.search(rest)
        if inner:
            lags.append(seconds - _Number(inner[0], "", "").value)
    return len(lags) >= ENOUGH and max(lags) - min(lags) >= LAG_S


def _label(rest: str) -> str:
    named = _BAR.search(rest)
    found = None if named else find_bar(rest)
    return named["label"] if named else found[0].label if found else ""


def _between(lines: list[str], at: list[int], told: bool) -> bool:
    """True when what stands between the heads, that speak of looking or not, shows one log again."""
    bodies = bodies_of(lines, at)
    inside = [masked(line)[:OWN] for body in bodies for line in body]
    if inside.count(masked(lines[at[0]])[:OWN]) * 10 > len(inside):
        return False  # it begins like the log's own lines
    # A look shows what the server wrote; what stands before the first look was written by itself.
    earlier = sum(bool(LOGGED.search(line) or _label(line)) for line in lines[: at[0]])
    if earlier > max(map(len, bodies[:2])):
        return False
    bodies = _without_rows(bodies) if told else bodies
    if _streams(bodies):
        return False
    if not any(LOGGED.search(line) or _label(line) for body in bodies for line in body):
        return False  # nothing of a server's is shown
    pairs = [(a, b) for a, b in pairwise(bodies) if a and b]
    if len(pairs) < ENOUGH - 1 or max(len(a) for a, _ in pairs) > MAX_PAGE:
        return False
    same = sum(_same_log(a, b) for a, b in pairs)
    least = len(pairs) / 2 if not told else min(len(pairs) / 3, ENOUGH)
    if same >= least or (same >= ENOUGH and same * 3 >= len(pairs)):
        return True
    return told and len(pairs) >= ENOUGH and _alike(bodies[:-1])


def _without_rows(bodies: list[list[str]]) -> list[list[str]]:
    """Take out the rows that each look shows beside the log, with other numbers each time."""
    counts = Counter(row for body in bodies for row in {masked(line) for line in body})
    texts = Counter(row for row, _ in {(masked(line), line) for body in bodies for line in body})
    rows = {row for row, n in counts.items() if n * 5 >= len(bodies) * 4 and texts[row] * 2 > n}
    kept = [[line for line in body if masked(line) not in rows] for body in bodies]
    return kept if sum(map(bool, kept)) * 2 > len(bodies) else bodies


def _streams(bodies: list[list[str]]) -> bool:
    """True when each state of a bar is written once, as by the server itself."""
    texts = [line for body in bodies for line in body]
    bars = [found[0].done for text in texts if (found := find_bar(text))]
    steps = [b - a for a, b in pairwise(bars)]
    return (
        len(bars) > ENOUGH
        and len(set(texts)) == len(texts)
        and steps.count(1) * 10 >= 9 * len(steps)
    )


def _alike(bodies: list[list[str]]) -> bool:
    """True when nearly all bodies are as long as the others, as tails are, and short."""
    shown = [body for body in bodies if body]
    length, count = Counter(map(len, shown)).most_common(1)[0]
    starts = any(HEADER in line for body in shown for line in body)
    return length <= MAX_TAIL and count * 5 >= len(shown) * 4 and not starts


def _same_log(before: list[str], now: list[str]) -> bool:
    if before == now or grown(before, now):
        return True
    label = _label(before[-1])
    return bool(label) and label == _label(now[-1])
