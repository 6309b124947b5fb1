"""How a polling loop writes: what tells its output from a server's log."""

from __future__ import annotations

import json
import re
from collections import Counter
from itertools import pairwise
from typing import Final

from loopdetect.core.envelope import uncoloured
from loopdetect.core.frames import masked, parting
from loopdetect.core.heads import all_starts, head_of, is_start
from loopdetect.core.late import Late
from loopdetect.core.looks import (
    CHATTER,
    CODE_LINE,
    HEALTH,
    HEALTH_AT_END,
    SIZE,
    is_answer,
    is_look,
    is_watched,
)
from loopdetect.core.progress import find_bar
from loopdetect.core.sayings import says_gave_up, says_not_yet, says_of_process, says_ready
from loopdetect.core.stamps import (
    clock_of,
    is_mark,
    logged_by,
    number_of,
    said_by,
    stamp_of,
    wrapped,
)

REPEATS: Final = 3
WORDS_AFTER: Final = 15

_DOTS: Final = Late(r"[.…·]{5,}\s*$")
# What a step of a CI job writes round the loop's own lines.
CI_STAMP: Final = Late(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{7}Z ", begins="0123456789")
CI_MARK: Final = Late(r"(?:##\[|section_(?:start|end):\d+:|\[Pipeline\] )", begins="#s[")
# A prompt, and the command that looks at a server.
_SHELL: Final = (
    r"(?:(?:[\w.-]+@[\w.-]+[: ]\S*|\([\w.-]+\) ?\S*|\[[^\]]{1,60}\])? ?[$#❯] +|\+{1,3} )"
)
PROMPT: Final = Late(
    r"(?:" + _SHELL + r"|[●⏺•] (?:Bash|Shell|Terminal|Run)\()(?:sleep (?P<s>\d+) ?(?:&&|;) ?)?"
    r"(?P<command>(?:sudo )?(?:tail|head|curl|wget|cat|grep|journalctl|ssh|docker (?:compose )?logs|kubectl [^|]*\blogs)\b.*)"
    r"|(?:>>>|In \[\d+\]:) (?P<call>.*(?:\b(?:requests|httpx|urllib|urlopen)\b|!(?:tail|curl) ).*)",
    holds=("$ ", "# ", "❯ ", "+ ", "Bash(", "Shell(", "Terminal(", "Run(", ">>>", "In ["),
)
# What `set -x` prints of a script's own commands.
TRACE: Final = Late(r"\+{1,3} (?=[\w'\"(\[:./])", begins="+")
# What a loop puts before each line that it shows: `    server: `, `  log: `, `  | `.
QUOTE: Final = Late(
    r"^\s{1,8}(?:(?:server|log|logs|tail|output|stdout|stderr|vllm|sglang|ollama|llama-server): |[|│└>] ?)(?=\S)"
)
# What an agent draws before the output of its command.
GUTTER: Final = Late(r"  ⎿ {1,2}| {5}")
SLEEP: Final = Late(_SHELL + r"sleep (?P<s>\d+)\s*$")
# A rule that a loop draws between two looks: `-----`, `=== tail of server.log ===`, `### check`.
RULE: Final = Late(r"([-=#*~_])\1{2,}(?: ?[^\n]{0,60}? ?\1{2,})?\s*$", begins="-=#*~_")
BLANK: Final = Late(r"\s*$")
# A playbook prints the lines of a log as a list of strings.
LIST_OPENS: Final = Late(r'\s+"[\w.]*(?:msg|lines|stdout\w*|stderr\w*)": \[\s*$', holds=('": [',))
_QUOTED: Final = Late(r'\s+(".*"),?\s*$')


def peeled(lines: list[str]) -> list[str]:
    """Return the lines of a CI step's log without the step's own stamps and marks, others as they are."""
    stamped = sum(bool(CI_STAMP.match(line)) for line in lines)
    if stamped >= REPEATS and stamped * 5 >= len(lines) * 4:
        lines = [CI_STAMP.sub("", line, 1) for line in lines]
    return ["" if CI_MARK.match(line) else line for line in lines]


def traced(lines: list[str]) -> bool:
    """True when a shell shows its commands, the same ones again and again."""
    commands = [re.sub(r"\d+", "0", line) for line in lines if TRACE.match(line)]
    return len(commands) >= 2 * REPEATS and len(set(commands)) * 2 <= len(commands)


def unquoted(text: str) -> str:
    """Return a string of a printed list as the line that it was, others as they are."""
    match = _QUOTED.match(text)
    if match is None:
        return text
    try:
        return str(json.loads(match[1]))
    except ValueError:
        return match[1][1:-1]


def marks_of(lines: list[str]) -> list[str]:
    """Return the lines that hold a time and nothing else; none where a time stands before most lines."""
    marks = [line for line in lines if is_mark(line)]
    if len(marks) < REPEATS:
        return []
    shapes = Counter(masked(mark).rstrip("-=#*~ ") for mark in marks)
    commonest = shapes.most_common(1)[0][0]
    begun = sum(masked(line).startswith(commonest) for line in lines)
    return marks if begun * 2 <= len(marks) * 3 else []


def _marked(lines: list[str]) -> bool:
    """True when times stand alone between looks; whole tracebacks between them are a shell loop's starts."""
    marks = marks_of(lines)
    return bool(marks) and not _starts_between(lines, set(marks))


def _starts_between(lines: list[str], heads: set[str], least: int = 1) -> bool:
    return all_starts(lines, [line in heads for line in lines], least)


def looks_like_transcript(head: bytes) -> bool:
    """True when the first lines are snapshots under a polling loop's stamps."""
    lines = peeled([uncoloured(raw.decode("utf-8", "replace")) for raw in head.split(b"\n")])
    looks = [(line, stamp) for line in lines if (stamp := stamp_of(line)) is not None]
    elapsed = [time for _, (time, _) in looks if time is not None]
    if len(elapsed) >= 2 and elapsed == sorted(elapsed):
        return True
    tries = [(n, line, rest) for line, (_, rest) in looks if (n := number_of(line)) is not None]
    numbers = [n for n, _, _ in tries]
    if (
        len(numbers) >= REPEATS
        and _counts(numbers)
        and not _mere_words(lines)
        and not _starts_between(lines, {line for _, line, _ in tries}, len(tries) - 1)
    ):
        top = _at_the_top(tries[0][1], lines)
        return top or any(is_look(rest) or says_not_yet(line) for _, line, rest in tries)
    if prompted(lines) or coded(lines) or rewrapped(lines):
        return True
    # Where a logger writes most of its lines about something else, it is no loop's.
    logged = [m["rest"] for m in map(logged_by, lines) if m]
    waits = sum(said_by(rest) is not None for rest in logged)
    mixed = waits * 4 < len(logged) * 3
    stamped = [s for line in lines if not (mixed and logged_by(line)) and (s := clock_of(line))]
    polled = sum(
        bool(
            HEALTH.match(rest)
            or SIZE.match(rest)
            or HEALTH_AT_END.match(rest)
            or is_answer(rest)
            or is_watched(rest)
            or says_of_process(rest)
        )
        for _, rest in stamped
    )
    if len(stamped) >= 3 and polled >= 2 and polled * 2 >= len(stamped):
        return True
    if _marked(lines):
        return True
    filled = [line for line in lines if line.strip()]
    # A server's own stamped lines all say something else; a loop's say the same each time.
    says = {re.sub(r"\d+", "0", rest).strip() for _, rest in stamped}
    if len(stamped) >= 3 and len(says) <= len(stamped) // 2 and len(stamped) < len(filled):
        blocks = "\n".join("\0" if clock_of(line) else line for line in filled).split("\0")
        bodies = [b.strip() for b in blocks if b.strip()]
        if len(bodies) >= 3 and len(set(bodies)) <= len(bodies) // 2:
            return not all(is_start(body) for body in bodies)
    if _ruled(filled) or _worded(filled):
        return True
    # No stamps at all: bare bars that repeat, closed by the loop's own word.
    closing = any(says_ready(line) or says_gave_up(line) for line in filled[-2:])
    bars = [line for line in filled if find_bar(line)]
    if parting(lines) or head_of(lines) is not None:
        return True
    return closing and len(filled) <= 400 and len(bars) >= 2 and len(bars) >= len(filled) - 2


def _ruled(filled: list[str]) -> bool:
    """True when one and the same rule stands between looks that mostly show the same last bar.

    Without a bar it may be the rule that a shell loop draws before each start.
    """
    rules = [line.strip() for line in filled if RULE.match(line)]
    if len(rules) < REPEATS - 1 or len(set(rules)) > 1:
        return False
    marked = "\n".join("\0" if RULE.match(line) else line for line in filled)
    bodies = [body.strip() for body in marked.split("\0") if body.strip()]
    return (
        len(bodies) >= REPEATS
        and len(set(bodies)) <= len(bodies) // 2
        and all(find_bar(body.rpartition("\n")[2]) for body in bodies)
    )


def _counts(numbers: list[int]) -> bool:
    """True when numbers go up or down by the same step."""
    steps = {b - a for a, b in pairwise(numbers)}
    return len(steps) == 1 and steps != {0}


def _mere_words(lines: list[str]) -> bool:
    """True when a program only said that it waits, looked at nothing, and then wrote its own log."""
    if any(LIST_OPENS.match(line) for line in lines):
        return False
    at = [n for n, line in enumerate(lines) if stamp_of(line) is not None]
    filled = [bool(line.strip()) for line in lines]
    return sum(filled[at[0] : at[-1]]) <= len(at) and sum(filled[at[-1] + 1 :]) > WORDS_AFTER


def _at_the_top(line: str, lines: list[str]) -> bool:
    """True when a line comes before anything that a server could have written."""
    before = [text for text in lines[: lines.index(line)] if text.strip()]
    return len(before) <= 5


def prompted(lines: list[str]) -> bool:
    """True when the same look at a server was typed again and again."""
    return _prompts(lines) >= REPEATS or (
        _prompts(lines) == REPEATS - 1 and any(m and m["s"] for m in map(PROMPT.match, lines))
    )


def _prompts(lines: list[str]) -> int:
    """Return how often the commonest look was typed at a prompt."""
    looks = [m["command"] or m["call"] for m in map(PROMPT.match, lines) if m]
    typed = [re.sub(r"\d+", "0", look).strip() for look in looks]
    return max(map(typed.count, set(typed)), default=0)


def rewrapped(lines: list[str]) -> bool:
    """True when a script's own log shows the last lines of the server's again and again."""
    shown = [(w[0].seconds, w[2]) for w in map(wrapped, lines) if w and w[1] and len(w[2]) > 20]
    return len(set(shown)) - len({text for _, text in shown}) >= REPEATS


def coded(lines: list[str]) -> bool:
    """True when there is little but status codes, one a line."""
    filled = [line for line in lines if line.strip()]
    codes = sum(bool(CODE_LINE.match(line)) for line in filled)
    return codes >= REPEATS and codes * 5 >= len(filled) * 4


def _worded(filled: list[str]) -> bool:
    """True when a loop says in words, or with dots, that it waits, and what came of it."""
    waits = [is_answer(line) for line in filled[:-1]]
    if len(filled) <= 10 and filled[1:] and any(map(_dotted_ready, filled)) and any(waits):
        return True
    if not any(is_answer(line) or says_gave_up(line) for line in filled[-2:]):
        return False
    chatter = sum(bool(CHATTER.match(line)) for line in filled)
    if sum(waits) >= REPEATS - 1 and (sum(waits) + chatter) * 5 >= len(filled) * 4:
        return True
    dots = any(_DOTS.search(line) for line in filled)
    return (sum(waits) >= REPEATS and sum(waits) * 2 >= len(filled)) or (
        dots and any(waits) and len(filled) <= 10
    )


def _dotted_ready(line: str) -> bool:
    """True for the word that follows a loop's dots on their own line."""
    return line.startswith("...") and says_ready(line)
