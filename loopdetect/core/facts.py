"""What a loop writes of a look in fields: codes, sizes, pids, counts and states."""

from __future__ import annotations

import re
from typing import Final

from loopdetect.core.block import HEADER
from loopdetect.core.late import Late
from loopdetect.core.looks import (
    BODIES,
    CHATTER,
    CURLED,
    HEALTH,
    HEALTH_AT_END,
    HEALTHY,
    LISTED,
    LOGGED,
    MAX_WORDS,
    MEMORY,
    OF_HEALTH,
    OF_PROCESS,
    PID,
    PROCESS,
    RESTARTS,
    SIZE,
    STATED,
    WORD,
    uptime_of,
)
from loopdetect.core.sayings import (
    DIED,
    STARTS_AGAIN,
    said,
    says_gave_up,
    says_not_yet,
    says_ready,
)
from loopdetect.core.snapshot import Snapshot

MAX_FIELDS: Final = 14
MAX_WIDTH: Final = 400
# States of containers, units and pods, as their tools name them.
_UP: Final = frozenset({"healthy", "ready", "inservice", "available", "serving", "deployed"})
_ALIVE: Final = frozenset({"running", "active", "alive", "up"})
_OVER: Final = frozenset(
    {
        "exited", "dead", "failed", "crashed", "error", "stopped", "terminated", "oomkilled", "gone",
        "auto-restart", "restarting", "crashloopbackoff", "backoff", "fatal",
    }
)  # fmt: skip
_EXIT: Final = Late(r"\s*exit(?:[-_ ]?(?:code|status))?[=:] ?(?P<code>-?\d{1,3})\b[,;|]? ?", re.I)
_FLAG: Final = Late(
    r"\s*(?P<name>restarting|running|alive|dead|oom(?:[-_ ]?killed)?|process|proc)[=:] ?(?P<flag>[A-Za-z]+|[01])\b[,;|]? ?",
    re.IGNORECASE,
)
_OF: Final = Late(r"\s*ready[ =:]+(?P<up>\d+)/(?P<all>\d+)\b[,;|]? ?", re.IGNORECASE)
# A field of the loop's that says nothing here; not those that a server's own logger writes.
_OTHER: Final = Late(
    r"\s*(?!(?:time|ts|level|msg|source|logger|caller|tail|log|last|line|out|output)\w{0,5}=)[a-z][\w.-]{0,20}=\S+\s+",
    re.I,
)
_ANSWERED: Final = Late(
    r"\s*(?:ready|healthy|serving)[=:] ?(?P<yes>true|false|yes|no)\b[,;|]? ?", re.IGNORECASE
)
_SEPARATOR: Final = Late(r" ?[|-] (?=\S)")
_TAIL: Final = Late(r"[ |-]*(?:tail|log|last|line)(?:[-_ ]?(?:line|log))?[=:>] ?(?=\S)")
_CODE_IN_WORDS: Final = Late(
    r".{0,160}[(\[](?:HTTP |code[ =:]*|status[ =:]*)?(?P<code>000|[2-5]\d\d)[)\]]\W*$",
    re.IGNORECASE,
)
_RAISED: Final = Late(r"(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Refused): ")
_CODE_BESIDE: Final = Late(
    r".{0,80}?(?:[-=]> ?|[=(:|] ?| - | HTTP )(?P<code>000|[2-5]\d\d)(?![\w.:%/])"
)
# What a loop shows of the log behind its own words on one line.
_BESIDE: Final = Late(
    r".{0,120}?(?:\| |(?:\.{3}|…) (?=[(\[]|[A-Z])|\b(?:last(?: (?:log|line))*|(?:log )?tail|log)[:=] ?['\"]?| [-—–] (?=[A-Z(\[])|: (?=\d{4}-\d\d-\d\d[T ]|\[\d{4}-|\(\w+ pid=|(?:INFO|WARNING|ERROR) )|[:>|-] (?=[A-Z][^|]{3,60}:? +\d{1,3}%))(?P<rest>[A-Z(\[\d].{24,})$"
)
# An end that is told with its code is known to the rules.
_TOLD_HOW: Final = Late(r"\b(?:code|status|signal|rc)\b")
_YES: Final = frozenset({"true", "yes", "1", "alive", "running", "up"})
_ROW: Final = Late(r"\S+ +RUNNING +pid (?P<pid>\d+), uptime (?P<up>[\w:, ]+)$")
# `pm2 list`: pid, time up, restarts, status.
_PM2: Final = Late(r"│ *\d+ +│.*│ (?P<pid>\d+|N/A) +│ \S+ +│ (?P<count>\d+) +│ (?P<state>\w+) +│")
# `systemctl status`, `pgrep -a`, `ps -o pid,etime,…`
_UNIT: Final = Late(
    r"\s*(?:Active: (?P<state>\w+) \((?P<sub>[\w-]+)|(?:Main PID|Process): (?P<pid>\d+) (?:\(|\w+=.*\()(?P<what>[^()]*)\)\s*$)",
    holds=("Active: ", "Main PID", "Process: "),
)
_PGREP: Final = Late(
    r" *(?P<pid>\d{2,8}) +(?:(?:\d+-)?(?:\d\d:)?\d\d:\d\d(?: +[\d.]+)* +[RSDZTI][\w<+]*(?: |$)"
    r"|(?:/\S+/)?(?:python[\d.]*|vllm|sglang|llama-server|ollama|text-generation-\w+|tritonserver|ray|uvicorn|gunicorn)(?: |:))",
    begins=" 0123456789",
)
_CODE_OF: Final = Late(r".*status=(?P<code>\d{1,3})\b")
_BOX: Final = ("┌", "├", "└", "│", "╭", "╰")
_PID_IN_WORDS: Final = Late(
    r".{0,60}\b(?:heartbeat|alive|running|started|up|healthy|ok)\b.{0,20}\bPID[ :=]+(?P<pid>\d+)\)?\W*$",
    re.IGNORECASE,
)


def take_facts(snapshot: Snapshot, text: str) -> str:
    """Move what a line tells of the look into the snapshot; return what is the log's."""
    text = _fields(snapshot, text)
    if snapshot.health is None and not snapshot.lines:
        ending = HEALTH_AT_END.match(text)
        if ending:
            snapshot.health = int(ending["code"])
            return ""
    memory, process = MEMORY.match(text), PROCESS.match(text)
    if memory:
        snapshot.memory = (snapshot.memory or 0) + int(memory["used"])
        return ""
    if process and "grep " in process["command"]:
        return ""
    if process and snapshot.pid is None:
        snapshot.pid = process["pid"]
    if text.startswith(_BOX):
        app = _PM2.match(text)
        if app:
            snapshot.restarts = int(app["count"])
            snapshot.alive = app["state"] == "online"
        return "" if app or text[0] != "│" or "│ id " in text else text
    row = _ROW.match(text)
    if row:
        snapshot.pid = row["pid"]
        return ""
    if _unit(snapshot, text):
        return ""
    listed_pid = _PGREP.match(text)
    if listed_pid:
        snapshot.pid = snapshot.pid or listed_pid["pid"]
        return ""
    chatter = CHATTER.match(text)
    if chatter:
        code = chatter["code"] or chatter["answered"]
        snapshot.health = int(code) if code else snapshot.health
        return ""
    for pattern, answer in BODIES if snapshot.health is None else ():
        if len(text) < MAX_WIDTH and pattern.search(text):
            snapshot.health = answer
            if _RAISED.match(text):
                _drop_traceback(snapshot)
            return ""
    if snapshot.uptime is None:
        snapshot.uptime = uptime_of(text)
        snapshot.ready |= snapshot.uptime is not None and HEALTHY in text
    listed = LISTED.match(text)
    if listed and snapshot.size is None:
        snapshot.size = listed["value"]
        return ""
    if text.strip() and _words(snapshot, text):
        beside = _BESIDE.match(text)
        if beside:
            return beside["rest"].rstrip("'\"")
        return next((text[m.start() :] for m in LOGGED.finditer(text) if m.start()), "")
    return text


def _unit(snapshot: Snapshot, text: str) -> bool:
    """Take what `systemctl status` says of a unit and of its main process."""
    told = _UNIT.match(text)
    if told is None:
        return False
    if told["pid"] is None:
        running = told["state"] == "active"
        snapshot.alive = running if running or told["state"] != "activating" else False
    elif told["what"].startswith("code="):
        code = _CODE_OF.match(told["what"])
        snapshot.exit_code = int(code["code"]) if code else snapshot.exit_code
    else:
        snapshot.pid = told["pid"]
    return True


def _drop_traceback(snapshot: Snapshot) -> None:
    """Take off the frames above an exception of the loop's own, that nobody answered."""
    while snapshot.lines and snapshot.lines[-1][1].startswith(("  ", HEADER)):
        _, text = snapshot.lines.pop()
        if text.startswith(HEADER):
            return


def _words(snapshot: Snapshot, text: str) -> bool:
    """Take what the loop says in words; False when the line is the log's."""
    if len(text) > MAX_WIDTH:
        return False
    own = said(text)
    named = _PID_IN_WORDS.match(own) or OF_PROCESS.match(own)
    if named:
        snapshot.pid, snapshot.alive = named["pid"], True
    answered = OF_HEALTH.match(own) if len(own) < MAX_WORDS else None
    if answered and snapshot.health is None:
        snapshot.health = int(answered["code"])
        return True
    if says_not_yet(text):
        coded = _CODE_IN_WORDS.match(own) or _CODE_BESIDE.match(own)
        # The word decides: a loop that says "not ready" did not take its 200 for an answer.
        if coded and snapshot.health is None and not coded["code"].startswith("2"):
            snapshot.health = int(coded["code"])
        return True
    if says_ready(text):
        snapshot.ready = True
        return True
    stated = STATED.match(own) if len(own) < MAX_WORDS and not snapshot.lines else None
    if stated:
        _state(snapshot, stated["word"].lower())
        return True
    if DIED.match(own) and not _TOLD_HOW.search(own):
        snapshot.alive = False
        return True
    if STARTS_AGAIN.match(own):
        snapshot.begun = True
        return True
    return says_gave_up(text) or named is not None


def _fields(snapshot: Snapshot, text: str) -> str:
    """Take fields off the head of a line, as long as there are any that tell something."""
    rest, known = text, text
    for _ in range(MAX_FIELDS):
        end = _field(snapshot, rest)
        if end:
            rest = known = rest[end:]
            continue
        other = _OTHER.match(rest)
        if other is None:
            break
        rest = rest[other.end() :]
    if known is text:
        return text
    tail = _TAIL.match(rest) or _SEPARATOR.match(rest)
    rest = rest[tail.end() :] if tail else rest
    quote = rest[:1]
    return rest[1:-1] if tail and quote in ("'", '"') and rest[-1:] == quote else rest


def _field(snapshot: Snapshot, text: str) -> int:
    """Take the field at the head of a text; return where it ends, 0 without one."""
    answered = _ANSWERED.match(text)
    if answered:
        snapshot.ready |= answered["yes"].lower() in _YES
        return answered.end()
    curled = CURLED.match(text)
    if curled:
        snapshot.health = 200 if int(curled["rc"]) == 0 else 0
        return curled.end()
    health = HEALTH.match(text)
    if health:
        snapshot.health = int(health["code"] or health["bare"])
        return health.end()
    size = SIZE.match(text)
    if size:
        snapshot.size = f"{snapshot.size or ''} {size['value'] or size['sized'] or size['count']}"
        return size.end()
    pid = PID.match(text)
    if pid:
        snapshot.pid = pid["pid"] if pid["pid"] != "0" else snapshot.pid
        return pid.end()
    count = RESTARTS.match(text)
    if count:
        snapshot.restarts = int(count["count"])
        return count.end()
    code, flag, of = _EXIT.match(text), _FLAG.match(text), _OF.match(text)
    if code:
        snapshot.exit_code = int(code["code"])
        return code.end()
    if of:
        snapshot.ready |= of["up"] == of["all"] != "0"
        return of.end()
    if flag:
        _flag(snapshot, flag["name"].lower(), flag["flag"].lower())
        return flag.end()
    word = WORD.match(text)
    if word:
        _state(snapshot, word["word"].lower())
        return word.end()
    return 0


def _state(snapshot: Snapshot, state: str) -> None:
    snapshot.ready |= state in _UP
    if state in _OVER:
        snapshot.alive = False
    elif state in _ALIVE and snapshot.alive is None:
        snapshot.alive = True


def _flag(snapshot: Snapshot, name: str, value: str) -> None:
    yes = value in _YES
    if name.startswith("oom"):
        snapshot.oom = yes
    elif name in ("restarting", "dead"):
        snapshot.alive = False if yes else snapshot.alive
    else:
        snapshot.alive = yes and snapshot.alive is not False
