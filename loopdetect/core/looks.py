"""What a polling loop sees at one look, and the words that it says of it."""

from __future__ import annotations

import re
from typing import Final

from loopdetect.core.late import Late

HEALTH: Final = Late(
    r"(?:(?:[Hh]ealth|HEALTH|status|http(?:_code)?|HTTP(?:/[\d.]+)?|code|curl)(?:[-_ ]?(?:check|code|status))?[ =:]+)(?P<code>\d{3})\b[,;|]? ?"
    r"|^(?P<bare>000|200|204|404|429|500|502|503|504)(?= |$) ?"
)
HEALTH_AT_END: Final = Late(r"[^{}\[\]]{0,160}(?:\.\.\.|…|[-=]>|[:=]) ?(?P<code>000|[2-5]\d\d)\s*$")
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
    (Late(r"curl: \(7\)|[Cc]onnection refused|Couldn't connect|Failed to connect to"), 0),
)
SIZE: Final = Late(r"\s*\b(?:[Ss]ize|bytes|offset|inode|mtime)[ =:]+(?P<value>[\d.:TZ+-]+)[,;|]? ?")
RESTARTS: Final = Late(
    r"\brestarts?(?:[-_ ]?count)?[ =:]+(?P<count>\d{1,6})\b[,;|]? ?", re.IGNORECASE
)
PID: Final = Late(r"pid[ =:]+(?P<pid>\d{1,8})[,;|]? ?")
WORD: Final = Late(r"(?:status|health|state)[ =:]+(?P<word>[a-z-]+)\b[,;|]? ?", re.IGNORECASE)
LISTED: Final = Late(
    r"\s*(?:[-rwx.+]{10,11} .*? )?(?P<value>\d{2,15}) +(?:\S+ +){0,3}?\S+\.(?:log|out|txt|err)\s*$"
)
READY: Final = Late(
    r"(?!(?i:.*\b(?:not|isn't|never|until|waiting|yet|before|died|dead|gone|failed|cannot|unable|longer)\b))(?:[-=#>*✓✔✅ ]*)(?:(?:[Ss]erver|[Ss]ervice|[Mm]odel|[Ee]ndpoint|vLLM|SGLang|[Hh]ealth(?: check)?)\b[^\n]{0,40}?(?:is )?)?"
    r"(?:READY|[Rr]eady|HEALTHY|[Hh]ealthy|is up|UP)\b(?: \([^()]*\))?(?:[ !.:]*| after\b.*| in\b.*| \(.*\))$"
    r"|(?:[Uu]p|[Rr]eady|[Hh]ealthy|[Aa]live)\? ?(?:yes|true)[ !.]*$"
    r"|(?:deployment|statefulset|daemon set) \"[^\"]+\" successfully rolled out$"
)
_WAITED_FOR: Final = r"(?:server|service|model|engine|health|https?:|endpoint|api|port|url|vllm|sglang|llama|tgi|ollama|triton|trtllm|lmdeploy|deployment|rollout|container|pod)"
# What a loop says while it waits, in its own words.
NOT_YET: Final = Late(
    r"[-=#>*✗❌⏳ ]*(?:(?:still|the|it|it's|is|server|service|model|endpoint|health(?: check)?|api|port \d+|vllm|sglang|ollama|tgi|triton|llama-server)[ :]+){0,4}"
    r"(?:still (?:loading|starting|initializing|warming up|waiting|down)\b"
    r"|not (?:yet )?(?:ready|up|healthy|responding|reachable|available|listening)\b"
    r"|waiting (?:for|on|until) [^\n]{0,80}?\b"
    + _WAITED_FOR
    + r"|(?:up|ready|healthy|alive)\? ?(?:no|false)\b"
    r"|unhealthy\b|unreachable\b|no (?:response|answer|reply)\b|connection refused\b)",
    re.IGNORECASE,
)
_QUESTION: Final = Late(r"(?:up|ready|healthy|alive)\? ?(?:yes|no|true|false)\b", re.IGNORECASE)
GAVE_UP: Final = Late(
    r"(?:[-=#>*✗❌ ]*)(?:TIMEOUT|TIMED OUT|[Tt]imed? ?out|FAILED|[Ff]ailed|GIVING UP|[Gg]iving up|ERROR: (?:server|timeout|Job failed)|[Gg]ave up)\b.{0,80}$"
)


# How a script ends that has waited long enough.
OWN_END: Final = Late(
    r"[\w.]*(?:Error|Exception|Exit|Timeout\w*): .*\b(?:server|service|endpoint|health|model|url|http\S*)\b.*"
    r"\b(?:not|never|fail(?:ed|s) to)\b.{0,30}\b(?:ready|up|healthy|start|respond|available)\w*\b.*\d",
    re.IGNORECASE,
)
# What curl says beside an answer, and the loop that will ask again.
CHATTER: Final = Late(
    r"(?:\* +(?:Trying|[Cc]onnect(?:ed|ion)?|Host|Closing|IPv[46]|Could|Failed|Empty|Recv|Established|Request)\b|[<>] ?$|[<>] [\w-]+: "
    r"|> (?:GET|HEAD) |< HTTP/[\d.]+ (?P<code>\d{3})\b|Warning: Problem\b|(?:Will )?[Rr]etry(?:ing)? in \d|Sleeping \d)"
)
# Nothing but a status code, as `curl -w '%{http_code}'` prints it, and perhaps the time it took.
CODE_LINE: Final = Late(r"\s*(?P<code>000|[2-5]\d\d)(?:[ \t]+\d+\.\d+s?)?\s*$")
# `ps aux` and `nvidia-smi`
PROCESS: Final = Late(
    r"[\w+-]+ +(?P<pid>\d+) +[\d.]+ +[\d.]+ +\d+ +\d+ +\S+ +[A-Z][\w<+]* +\S+ +[\d:]+ (?P<command>.*)"
)
MEMORY: Final = Late(r"\s*(?:\d+, |\|.*\| *)?(?P<used>\d+) ?MiB ?[/,] ?\d+ ?MiB\b")
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
    return any(pattern.match(text) for pattern in (HEALTH, SIZE, PID, RESTARTS, WORD, _QUESTION))


def is_look(text: str) -> bool:
    """True when a text is what a loop saw or says of it: a fact, a health check's body, a word."""
    return is_fact(text) or is_answer(text)


def is_answer(text: str) -> bool:
    """True when a text is all of a health check's answer, or the loop's word for it."""
    if NOT_YET.match(text) or READY.match(text.strip()) or _QUESTION.match(text):
        return True
    begins = text.lstrip()[:5].lower()
    return (
        len(text) < 400
        and begins.startswith(("{", "curl:", "conne", "ollam"))
        and any(pattern.search(text) for pattern, _ in BODIES)
    )
