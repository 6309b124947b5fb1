"""How a polling loop writes: its stamps, its rules, and its words about what it looked at."""

from __future__ import annotations

import json
import re
from typing import Final

from loopdetect.core.block import HEADER
from loopdetect.core.envelope import uncoloured
from loopdetect.core.progress import find_bar
from loopdetect.core.timestamp import Stamp, parse

REPEATS: Final = 3

_SPAN: Final = (
    r"(?:(?P<h>\d+) ?h ?)?(?:(?P<m>\d+) ?m(?:in)? ?)?(?:(?P<s>\d+(?:\.\d+)?) ?s(?:ec(?:onds)?)?)?"
)
_ELAPSED: Final = re.compile(
    r"[-=#>* ]{0,8}\[? ?(?:t ?[=+] ?|T\+|\+)?" + _SPAN + r"(?: elapsed)? ?\](?: |$)(?P<rest>.*)",
    re.DOTALL,
)
# Without brackets it takes more: what the loop saw must follow.
_BARE: Final = re.compile(
    r"[-=#>* ]{0,8}(?:[Aa]fter |[Ee]lapsed[ =:]+|t ?[=+] ?|T\+|\+)?"
    + _SPAN
    + r"(?: elapsed)?[ :,|-]+(?P<rest>.*)",
    re.DOTALL,
)
# A stamp between signs of its own: `--- t+30s ---`, `(20s)`, `== 2m30s ==`.
_SIGNED: Final = re.compile(
    r"(?:[-=#*>~]{2,8} *|\()(?:t ?[=+] ?|T\+|\+)?"
    + _SPAN
    + r"(?: elapsed)?"
    r"(?: *[-=#*<~]{2,8}|\))(?: |$)(?P<rest>.*)",
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
# A clock alone between decorations, or before what the loop saw.
_PLAIN_CLOCK: Final = re.compile(
    r"(?P<left>[-=#>*]{0,8}) ?(?P<f>(?:\d{4}-\d\d-\d\d[ T])?\d\d:\d\d:\d\d)(?P<right>[-=#<* ,|:]*)(?P<rest>.*)",
    re.DOTALL,
)
_EVERY: Final = re.compile(
    r"Every \d+(?:\.\d+)?s: .*?(?P<d>[A-Z][a-z]{2} [A-Z][a-z]{2} +\d{1,2} \d\d:\d\d:\d\d \d{4})\s*$"
)
HEALTH: Final = re.compile(
    r"(?:(?:[Hh]ealth|HEALTH|status|http(?:_code)?|HTTP(?:/[\d.]+)?|code|curl)(?:[-_ ]?(?:check|code|status))?[ =:]+)(?P<code>\d{3})\b[,;|]? ?"
    r"|^(?P<bare>000|200|204|404|429|500|502|503|504)(?= |$) ?"
)
HEALTH_AT_END: Final = re.compile(
    r"[^{}\[\]]{0,160}(?:\.\.\.|…|[-=]>|[:=]) ?(?P<code>000|[2-5]\d\d)\s*$"
)
# What a health check answers, or curl says in its place, where only that is shown.
BODIES: Final = (
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
SIZE: Final = re.compile(r"\b(?:size|bytes|offset|inode|mtime)[ =:]+(?P<value>[\d.:TZ+-]+)[,;|]? ?")
RESTARTS: Final = re.compile(
    r"\brestarts?(?:[-_ ]?count)?[ =:]+(?P<count>\d{1,6})\b[,;|]? ?", re.IGNORECASE
)
PID: Final = re.compile(r"pid[ =:]+(?P<pid>\d{1,8})[,;|]? ?")
WORD: Final = re.compile(r"(?:status|health|state)[ =:]+(?P<word>[a-z-]+)\b[,;|]? ?", re.IGNORECASE)
LISTED: Final = re.compile(
    r"\s*(?:[-rwx.+]{10,11} .*? )?(?P<value>\d{2,15}) +(?:\S+ +){0,3}?\S+\.(?:log|out|txt|err)\s*$"
)
READY: Final = re.compile(
    r"(?:[-=#>*✓✔✅ ]*)(?:(?:[Ss]erver|[Ss]ervice|[Mm]odel|[Ee]ndpoint|vLLM|SGLang|[Hh]ealth(?: check)?)\b[^\n]{0,40}?(?:is )?)?"
    r"(?:READY|[Rr]eady|HEALTHY|[Hh]ealthy|is up|UP)\b(?:[ !.:]*| after\b.*| in\b.*| \(.*\))$"
)
GAVE_UP: Final = re.compile(
    r"(?:[-=#>*✗❌ ]*)(?:TIMEOUT|TIMED OUT|[Tt]imed? ?out|FAILED|[Ff]ailed|GIVING UP|[Gg]iving up|ERROR: (?:server|timeout))\b.{0,80}$"
)


# A rule that a loop draws between two looks: `-----`, `=== tail of server.log ===`, `### check`.
RULE: Final = re.compile(r"([-=#*~_])\1{2,}(?: ?[^\n]{0,60}? ?\1{2,})?\s*$")
BLANK: Final = re.compile(r"\s*$")
_DATE_LINE: Final = re.compile(
    r"(?:[A-Z][a-z]{2} )[A-Z][a-z]{2} +\d{1,2} \d\d:\d\d:\d\d(?: [AP]M)?(?: [A-Z]{2,5})? \d{4}\s*$"
)


# What `docker ps` says of a container: the time since its last start.
UPTIME: Final = re.compile(
    r"\bUp (?P<value>Less than a second|About an? (?:minute|hour)|\d+ (?:second|minute|hour|day)s?)\b"
)
RESTARTING: Final = "  Restarting ("
_UNITS: Final = {"second": 1.0, "minute": 60.0, "hour": 3600.0, "day": 86400.0}
_TIME_KEYS: Final = ("t", "elapsed", "elapsed_s", "seconds", "after", "waited")
_CODE_KEYS: Final = ("http", "http_code", "code", "status", "health")
_TEXT_KEYS: Final = ("last", "last_line", "line", "log", "tail")


def uptime_of(text: str) -> float | None:
    """Return how long a container is up by `docker ps`, in seconds; None if the line does not say."""
    match = UPTIME.search(text)
    if not match:
        return None
    words = match["value"].split()
    number = float(words[0]) if words[0].isdigit() else float(words[0] == "About")
    return number * _UNITS[words[-1].rstrip("s")]


def is_fact(text: str) -> bool:
    """True when a text begins with what a loop sees: a code, a size, a pid, a count, a word."""
    return any(pattern.match(text) for pattern in (HEALTH, SIZE, PID, RESTARTS, WORD))


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
        match = match if match and is_fact(match["rest"]) else None
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


def clock_of(text: str) -> tuple[Stamp, str] | None:
    """Return the wall-clock time that a loop's line begins with and what follows; None without one."""
    match = _CLOCK.match(text)
    if match:
        stamp = parse(match["a"] or match["b"] or match["c"] or match["e"])
        return (stamp, match["rest"]) if stamp else None
    every, plain = _EVERY.match(text), _PLAIN_CLOCK.match(text)
    if plain and not (is_fact(plain["rest"]) or _framed(plain)):
        plain = None
    stamp = parse(every["d"]) if every else parse(plain["f"]) if plain else None
    return (stamp, plain["rest"] if plain else "") if stamp else None


def _framed(plain: re.Match[str]) -> bool:
    return bool(plain["left"] and plain["right"].strip()) and not plain["rest"]


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
    return not bodies or len(set(bodies)) > 1 or HEADER not in bodies[0]


def looks_like_transcript(head: bytes) -> bool:
    """True when the first lines are snapshots under a polling loop's stamps."""
    lines = [uncoloured(raw.decode("utf-8", "replace")) for raw in head.split(b"\n")]
    elapsed = [t for t, _ in filter(None, map(stamp_of, lines)) if t is not None]
    if len(elapsed) >= 2 and elapsed == sorted(elapsed):
        return True
    numbers = [int(m["n"]) for m in map(_ATTEMPT.match, lines) if m]
    if len(numbers) >= 3 and numbers == list(range(numbers[0], numbers[0] + len(numbers))):
        return True
    stamped = [s for s in map(clock_of, lines) if s]
    polled = sum(
        bool(HEALTH.match(rest) or SIZE.match(rest) or HEALTH_AT_END.match(rest))
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
            return True
    if _ruled(filled):
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
