"""How a polling loop writes: its stamps, its rules and prompts between looks at a server."""

from __future__ import annotations

import json
import re
from typing import Final

from loopdetect.core.block import HEADER
from loopdetect.core.envelope import uncoloured
from loopdetect.core.late import Late
from loopdetect.core.looks import (
    CHATTER,
    CODE_LINE,
    GAVE_UP,
    HEALTH,
    HEALTH_AT_END,
    NOT_YET,
    READY,
    SIZE,
    is_answer,
    is_look,
)
from loopdetect.core.progress import find_bar
from loopdetect.core.timestamp import Frame, Stamp, parse

REPEATS: Final = 3

_SPAN: Final = (
    r"(?:(?P<h>\d+) ?h ?)?(?:(?P<m>\d+) ?m(?:in)? ?)?(?:(?P<s>\d+(?:\.\d+)?) ?s(?:ec(?:onds)?)?)?"
)
_ELAPSED: Final = Late(
    r"[-=#>* ]{0,8}\[? ?(?:t ?[=+] ?|T\+|\+)?" + _SPAN + r"(?: elapsed)? ?\](?: |$)(?P<rest>.*)",
    re.DOTALL,
)
# Without brackets it takes more: what the loop saw must follow.
_BARE: Final = Late(
    r"[-=#>* ]{0,8}(?:[Aa]fter |[Ee]lapsed[ =:]+|t ?[=+] ?|T\+|\+)?"
    + _SPAN
    + r"(?: elapsed)?[ :,|-]+(?P<rest>.*)",
    re.DOTALL,
)
# A stamp between signs of its own: `--- t+30s ---`, `(20s)`, `== 2m30s ==`.
_SIGNED: Final = Late(
    r"(?:[-=#*>~]{2,8} *|\()(?:t ?[=+] ?|T\+|\+)?" + _SPAN + r"(?: elapsed)?"
    r"(?: *[-=#*<~]{2,8}|\)|$)(?: |$)(?P<rest>.*)",
    re.DOTALL,
)
_WAITING: Final = Late(
    r"(?:\[?\w*\]? ?)(?:[Ss]till )?[Ww]aiting\b[^\n\d]{0,60}?\(?(?P<s>\d+) ?s(?:ec(?:onds)?)?(?: elapsed)?\)?[ .…]*(?P<rest>.*)",
    re.DOTALL,
)
_SECONDS: Final = Late(r"(?:t[=+])?(?P<s>\d{1,6}) ?s(?:ec)?: +(?P<rest>.*)", re.DOTALL)
# `elapsed 00:05:00`, `Checked at +90s:`
_ELAPSED_CLOCK: Final = Late(
    r"[-=#>*\[( ]{0,8}(?:[Ee]lapsed|[Ww]aited)[ =:]+(?P<h>\d\d?):(?P<m>\d\d):(?P<s>\d\d)[\])]?[ ,:|-]*(?P<rest>.*)",
    re.DOTALL,
)
_AT: Final = Late(
    r"[-=#>* ]{0,8}(?:[A-Za-z]+ ){1,3}(?:at|after) (?:t ?= ?|T)?\+?"
    + _SPAN
    + r"(?: elapsed)?:[-=#* ]*(?P<rest>)$"
)
_ALONE: Final = Late(
    r"[-=#>* ]{0,8}(?:t ?[=+] ?|T\+|\+|[Aa]fter |[Ee]lapsed[ =:]+)"
    + _SPAN
    + r"(?: elapsed)?[:.]?(?P<rest>)\s*$"
)
_IN_BRACKETS: Final = Late(
    r"\((?:t ?[=+] ?|T?\+|after )?" + _SPAN + r"(?: elapsed)?\)[: ]*(?P<rest>.*)", re.DOTALL
)
_EPOCH: Final = Late(r"(?P<s>1[4-9]\d{8})(?:\.\d+)?[ :,|]+(?P<rest>.*)", re.DOTALL)
# A waiting program's own log: `2026-01-01 09:00:00,123 INFO wait: not ready after 10s`.
_LOGGED: Final = Late(
    r"(?P<t>\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d)(?:[.,]\d{3})?Z?(?: -)? \[?(?:INFO|WARN(?:ING)?|DEBUG)\]?(?: -)? +(?:[\w.-]+(?: -|:) )?(?P<rest>.*)",
    re.DOTALL,
)
_NUMBERED: Final = Late(r"\[?#?(?P<n>\d{1,4})(?:/\d+)?\]?[:.)]? +(?P<rest>.*)", re.DOTALL)
_TRIES_AT_END: Final = Late(r".{0,160}?[(\[](?P<n>\d{1,4})(?:/| of )\d{1,4}[)\]][ .]*$")
_ATTEMPT: Final = Late(
    r"[-=#>* ]{0,8}\[?(?:[Aa]ttempt|ATTEMPT|[Tt]ry|[Rr]etry|[Cc]heck|[Pp]oll|[Pp]robe) ?#?(?P<n>\d+)(?: ?(?:/|of) ?\d+)?\]?(?:[:.…]+| -)? ?(?P<rest>.*)",
    re.DOTALL,
)
_CLOCK: Final = Late(
    r"(?:[-=#>* ]{0,8})(?:\[(?P<a>(?:\d{4}-\d\d-\d\d[ T])?\d\d:\d\d:\d\d(?:Z|[+-]\d\d:?\d\d)?)\]"
    r"|(?P<b>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:Z|[+-]\d\d:?\d\d)?)(?=:? |$):?"
    r"|(?P<e>\d\d:\d\d:\d\d)(?! .*\b(?:POST|PUT|DELETE|INFO|WARN(?:ING)?|ERROR|DEBUG)\b)"
    r"(?= .*(?:\.\.\.|…|[-=]>|[:=]) ?(?:000|[2-5]\d\d)\s*$)"
    r"|(?P<c>(?:[A-Z][a-z]{2} )?[A-Z][a-z]{2} +\d{1,2} \d\d:\d\d:\d\d(?: [A-Z]{2,5})? \d{4})(?=[-=#<* ]*$))[-=#<* ]{0,8}(?P<rest>.*)",
    re.DOTALL,
)
# A clock alone between decorations, or before what the loop saw.
_PLAIN_CLOCK: Final = Late(
    r"(?P<left>[-=#>*]{0,8}) ?(?P<f>(?:\d{4}-\d\d-\d\d[ T])?\d\d:\d\d:\d\d)(?![.,:]\d)(?P<right>[-=#<* ,|:]*)(?P<rest>.*)",
    re.DOTALL,
)
_NAMED: Final = Late(r"[\w.@:() -]{1,40}? ?[-=#*~]{2,}\s*$")
_EVERY: Final = Late(
    r"Every \d+(?:\.\d+)?s: .*?(?P<d>[A-Z][a-z]{2} [A-Z][a-z]{2} +\d{1,2} \d\d:\d\d:\d\d \d{4})\s*$"
)
_DOTS: Final = Late(r"[.…·]{5,}\s*$")
# What a step of a CI job writes round the loop's own lines.
CI_STAMP: Final = Late(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{7}Z ")
CI_MARK: Final = Late(r"(?:##\[|section_(?:start|end):\d+:|\[Pipeline\] )")
# A prompt, and the command that looks at a server.
_SHELL: Final = r"(?:[\w.-]+@[\w.-]+[: ]\S*|\([\w.-]+\) ?\S*|\[[^\]]{1,60}\])? ?[$#❯] +"
PROMPT: Final = Late(
    _SHELL + r"(?:sleep (?P<s>\d+) ?(?:&&|;) ?)?"
    r"(?P<command>(?:sudo )?(?:tail|head|curl|wget|cat|grep|journalctl|ssh|docker (?:compose )?logs|kubectl [^|]*\blogs)\b.*)"
)
SLEEP: Final = Late(_SHELL + r"sleep (?P<s>\d+)\s*$")
# A rule that a loop draws between two looks: `-----`, `=== tail of server.log ===`, `### check`.
RULE: Final = Late(r"([-=#*~_])\1{2,}(?: ?[^\n]{0,60}? ?\1{2,})?\s*$")
BLANK: Final = Late(r"\s*$")
_DATE_LINE: Final = Late(
    r"[-=#>* ]{0,8}(?:[A-Z][a-z]{2} )[A-Z][a-z]{2} +\d{1,2} \d\d:\d\d:\d\d(?: [AP]M)?(?: [A-Z]{2,5})? \d{4}[-=#<*\s]*$"
)


_TIME_KEYS: Final = ("t", "elapsed", "elapsed_s", "seconds", "after", "waited")
_CODE_KEYS: Final = ("http", "http_code", "code", "status", "health")
_TEXT_KEYS: Final = ("last", "last_line", "line", "log", "tail")


def peeled(lines: list[str]) -> list[str]:
    """Return the lines of a CI step's log without the step's own stamps and marks, others as they are."""
    stamped = sum(bool(CI_STAMP.match(line)) for line in lines)
    if stamped >= REPEATS and stamped * 5 >= len(lines) * 4:
        lines = [CI_STAMP.sub("", line, 1) for line in lines]
    return ["" if CI_MARK.match(line) else line for line in lines]


def from_json(text: str) -> str:
    """Return a look that was written as a JSON object in the form of a stamped line, others as they are."""
    if not text.startswith("{") or not text.rstrip().endswith("}"):
        return text
    try:
        look = json.loads(text)
    except (ValueError, RecursionError):
        return text
    time = next((look[k] for k in _TIME_KEYS if isinstance(look.get(k), int | float)), None)
    code = next((str(look[k]) for k in _CODE_KEYS if k in look), "")
    if time is None or not (code.isdigit() and len(code) == 3):
        return text
    said = next((look[k] for k in _TEXT_KEYS if isinstance(look.get(k), str)), "")
    return f"[{time:g}s] http={code} {said}"


def stamp_of(text: str) -> tuple[float | None, str] | None:
    """Return the seconds since the loop began, where a line tells them, and what follows; None without a stamp."""
    text = from_json(text)
    match = _ELAPSED.match(text) or _SIGNED.match(text)
    if not (match and any(match[g] for g in "hms")):
        match = _BARE.match(text)
        told = match and any(match[g] for g in "hms")
        match = match if match and told and is_look(match["rest"]) else None
    if match:
        return _seconds(match), match["rest"]
    match = _WAITING.match(text) or _SECONDS.match(text)
    if match:
        return float(match["s"]), match["rest"]
    for pattern in (_ELAPSED_CLOCK, _AT, _ALONE):
        match = pattern.match(text)
        if match and any(match[g] for g in "hms"):
            return _seconds(match), match["rest"]
    match = _ATTEMPT.match(text)
    if match:
        inner = _IN_BRACKETS.match(match["rest"])
        if inner and any(inner[g] for g in "hms"):
            return _seconds(inner), inner["rest"]
        return None, match["rest"]
    if _TRIES_AT_END.match(text) and NOT_YET.match(text):
        return None, ""
    match = _NUMBERED.match(text)
    if match and (CODE_LINE.match(match["rest"]) or is_answer(match["rest"])):
        return None, match["rest"]
    return None


def _seconds(match: re.Match[str]) -> float:
    return float(match["h"] or 0) * 3600 + float(match["m"] or 0) * 60 + float(match["s"] or 0)


def _number(text: str) -> int | None:
    """Return the number of the try that a stamped line tells of, or None if it tells of none."""
    match = _ATTEMPT.match(text) or _TRIES_AT_END.match(text) or _NUMBERED.match(text)
    return int(match["n"]) if match else None


def clock_of(text: str) -> tuple[Stamp, str] | None:
    """Return the wall-clock time that a loop's line begins with and what follows; None without one."""
    match = _CLOCK.match(text)
    if match:
        stamp = parse(match["a"] or match["b"] or match["c"] or match["e"])
        return (stamp, match["rest"]) if stamp else None
    epoch, logged = _EPOCH.match(text), _LOGGED.match(text)
    if epoch and is_look(epoch["rest"]):
        return Stamp(float(epoch["s"]), Frame.FULL), epoch["rest"]
    every, plain = _EVERY.match(text), _PLAIN_CLOCK.match(text)
    if logged and not every and (NOT_YET.match(logged["rest"]) or READY.match(logged["rest"])):
        stamp = parse(logged["t"])
        return (stamp, logged["rest"]) if stamp else None
    framed = plain is not None and _framed(plain)
    if plain and not (framed or is_look(plain["rest"])):
        plain = None
    stamp = parse(every["d"]) if every else parse(plain["f"]) if plain else None
    return (stamp, plain["rest"] if plain and not framed else "") if stamp else None


def _framed(plain: re.Match[str]) -> bool:
    """True for a clock between signs, with or without a name beside it."""
    return bool(plain["left"]) and (
        bool(_NAMED.match(plain["rest"])) or (bool(plain["right"].strip()) and not plain["rest"])
    )


def _is_mark(line: str) -> bool:
    """True for a line that holds a time and nothing else."""
    if _DATE_LINE.match(line) or _EVERY.match(line):
        return True
    plain = _PLAIN_CLOCK.match(line)
    return plain is not None and _framed(plain)


def _marked(lines: list[str]) -> bool:
    """True when times stand alone between looks; whole tracebacks between them are a shell loop's starts."""
    if sum(_is_mark(line) for line in lines) < REPEATS:
        return False
    marked = "\n".join("\0" if _is_mark(line) else line for line in lines)
    bodies = [body.strip() for body in marked.split("\0") if body.strip()]
    return not bodies or any(HEADER not in body for body in bodies)


def looks_like_transcript(head: bytes) -> bool:
    """True when the first lines are snapshots under a polling loop's stamps."""
    lines = peeled([uncoloured(raw.decode("utf-8", "replace")) for raw in head.split(b"\n")])
    looks = [(line, stamp) for line in lines if (stamp := stamp_of(line)) is not None]
    elapsed = [time for _, (time, _) in looks if time is not None]
    if len(elapsed) >= 2 and elapsed == sorted(elapsed):
        return True
    tries = [(n, line, rest) for line, (_, rest) in looks if (n := _number(line)) is not None]
    numbers = [n for n, _, _ in tries]
    if len(numbers) >= REPEATS and numbers == list(range(numbers[0], numbers[0] + len(numbers))):
        return _at_the_top(tries[0][1], lines) or any(is_look(rest) for _, _, rest in tries)
    if prompted(lines) or coded(lines):
        return True
    # Where a logger writes most of its lines about something else, it is no loop's.
    logged = [m["rest"] for m in map(_LOGGED.match, lines) if m]
    waits = sum(is_answer(rest) for rest in logged)
    mixed = waits * 4 < len(logged) * 3
    stamped = [s for line in lines if not (mixed and _LOGGED.match(line)) and (s := clock_of(line))]
    polled = sum(
        bool(HEALTH.match(rest) or SIZE.match(rest) or HEALTH_AT_END.match(rest) or is_answer(rest))
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
            return not all(HEADER in body for body in bodies)
    if _ruled(filled) or _worded(filled):
        return True
    # No stamps at all: bare bars that repeat, closed by the loop's own word.
    closing = any(READY.match(line) or GAVE_UP.match(line) for line in filled[-2:])
    bars = [line for line in filled if find_bar(line)]
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
    typed = [re.sub(r"\d+", "0", m["command"]).strip() for m in map(PROMPT.match, lines) if m]
    return max(map(typed.count, set(typed)), default=0)


def coded(lines: list[str]) -> bool:
    """True when there is little but status codes, one a line."""
    filled = [line for line in lines if line.strip()]
    codes = sum(bool(CODE_LINE.match(line)) for line in filled)
    return codes >= REPEATS and codes * 5 >= len(filled) * 4


def _worded(filled: list[str]) -> bool:
    """True when a loop says in words, or with dots, that it waits, and what came of it."""
    if not any(is_answer(line) or GAVE_UP.match(line) for line in filled[-2:]):
        return False
    waits = [is_answer(line) for line in filled[:-1]]
    chatter = sum(bool(CHATTER.match(line)) for line in filled)
    if sum(waits) >= REPEATS - 1 and (sum(waits) + chatter) * 5 >= len(filled) * 4:
        return True
    dots = any(_DOTS.search(line) for line in filled)
    return (sum(waits) >= REPEATS and sum(waits) * 2 >= len(filled)) or (
        dots and any(waits) and len(filled) <= 10
    )
