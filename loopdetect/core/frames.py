"""Looks that no known stamp parts: a line that comes again and again between tails that overlap."""

from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise
from typing import Final

from loopdetect.core.looks import HEALTH, is_answer

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
_DIGITS: Final = re.compile(r"\d+")


def masked(line: str) -> str:
    """Return a line with every number in it the same."""
    return _DIGITS.sub("0", line[: 2 * MAX_WIDTH].strip())


def header_of(lines: list[str]) -> str | None:
    """Return the masked line that parts looks at one growing log, None where there is none.

    Two tails of one log overlap: what the later one begins with is what the earlier one ended in.
    Starts that a shell loop writes one after the other never do.
    """
    masks = [masked(line) for line in lines]
    counts = Counter(
        mask for mask in masks if "0" in mask and len(mask) <= MAX_WIDTH and _DECORATED.match(mask)
    )
    for mask, count in counts.most_common(TRIED):
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


def before_codes(lines: list[str]) -> str | None:
    """Return the masked line that is followed by a health check's code each time, None where there is none."""
    masks = [masked(line) for line in lines]
    counts = Counter(
        mask for mask in masks if "0" in mask and len(mask) <= MAX_WIDTH and _DECORATED.match(mask)
    )
    for mask, count in counts.most_common(TRIED):
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


def parting(lines: list[str]) -> str | None:
    """Return the masked line with which each look of a loop begins, None where there is none."""
    return header_of(lines) or title_of(lines) or before_codes(lines)


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


def grown(before: list[str], now: list[str]) -> bool:
    """True when `now` goes on where `before` ended, and shows some of its end once more."""
    if before == now or len(now[0]) < MIN_WIDTH:
        return False
    return any(
        before[at:] == now[: len(before) - at]
        for at, line in enumerate(before)
        if line == now[0] and len(before) - at <= len(now)
    )
