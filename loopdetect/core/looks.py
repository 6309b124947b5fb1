"""What a polling loop sees at one look, and the words that it says of it."""

from __future__ import annotations

import re
from typing import Final

from loopdetect.core.late import Late
from loopdetect.core.sayings import says_not_yet, says_ready

HEALTH: Final = Late(
    r"(?:[(\[|] ?)?(?:(?:[Hh]ealth|HEALTH|[Ss]tatus|http(?:_code)?|HTTP(?:/[\d.]+)?|code|curl|returned|responded(?: with)?|got|StatusCode)(?:[-_ ]?(?:check|code|status))?[ =:]+)(?P<code>\d{3})\b[,;|)\]]{0,2} ?"
    r"|^(?:[(\[|] ?)?(?P<bare>000|200|204|404|429|500|502|503|504)(?=[ )\],;|.]|$)(?!\.\d)[)\],;|.]{0,4} ?"
)
HEALTH_AT_END: Final = Late(
    r"[^{}\[\]]{0,160}(?:\.\.\.|…|[-=]>|[:=]) ?(?P<code>000|[2-5]\d\d)(?: [A-Z][A-Za-z ]{1,30})?\s*$"
)
# What a health check answers, or curl says in its place, where only that is shown.
BODIES: Final = (
    (Late(r'\{ ?"status": ?"(?:ok|healthy|ready|UP)"', re.IGNORECASE), 200),
    (
        Late(
            r'"Loading model"|"status": ?"(?:loading|starting|initializing|unhealthy)|"code": ?503',
            re.IGNORECASE,
        ),
        503,
    ),
    (Late(r"^\s*Ollama is running\s*$"), 200),
    (
        Late(
            r"curl: \((?:7|28|35|52|56)\)|[Cc]onnection refused|Couldn't connect|Failed to connect to|ECONN(?:REFUSED|RESET)"
        ),
        0,
    ),
)
# What a client raised, where nobody answered.
_RAISED: Final = Late(
    r"(?:[\w.]+\.)?(?:[A-Z]\w*(?:Error|Exception|Refused|Timeout)|HTTPConnectionPool)\b ?[(:]",
    holds=("Error", "Exception", "Refused", "Timeout", "HTTPConnectionPool"),
)
# A state told by its name at the end of a line: `endpoint x status: Creating`.
STATED: Final = Late(
    r"(?:[\w./-]+ ){0,5}(?:status|state|phase|condition|health)(?: is|:| =|=| ->) ?[\"']?(?P<word>[A-Za-z][\w-]{1,30})[\"'.]?\s*$",
    re.IGNORECASE,
    holds=("status", "state", "phase", "condition", "health"),
)
SIZE: Final = Late(
    r"\s*\b(?:[Ss]ize|bytes|lines|offset|inode|mtime)[ =:]+(?P<value>[\d.:TZ+-]+)[,;|]? ?"
    r"|\s*(?:log|logs|file)(?:[-_ ]?size)?[ =:]+(?P<sized>\d{1,15}) ?(?:B|bytes)\b[,;|]? ?"
    r"|\s*(?:\S+\.(?:log|out|txt|err):? )?(?P<count>\d{1,15}) (?:bytes|lines)\b[,;|]? ?"
)
RESTARTS: Final = Late(
    r"\b(?:N|n_)?restarts?(?:[-_ ]?count)?[ =:]+(?P<count>\d{1,6})\b[,;|]? ?", re.IGNORECASE
)
PID: Final = Late(r"(?:[Mm]ain)?(?:pid|PID)[ =:]+(?P<pid>\d{1,8})[,;|]? ?")
WORD: Final = Late(
    r"(?:status|health|(?:active|sub)?state)(?:[=:]+ ?| (?=(?:is )?(?:ok|(?:un)?healthy|(?:not )?ready|running|active|exited|failed|loading|starting|refused|down|up|unreachable)\b))(?P<word>[a-z-]+)\b[,;|]? ?",
    re.IGNORECASE,
)
LISTED: Final = Late(
    r"\s*(?:[-rwx.+]{10,11} .*? )?(?P<value>\d{2,15}|[\d.]+[KMG] +[A-Z][a-z]{2} +\d{1,2} +[\d:]{4,5}(?= )) +(?:\S+ +){0,3}?\S+\.(?:log|out|txt|err)\s*$"
)
# Where a server's own line begins, behind what a loop says of it.
LOGGED: Final = Late(
    r"(?:^|(?<=[\s'\"]))(?:\(\w+ pid=\d|\[?\d{4}-\d\d-\d\d[ T]|\[\d\d-\d\d \d\d:|\[\d\d/\d\d/\d{4}-|(?:TRACE|DEBUG|INFO|WARN(?:ING)?|ERROR|CRITICAL)\b:? "
    r"|(?!Waiting|Checking|Polling|Trying)[A-Z]\w{1,30}ing \w[^\n%]{0,160}?\d%|\d{1,3}%\||[IWE]\d{4} \d\d:|time=\S+ level=|(?:srv|main|slot|build|system_info|llama_\w+|load_\w+|common_\w+|print_info|ggml_\w+): |\[[A-Z][\w-]+\] ?\[)"
)
# How curl ended, where a loop tells only that.
CURLED: Final = Late(
    r"\W{0,3}(?:curl|wget|nc)\b[^\d\n]{0,20}?(?:exit(?:ed)?|rc|code|status|ret)\w*[ :=]+(?:code |with |status )*(?P<rc>\d{1,2})\b[,;|)\]]{0,2} ?",
    holds=("curl", "wget", "nc"),
)
MAX_WORDS: Final = 160
_QUESTION: Final = Late(
    r"(?:up|ready|healthy|alive)[?=:] ?(?:yes|no|true|false)\b", re.IGNORECASE, begins="uUrRhHaA"
)
# What curl says beside an answer, and the loop that will ask again.
CHATTER: Final = Late(
    r"(?:\* +(?:Trying|[Cc]onnect(?:ed|ion)?|Host|Closing|IPv[46]|Could|Failed|Empty|Recv|Established|Request)\b|[<>] ?$|[<>] [\w-]+: "
    r"|> (?:GET|HEAD) |< HTTP/[\d.]+ (?P<code>\d{3})\b|Warning: Problem\b|(?:Will )?[Rr]etry(?:ing)? in \d|Sleeping \d"
    r"|Resolving \S+ \(|Connecting to .* connected\.$|Length: \d|Saving to: |Reusing existing connection"
    r"|HTTP request sent, awaiting response\.\.\. (?P<answered>\d{3})\b|[|+][-=+|]{8,}$|\| .* \|$)"
)
# A watchdog's words of a process and of its health, wherever they stand in its own line.
OF_PROCESS: Final = Late(
    r".{0,60}?\b(?:pid|process)[ =:#]+(?P<pid>\d{2,8})\)? (?:is |still )?(?P<word>alive|running|up|ok)\b",
    re.IGNORECASE,
)
OF_HEALTH: Final = Late(
    r"[^{\[\"]{0,80}?/(?:health|ready|v1/models)\w*(?: is|:| ->| =>| returned)? ?[=:]? ?(?P<code>000|[2-5]\d\d)\b"
)
# Nothing but a status code, as `curl -w '%{http_code}'` prints it, and perhaps the time it took.
CODE_LINE: Final = Late(
    r"\s*(?P<code>000|[2-5]\d\d)(?:[ \t]+\d+\.\d+s?)?\s*$", begins=" \t\n\r\f\v0123456789"
)
# `ps aux` and `nvidia-smi`
PROCESS: Final = Late(
    r"[\w+-]+ +(?P<pid>\d+) +[\d.]+ +[\d.]+ +\d+ +\d+ +\S+ +[A-Z][\w<+]* +\S+ +[\d:]+ (?P<command>.*)"
)
MEMORY: Final = Late(r"\s*(?:\d+, |\|.*\| *)?(?P<used>\d+) ?MiB ?[/,] *\d+ ?MiB\b")
# What `docker ps` says of a container: the time since its last start.
HEALTHY: Final = "(healthy)"
UPTIME: Final = Late(
    r"\bUp (?P<value>Less than a second|About an? (?:minute|hour)|\d+ (?:second|minute|hour|day)s?)\b"
)
RESTARTING: Final = "  Restarting ("
_UNITS: Final = {"second": 1.0, "minute": 60.0, "hour": 3600.0, "day": 86400.0}


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
    facts = (HEALTH, SIZE, PID, RESTARTS, WORD, _QUESTION, CURLED)
    return any(pattern.match(text) for pattern in facts)


def is_look(text: str) -> bool:
    """True when a text is what a loop saw or says of it: a fact, a health check's body, a word."""
    return is_fact(text) or is_answer(text) or is_watched(text)


def is_watched(text: str) -> bool:
    """True when a text says of a process or of a health check what a watchdog found."""
    return len(text) < MAX_WORDS and bool(
        OF_PROCESS.match(text) or OF_HEALTH.match(text) or STATED.match(text) or _worded(text)
    )


def _worded(text: str) -> bool:
    word = WORD.match(text)
    return word is not None and word.end() == len(text.rstrip())


def is_answer(text: str) -> bool:
    """True when a text is all of a health check's answer, or the loop's word for it."""
    if says_not_yet(text) or says_ready(text) or _QUESTION.match(text):
        return True
    begins = text.lstrip()[:5].lower()
    return (
        len(text) < 400
        and bool(
            begins.startswith(("{", "curl:", "conne", "ollam")) or _RAISED.match(text.lstrip())
        )
        and any(pattern.search(text) for pattern, _ in BODIES)
    )
