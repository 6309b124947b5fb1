"""The times that a polling loop writes before its looks: elapsed, counted, on a clock, in a logger's line."""

from __future__ import annotations

import json
import re
from typing import Final

from loopdetect.core.late import Late
from loopdetect.core.looks import CODE_LINE, HEALTH, is_answer, is_fact, is_look
from loopdetect.core.sayings import abroad, hints, plain, says_not_yet, says_ready
from loopdetect.core.timestamp import Frame, Stamp, parse

MAX_DATE: Final = 60

_SPAN: Final = (
    r"(?:(?P<h>\d+) ?h ?)?(?:(?P<m>\d+) ?m(?:in)? ?)?(?:(?P<s>\d+(?:\.\d+)?) ?s(?:ec(?:onds)?)?)?"
)
_ELAPSED: Final = Late(
    r"[-=#>* ]{0,8}\[? ?(?:t ?[=+] ?|T\+|\+)?" + _SPAN + r"(?: elapsed)? ?\](?: |$)(?P<rest>.*)",
    re.DOTALL,
    begins="-=#>* [tT+0123456789]",
    holds=("]",),
)
# Without brackets it takes more: what the loop saw must follow.
_BARE: Final = Late(
    r"[-=#>*· ]{0,8}(?:[Aa]fter |[Ee]lapsed[ =:]+|t ?[=+] ?|T\+|\+ *)?"
    + _SPAN
    + r"(?: elapsed)?[ :,|—–-]+(?P<rest>.*)",
    re.DOTALL,
    begins="-=#>*· AaEetT+:,|—–0123456789",
)
# A stamp between signs of its own: `--- t+30s ---`, `(20s)`, `== 2m30s ==`.
_SIGNED: Final = Late(
    r"(?:[-=#*>~]{2,8} *|\()(?:t ?[=+] ?|T\+|\+)?" + _SPAN + r"(?: elapsed)?"
    r"(?: *[-=#*<~]{2,8}|\)|$)(?: |$)(?P<rest>.*)",
    re.DOTALL,
    begins="-=#*>~(",
)
_WAITING: Final = Late(
    r"(?:[ .…]*\[?\w*\]? ?)(?:[Ss]till )?[Ww]aiting\b[^\n\d]{0,60}?\(?(?P<s>\d+)(?:/\d+)? ?s(?:ec(?:onds)?)?(?: elapsed)?\)?[ .…]*(?P<rest>.*)",
    re.DOTALL,
    holds=("aiting",),
)
_WAITED_ABROAD: Final = Late(
    r".{0,60}?[^\d/](?P<s>\d{1,5})(?:/\d{1,5})? ?(?:s|秒|초|сек|sek|seg)(?![a-z]).{0,20}(?P<rest>)$",
    re.IGNORECASE,
)
# `not ready yet (240s): …`
_WAITED: Final = Late(
    r".{0,80}?[(\[](?P<s>\d{1,5})(?:\.\d+)?(?:/\d{1,5})? ?s(?:ec(?:onds)?)?(?: (?:elapsed|passed))?[)\]][ :,|-]*(?P<rest>.*)",
    re.DOTALL,
)
# `(timeout 600s)`: how long it will wait, not how long it has.
_LIMIT: Final = Late(
    r"(?:time ?-?out|max(?:imum)?|up to|at most|limit|within|every|最长|最多|最大|至多|최대|máximo|maximal|bis zu|jusqu'à|до|каждые|cada|alle)\W{0,3}(?:of |is |de )?$",
    re.IGNORECASE,
)
_DOT: Final = (".", "…", "·")
_DOTS_THEN_TIME: Final = Late(r"[.…·]{3,} ?\(?(?P<s>\d{1,5}) ?s\)?(?P<rest>)\s*$")
# `(57 retries left)`, `; 880s remaining`
_LEFT: Final = Late(
    r".{0,160}?[(\[ ](?P<n>\d{1,5}) ?(?:s|sec|seconds|retries|attempts|tries)? ?(?:left|remaining)\)?[.\s]*$"
)
_SECONDS: Final = Late(
    r"(?:t[=+])?(?P<s>\d{1,6}) ?s(?:ec)?: +(?P<rest>.*)", re.DOTALL, begins="t0123456789"
)
# `elapsed 00:05:00`, `Checked at +90s:`
_ELAPSED_CLOCK: Final = Late(
    r"[-=#>*\[( ]{0,8}(?:[Ee]lapsed|[Ww]aited)[ =:]+(?P<h>\d\d?):(?P<m>\d\d):(?P<s>\d\d)[\])]?[ ,:|-]*(?P<rest>.*)",
    re.DOTALL,
    holds=("lapsed", "aited"),
)
_AT: Final = Late(
    r"[-=#>* ]{0,8}(?:[A-Za-z]+ ){1,3}(?:at|after) (?:t ?= ?|T)?\+?"
    + _SPAN
    + r"(?: elapsed)?:[-=#* ]*(?P<rest>)$",
    holds=("at ", "after "),
)
_ALONE: Final = Late(
    r"[-=#>* ]{0,8}(?:t ?[=+] ?|T\+|\+|[Aa]fter |[Ee]lapsed[ =:]+)"
    + _SPAN
    + r"(?: elapsed)?[:.]?(?P<rest>)\s*$",
    begins="-=#>* tT+AaEe",
)
_IN_BRACKETS: Final = Late(
    r"\((?:t ?[=+] ?|T?\+|after )?" + _SPAN + r"(?: elapsed)?\)[: ]*(?P<rest>.*)", re.DOTALL
)
_MINUTES: Final = Late(
    r"\[(?P<h>)(?P<m>\d{1,3}):(?P<s>[0-5]\d)\] ?(?P<rest>.*)", re.DOTALL, begins="["
)
_EPOCH: Final = Late(r"(?P<s>1[4-9]\d{8})(?:\.\d+)?[ :,|]+(?P<rest>.*)", re.DOTALL, begins="1")
# A waiting program's own log: `2026-01-01 09:00:00,123 - wait - INFO - not ready after 10s`.
_LEVEL: Final = r"(?:TRACE|DEBUG|INFO|NOTICE|SUCCESS|WARN(?:ING)?|ERROR|CRITICAL)"
_LOGGED: Final = Late(
    r"(?:"
    + _LEVEL
    + r":? +)?\[?(?P<t>(?:\d{4}[-/]\d\d[-/]\d\d,?[T ])?\d\d:\d\d:\d\d)(?:[.,]\d+)?(?: ?(?:UTC|Z|[+-]\d\d:?\d\d))?\]?"
    r"(?:(?=.{0,90}\b"
    + _LEVEL
    + r"\b)[ |:\-\[\]{}\w.<>/]{0,90}?\b"
    + _LEVEL
    + r"\b\]?[ |:-]*(?:[\w.<>]+:[\w.<>]+:\d+ - |[\w.-]+(?::\d+)?(?: -| \||:) )?"
    r"| [\w.]+:\d+: )(?P<rest>.*)",
    re.DOTALL,
    begins="TDINSWEC[0123456789",
)
_SHOWS: Final = Late(r"\b(?:last|tail|log)(?:[-_ ]?(?:line|log))?[=:>] ?\S")
# `INFO:__main__:`, as Python's logging writes where nobody set a format.
_BASIC: Final = Late(r"(?:DEBUG|INFO|WARNING|ERROR|CRITICAL):[\w.]+:(?! )")
_LOGFMT: Final = Late(
    r'(?:time|ts)="?(?P<t>\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d)\S* level=\w+ msg="(?P<rest>[^"]*)"',
    begins="t",
)
_NUMBERED: Final = Late(
    r"\[?#?(?P<n>\d{1,4})(?:/\d+)?\]?[:.)]? +(?P<rest>.*)", re.DOTALL, begins="[#0123456789"
)
_TRIES_AT_END: Final = Late(r".{0,160}?[(\[](?P<n>\d{1,4})(?:/| of )\d{1,4}[)\]][ .]*$")
_ATTEMPT: Final = Late(
    r"[-=#>* ]{0,8}\[?(?:(?:[Hh]ealth|[Rr]eadiness|[Ll]iveness|[Ss]tartup|[Ss]tatus|[Ss]moke|[Ss]erver|[Pp]ing) )?(?:[Aa]ttempt|ATTEMPT|[Tt]ry|[Rr]etry|[Cc]heck|[Pp]oll|[Pp]robe) *#?(?P<n>\d+)(?: ?(?:/|of) ?\d+)?\]?(?:[:.…]+| -)? ?(?P<rest>.*)",
    re.DOTALL,
    holds=("ttempt", "TTEMPT", "try", "Try", "heck", "oll", "robe"),
)
_TAGGED: Final = Late(r"\[[A-Za-z][\w -]{0,20}\] *")
# The try of a script that starts the server itself.
_BEGINS: Final = Late(
    r"(?:re-?)?(?:start|launch|spawn|boot|runn)ing (?:the )?(?!up\b)\w", re.IGNORECASE
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
    r"(?P<left>[-=#>*]{0,8}) ?(?P<f>(?:\d{4}[-/]\d\d[-/]\d\d[ T]|[A-Z][a-z]{2} [ \d]\d )?\d\d:\d\d:\d\d)(?![.,:]\d)(?P<right>[-=#<* ,|:]*)(?P<rest>.*)",
    re.DOTALL,
)
_COUNTED: Final = Late(
    r"(?:t|elapsed|waited|after|poll|try|attempt|check)[ =:#+]{1,2}\d+(?:\.\d+)?(?:/\d+)? ?(?:s|sec|seconds)?[ ,:|-]+(?P<rest>.*)",
    re.IGNORECASE,
)
_NAMED: Final = Late(r"[\w.@:() -]{1,40}? ?[-=#*~]{2,}\s*$")
_EVERY: Final = Late(
    r"Every \d+(?:\.\d+)?s: .*?(?P<d>[A-Z][a-z]{2} [A-Z][a-z]{2} +\d{1,2} \d\d:\d\d:\d\d \d{4})\s*$",
    begins="E",
)
_DATE_LINE: Final = Late(
    r"[-=#>* ]{0,8}(?:[A-Z][a-z]{2} )[A-Z][a-z]{2} +\d{1,2} \d\d:\d\d:\d\d(?: [AP]M)?(?: [A-Z]{2,5})? \d{4}[-=#<*\s]*$"
)


# A line that holds a date or a time of day in any language, and nothing else.
_DATE_WORDS: Final = Late(
    r"[-=#>* \[(]{0,8}(?!.*(?i:start|run|launch|boot|attempt|try|begin|\bat\b))(?=.*(?<!\d)\d{4}(?!\d)|[^\w]*\d\d:)(?:[^\W\d]{1,10}\.?,? +|\d{1,4}[.年月日]?,? *(?:[^\W\d]{1,3} +)?|\d{4}-\d\d-\d\d[T ]){0,6}?"
    r"(?P<t>\d\d:\d\d:\d\d)(?:[.,]\d{1,6})?(?:Z|[+-]\d\d:?\d\d)?(?: +(?:[AP]M|[A-Z]{2,5}|[+-]\d\d:?\d\d|\d{4}))*[\])]?[-=#<*\s]*$"
)
_SOMEWHERE: Final = Late(r"(?:\d{4}-\d\d-\d\d[T ])?\d\d:\d\d:\d\d")
# A script's own log, which shows lines of the server's under a tag: `[09:00:00] [SERVER]   …`.
_WRAPPED: Final = Late(
    r"\[?(?P<t>(?:\d{4}-\d\d-\d\d[ T])?\d\d:\d\d:\d\d)(?:[.,]\d+)?\]? *\[(?P<tag>[A-Za-z]{2,10})\] ?(?P<rest>.*)",
    re.DOTALL,
    begins="[0123456789",
)
_SHOWN_UNDER: Final = frozenset(
    {"server", "log", "tail", "vllm", "sglang", "ollama", "output", "stdout"}
)
# The sign that a script's logger puts before a line of the server's.
_QUOTED: Final = Late(r"\s*(?:[>│|] ?|\[(?:server|log|tail)\] ?)(?P<rest>\S.*)", re.DOTALL)
_URL_AFTER: Final = Late(r"--\d{4}-\d\d-\d\d \d\d:\d\d:\d\d-- +https?://", begins="-")
_TIME_KEY: Final = Late(
    r"(?:t|after|(?:elapsed|waited|seconds)(?:in)?(?P<unit>ms|millis\w*)?(?:s|secs?|seconds)?)$"
)
_CODE_KEY: Final = Late(r"(?:http|health|status|response)?(?:status)?(?:code)?$")
_ERROR_KEY: Final = Late(r"(?:err|error|exception|reason)$")
_TEXT_KEY: Final = Late(r".*(?:last|line|log|tail)")
_LOGGERS: Final = frozenset({"level", "levelname", "severity", "logger", "msg", "message"})


def from_json(text: str) -> str:
    """Return a look that was written as a JSON object in the form of a stamped line, others as they are."""
    if not text.startswith("{") or not text.rstrip().endswith("}"):
        return text
    try:
        look = json.loads(text)
    except (ValueError, RecursionError):
        return text
    named = {_key(key): value for key, value in look.items()}
    time = next(
        (_in_seconds(k, v) for k, v in named.items() if _in_seconds(k, v) is not None), None
    )
    code = next((str(v or 0) for k, v in named.items() if k and _CODE_KEY.match(k)), "")
    if not code and not _LOGGERS & named.keys() and any(map(_ERROR_KEY.match, named)):
        code = "0"
    # Where nothing answered, a script writes no code at all, or a zero.
    code = code.zfill(3) if code == "0" else code
    if time is None or not (code.isdigit() and len(code) == 3):
        return text
    shown = [v for k, v in named.items() if isinstance(v, list | str) and _TEXT_KEY.match(k)]
    parts = next((part for part in shown if isinstance(part, list)), shown[:1])
    return f"[{time:g}s] http={code} {chr(13).join(map(str, parts))}"


def _key(key: str) -> str:
    return key.lower().replace("_", "").replace("-", "")


def _in_seconds(key: str, value: object) -> float | None:
    match = _TIME_KEY.match(key) if isinstance(value, int | float) else None
    if match is None or not isinstance(value, int | float):
        return None
    return value / 1000 if match["unit"] else float(value)


def stamp_of(text: str) -> tuple[float | None, str] | None:
    """Return the seconds since the loop began, where a line tells them, and what follows; None without a stamp."""
    text = _BASIC.sub("", plain(from_json(text)), 1)
    match = _ELAPSED.match(text) or _SIGNED.match(text)
    if not (match and any(match[g] for g in "hms")):
        match = _BARE.match(text)
        told = match and any(match[g] for g in "hms")
        match = match if match and told and is_look(match["rest"]) else None
    if match:
        return _seconds(match), match["rest"]
    match = _MINUTES.match(text)
    if match and is_look(match["rest"]):
        return _seconds(match), match["rest"]
    match = _WAITING.match(text) or _SECONDS.match(text)
    if match and not _LIMIT.search(text[: match.start("s")]):
        return float(match["s"]), match["rest"]
    for pattern in (_ELAPSED_CLOCK, _AT, _ALONE):
        match = pattern.match(text)
        if match and any(match[g] for g in "hms"):
            return _seconds(match), match["rest"]
    match = _ATTEMPT.match(text)
    if match and not _BEGINS.match(match["rest"]):
        inner = _IN_BRACKETS.match(match["rest"])
        if inner and any(inner[g] for g in "hms"):
            return _seconds(inner), inner["rest"]
        return None, match["rest"]
    if says_not_yet(text):
        match = _WAITED_ABROAD.match(text) if abroad(text) else None
        if match and not _LIMIT.search(text[: match.start("s")]):
            return float(match["s"]), ""
        if _TRIES_AT_END.match(text) or _LEFT.match(text):
            return None, ""
        match = _WAITED.match(text)
        if match and not _LIMIT.search(text[: match.start("s")]):
            return float(match["s"]), match["rest"]
    match = _DOTS_THEN_TIME.match(text) if text[:1] in _DOT else None
    if match:
        return float(match["s"]), ""
    match = _NUMBERED.match(text)
    if match and (CODE_LINE.match(match["rest"]) or is_answer(match["rest"])):
        return None, match["rest"]
    return None


def _seconds(match: re.Match[str]) -> float:
    return float(match["h"] or 0) * 3600 + float(match["m"] or 0) * 60 + float(match["s"] or 0)


def number_of(text: str) -> int | None:
    """Return the number of the try that a stamped line tells of, or None if it tells of none."""
    text = plain(text)
    match = _ATTEMPT.match(text) or _TRIES_AT_END.match(text) or _NUMBERED.match(text)
    match = match or _LEFT.match(text)
    return int(match["n"]) if match else None


def clock_of(text: str) -> tuple[Stamp, str] | None:
    """Return the wall-clock time that a loop's line begins with and what follows; None without one."""
    match = _CLOCK.match(text)
    if match:
        stamp = parse(match["a"] or match["b"] or match["c"] or match["e"])
        return (stamp, _seen(match["rest"])) if stamp else None
    epoch = _EPOCH.match(text)
    if epoch and is_look(epoch["rest"]):
        return Stamp(float(epoch["s"]), Frame.FULL), epoch["rest"]
    every, plain_clock = _EVERY.match(text), _PLAIN_CLOCK.match(text)
    logged = logged_by(text) if not every and hints(text) else None
    said_so = said_by(logged["rest"]) if logged else None
    if logged and said_so is not None:
        stamp = parse(logged["t"].replace(",", ""))
        return (stamp, said_so) if stamp else None
    if _URL_AFTER.match(text):
        stamp = parse(text[2:21])
        return (stamp, "") if stamp else None
    framed = plain_clock is not None and _framed(plain_clock)
    if plain_clock and not (framed or _looked(plain_clock["rest"])):
        plain_clock = None
    stamp = parse(every["d"]) if every else parse(plain_clock["f"]) if plain_clock else None
    if stamp:
        return stamp, _seen(plain_clock["rest"]) if plain_clock and not framed else ""
    words = _date_words(text)
    stamp = parse(words["t"]) if words else None
    return (stamp, "") if stamp else None


def _looked(rest: str) -> bool:
    """True when what stands behind a clock is what a loop saw, or its own count of seconds and then that."""
    if is_look(rest) or is_look(_seen(rest)):
        return True
    counted = _COUNTED.match(rest)
    if counted is not None and is_fact(counted["rest"]):
        return True
    inner = stamp_of(rest)
    return inner is not None and inner[0] is not None and is_look(inner[1])


def _seen(rest: str) -> str:
    """Return what stands behind the number of a try in brackets, where that is a look."""
    tag = _TAGGED.match(rest)
    rest = rest[tag.end() :] if tag and is_look(rest[tag.end() :]) else rest
    match = _NUMBERED.match(rest) if rest[:1] == "[" else _ATTEMPT.match(rest) or _BARE.match(rest)
    return match["rest"] if match and is_look(match["rest"]) else rest


def logged_by(text: str) -> re.Match[str] | None:
    """Match a line of a program's logger: its time and what it says."""
    return _LOGGED.match(text) or _LOGFMT.match(text)


def _date_words(text: str) -> re.Match[str] | None:
    return _DATE_WORDS.match(text) if len(text) <= MAX_DATE and text.count(":") >= 2 else None


def said_by(rest: str) -> str | None:
    """Return what a waiting program's logger wrote of a look, None where it wrote of something else."""
    if says_not_yet(rest) or says_ready(rest):
        return rest
    _, dash, own = rest.partition(" - ")
    if dash and (says_not_yet(own) or says_ready(own)):
        return own
    if HEALTH.match(rest) and _SHOWS.search(rest):
        return rest
    inner = stamp_of(rest)
    if inner is None or not is_look(inner[1]):
        return None
    # A program that counts its tries and saw nothing yet may as well be one that starts the server itself.
    tried = number_of(rest) is not None and not says_not_yet(inner[1])
    return inner[1] if inner[0] is not None or tried else None


def wrapped(text: str) -> tuple[Stamp, bool, str] | None:
    """Return the time of a script's line, whether it shows one of the server's, and what it says."""
    match = _WRAPPED.match(text)
    quoted = None if match else _LOGGED.match(text)
    told = match or quoted
    stamp = parse(told["t"].replace(",", "")) if told else None
    if told is None or stamp is None:
        return None
    if match:
        return stamp, match["tag"].lower() in _SHOWN_UNDER, match["rest"].strip()
    shown = _QUOTED.match(told["rest"])
    return stamp, shown is not None, (shown["rest"] if shown else told["rest"]).strip()


def time_in(text: str) -> Stamp | None:
    """Return the time of day that stands somewhere in a line, or None."""
    match = _SOMEWHERE.search(text)
    return parse(match[0]) if match else None


def _framed(plain: re.Match[str]) -> bool:
    """True for a clock between signs, with or without a name beside it."""
    return bool(plain["left"]) and (
        bool(_NAMED.match(plain["rest"])) or (bool(plain["right"].strip()) and not plain["rest"])
    )


def is_mark(line: str) -> bool:
    """True for a line that holds a time and nothing else."""
    if _DATE_LINE.match(line) or _EVERY.match(line) or _date_words(line):
        return True
    if _URL_AFTER.match(line):
        return True
    plain = _PLAIN_CLOCK.match(line)
    return plain is not None and _framed(plain)
