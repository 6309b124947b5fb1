"""Heads of looks that no known stamp explains: the same words each time, and a time that goes up.

How this works: the beginning of a line is cut at the first time in it (elapsed or on a clock). Lines
that are cut alike, whose times never go down, are the heads of looks where what follows them is what
a loop sees, or where they stand alone and what stands between them shows one log again and again.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise
from typing import Final

from loopdetect.core.block import HEADER
from loopdetect.core.counts import Counted, counted
from loopdetect.core.frames import bodies_of, grown, masked
from loopdetect.core.late import Late
from loopdetect.core.looks import is_fact, is_look
from loopdetect.core.progress import find_bar
from loopdetect.core.sayings import plain
from loopdetect.core.timestamp import Frame, Stamp, parse

ENOUGH: Final = 3
MANY: Final = 4
MAX_LOOKED_AT: Final = 160
_HEAD: Final = Late(
    r"(?P<words>\W{0,10}(?:\d{1,4}(?:(?:[).:\]]|/\d{1,4}\]?[.:]?) | (?=[(\[@|])))?(?:\[?#?[A-Za-z][\w.#/-]{0,14}\]?\W{1,4}(?:#?\d{1,4}(?:/\d{1,4})?\W{1,4})??){0,5}?\W{0,3}?(?:\d{1,2}[./]\d{1,2}[./](?:\d{2,4})?,? +)?)"
    r"(?:(?P<clock>(?:(?:[A-Z][a-z]{2} )?[A-Z][a-z]{2} +\d{1,2} |\d{4}-\d\d-\d\d[T ])?\d?\d:\d\d:\d\d(?: [AP]M\b)?)(?:[.,]\d+(?![\d,;|]))?(?: ?(?:Z|[A-Z]{2,5}|[+-]\d\d:?\d\d)(?![A-Za-z]))?(?: \d{4})?"
    r"|(?P<mm>\d{1,3}):(?P<ss>[0-5]\d)(?![\d:])"
    r"|(?=\d+(?:\.\d+)? ?[hms](?:in|ec|\d|\b))(?:(?P<h>\d+) ?h(?![A-Za-z]) ?)?(?:(?P<m>\d+(?:\.\d+)?) ?m(?:in(?:utes?)?)?(?![A-Za-z]) ?)?(?:(?P<s>\d+(?:\.\d+)?) ?s(?:ec(?:onds?)?)?(?![A-Za-z]))?"
    r"|(?P<of>\d+)(?=/\d+ ?s)|(?P<n>(?<=[=:] )\d+(?![\d.:/%])|(?<==)\d+(?![\d.:/%])))"
    r"(?: ?(?:/|of) ?\d+(?: ?s(?:ec(?:onds?)?)?| ?m(?:in)?)?)?(?: (?:elapsed|passed|so far|in))?(?P<right>[^\w\s]*\s*[^\w\s(\[]{0,8}\s*)(?P<rest>.*)$"
)
_CALLED: Final = Late(r"(?i).*\b(?:elapsed|waited|t|time|after|seconds?|secs?|slept)\W*$")
# The first line of a program whose lines have no times of their own.
_FIRST: Final = Late(r"(?:main: )?build(?::| =) \d+ \(")
# A line of a server's, with the time or the process that it has from its own logger.
_OWN: Final = Late(
    r"\W{0,4}(?:\(\w+ pid=\d|\[?\d{4}-\d\d-\d\d[ T]|\[\d\d/\d\d/\d{4}-|(?:INFO|WARNING|ERROR):? +\d\d-\d\d )"
)
# What programs print first, and what they or the script that started them print last.
_BEGUN: Final = Late(
    r"Automatically detected platform|API server version|server_args=|Started server process|Starting gunicorn|Starting check and download|TensorRT-LLM version|server config env="
)
_ENDED: Final = Late(
    r"(?i:exit(?:ed|s|ing)?\b.{0,30}\b(?:code|status)\b|exit code|\bKilled\b|\(core dumped\)|startup failed)|Engine core initialization failed|\w(?:Error|Exception): "
)
_STARTS: Final = Late(r".*(?i:start|run\b|launch|boot|attempt to)")


class Head:
    """The shape of a loop's heads, and how a line of that shape is read."""

    __slots__ = ("count", "shape")

    def __init__(self, shape: str, count: int) -> None:
        self.shape = shape
        self.count = count

    def answer(self, text: str) -> int | None:
        """Return the code that a head itself tells: none, as what follows it does."""
        return None

    def read(self, text: str) -> tuple[Stamp, bool, str] | None:
        """Return a head's time, whether it is on a clock, and what follows; None for another line."""
        found = _cut(text)
        return found[1:] if found is not None and found[0] == self.shape else None


def _cut(text: str) -> tuple[str, Stamp, bool, str] | None:
    """Cut a line at the first time in its first words."""
    match = _HEAD.match(plain(text[: 4 * MAX_LOOKED_AT]))
    if match is None:
        return None
    kind = (
        "clock"
        if match["clock"]
        else "mm"
        if match["mm"]
        else "n"
        if match["n"] or match["of"]
        else "span"
    )
    shape = f"{masked(match['words']).replace('|', '/')}|{kind}|{match['right'].strip()}"
    rest = match["rest"]
    if match["clock"]:
        stamp = parse(match["clock"])
        return (shape, stamp, True, rest) if stamp is not None else None
    if match["n"] and not _CALLED.match(match["words"]):
        return None  # a number of looks is no time
    if match["mm"]:
        seconds = float(match["mm"]) * 60 + float(match["ss"])
    elif match["n"] or match["of"]:
        seconds = float(match["n"] or match["of"])
    elif match["h"] or match["m"] or match["s"]:
        seconds = sum(float(match[g] or 0) * by for g, by in (("h", 3600), ("m", 60), ("s", 1)))
    else:
        return None
    return shape, Stamp(seconds, Frame.FULL), False, rest


def head_of(lines: list[str]) -> Head | Counted | None:
    """Return the shape of the lines that begin the looks of a loop, None where there is none."""
    shapes: dict[str, list[int]] = defaultdict(list)
    cut = [_cut(line) if line.strip() else None for line in lines]
    for line, one in enumerate(cut):
        if one is not None:
            shapes[one[0]].append(line)
    for shape, at in sorted(shapes.items(), key=lambda item: -len(item[1])):
        found = [one for one in cut if one is not None and one[0] == shape]
        times = [stamp.seconds for _, stamp, _, _ in found]
        if len(at) < ENOUGH or times != sorted(times) or len(set(times)) < len(times) - 1:
            continue
        rests = [rest for *_, rest in found]
        alone = not any(rest.strip() for rest in rests)
        even = len(at) > ENOUGH and _even(times)
        if even and (alone or _tails(rests)) and not found[0][2]:
            return Head(shape, len(at))
        if even and found[0][2] and len(at) > MANY and _tails(rests) and _stands(rests):
            return Head(shape, len(at))
        if _seen(rests) or _bars(shape, rests) or (alone and _between(lines, at)):
            return Head(shape, len(at))
    return _counted(lines)


def _counted(lines: list[str]) -> Counted | None:
    """Return heads that only count, unless whole starts stand between them."""
    found = counted(lines)
    if found is None or all_starts(lines, [found.read(line) is not None for line in lines]):
        return None
    return found


def _even(times: list[float]) -> bool:
    """True when seconds that stand alone go up by the same step, as those of a loop that sleeps do."""
    steps = [b - a for a, b in pairwise(times)]
    return min(steps) >= 1 and max(steps) <= 1.5 * min(steps)


def _tails(rests: list[str]) -> bool:
    """True when what follows are lines of a log that has a margin of its own, and bars."""
    shown = [rest for rest in rests if rest.strip()]
    own = sum(bool(_OWN.match(rest)) or find_bar(rest.strip(" |-.")) is not None for rest in shown)
    return len(shown) * 2 > len(rests) and own * 4 >= 3 * len(shown)


def _stands(rests: list[str]) -> bool:
    """True when the same line is shown more than once in a row, as no logger that counts its lines does."""
    return sum(a == b and bool(a.strip()) for a, b in pairwise(rests)) * 4 >= len(rests)


def _seen(rests: list[str]) -> bool:
    """True when what follows is mostly what a loop sees: a code, a state, a word."""
    return sum(is_fact(rest) or is_look(rest) for rest in rests) * 3 >= 2 * len(rests)


def _bars(shape: str, rests: list[str]) -> bool:
    """True when one and the same bar stands behind every head; a mere clock before it is a logger's."""
    words, kind, _ = shape.split("|", 2)
    if kind == "clock" and not any(char.isalpha() for char in words):
        return False
    bars = [found[0].label for rest in rests if (found := find_bar(rest.strip(" |-.")))]
    return len(bars) == len(rests) and len(set(bars)) == 1


def _between(lines: list[str], at: list[int]) -> bool:
    """True when what stands between the heads shows the same log again and again."""
    if any(_STARTS.match(lines[n]) for n in at):
        return False
    bodies = bodies_of(lines, at)
    if all(is_start("\n".join(body)) for body in bodies):
        return False
    pairs = [(a, b) for a, b in pairwise(bodies) if a and b]
    return len(pairs) >= ENOUGH - 1 and sum(_same_log(a, b) for a, b in pairs) * 2 >= len(pairs)


def all_starts(lines: list[str], heads: list[bool], least: int = 1) -> bool:
    """True when all that stands between heads, `least` times or more, is a program's start to its death."""
    marked = "\n".join("\0" if head else line for line, head in zip(lines, heads, strict=True))
    bodies = [body.strip() for body in marked.split("\0") if body.strip()]
    return len(bodies) >= least and all(map(is_start, bodies))


def is_start(body: str) -> bool:
    """True when what stands between two times is what a program wrote from its start to its death."""
    if HEADER in body or _FIRST.match(body) is not None:
        return True
    lines = body.splitlines()
    return (
        len(lines) > ENOUGH
        and any(map(_BEGUN.search, lines[:4]))
        and any(map(_ENDED.search, lines[-3:]))
    )


def _same_log(before: list[str], now: list[str]) -> bool:
    if before == now or grown(before, now):
        return len(before) <= MAX_LOOKED_AT
    first, second = find_bar(before[-1]), find_bar(now[-1])
    return bool(first and second and first[0].label == second[0].label and first[0].label)
