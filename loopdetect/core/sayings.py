"""What a polling loop says in its own words: not yet, ready, gave up, the process is gone."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from loopdetect.core.late import Late

KEPT: Final = 1024
_NEGATED: Final = Late(
    r"\b(?:not|isn't|never|until|waiting|yet|before|died|dead|gone|failed|cannot|unable|longer|unhealthy|no)\b",
    re.IGNORECASE,
)
_WHO: Final = r"(?:[Ss]erver|[Ss]ervice|[Mm]odel|[Ee]ndpoint|[Ee]ngine|[Bb]ackend|API|LLM|v?LLM|SGLang|sglang|vllm|llama-server|llama\.cpp|[Oo]llama|TGI|[Tt]riton|LMDeploy|[Hh]ealth(?: check)?|[Hh]eartbeat)"
# What may follow the word: how long it took, where it is.
_AFTERWARDS: Final = (
    r"(?: and [Rr]eady)?(?: \([^()]*\))?(?:[ !.:✅🎉]*| (?:after|in|at|on|with|for)\b.*"
    r"|[ !.:]*\(.*\)|[!.] (?:\(|[Tt]ook|[Bb]oot|[Ss]tart|[Ll]oad|[Mm]odel|[Ee]lapsed|[Tt]ime)\b.*)$"
)
READY: Final = Late(
    r"(?:[-=#>*✓✔✅ ]*)(?:"
    + _WHO
    + r"\b[^\n]{0,40}?(?:is (?:now )?)?)?(?:READY|[Rr]eady|HEALTHY|[Hh]ealthy|is up|UP|OK)\b"
    + _AFTERWARDS,
    holds=("READY", "eady", "HEALTHY", "ealthy", "is up", "UP", "OK"),
)
_ALSO_READY: Final = Late(
    r"(?:[-=#>*✓✔✅ ]*)"
    + _WHO
    + r"\b[^\n]{0,40}? (?:(?:is )?up (?:after|in|and (?:running|responding|ready|healthy|serving))\b|became (?:ready|healthy)\b|successfully started at\b"
    r"|is (?:now )?(?:reachable|responding|available)\b(?! \d)).{0,120}$"
    r"|(?:[Uu]p|[Rr]eady|[Hh]ealthy|[Aa]live)\? ?(?:yes|true)[ !.]*$"
    r"|(?:\S+ ){0,2}/(?:health|ready|v1/models)\w* (?:is|returned|->|=>|responded(?: with)?) 200\b.{0,80}$"
    r"|(?:deployment|statefulset|daemon set) \"[^\"]+\" successfully rolled out$"
)
_ALSO: Final = ("up after", "up in", "up and", "running", "became", "started at", "is now", "is reach", "is resp", "is avail", "?", "/health", "/ready", "/v1", "rolled")  # fmt: skip
_THEIR_WHO: Final = r"(?:servidor|servicio|serviço|modelo|serveur|modèle|server|dienst|modell|servizio|modello|сервер|модель|сервис|v?llm|sglang|ollama|tgi|api)"
_READY_ABROAD: Final = Late(
    r"(?!.*(?:不|未|没|尚|待|まだ|아직|\b(?:не|ещё|нет|no|nicht|noch|pas|non|não|ainda|todavía|ancora|estará|será|sera|chưa|sarà|wird|будет)\b))"
    r"(?:.{0,60}?(?:就绪|就緒|启动成功|启动完成|啟動成功|準備完了|起動完了|起動しました|利用可能|준비 ?완료|준비되었|시작되었|sẵn sàng|\b(?-i:READY)\b)"
    r"|.{0,40}?\b"
    + _THEIR_WHO
    + r"\b.{0,30}?\b(?:готов[аоы]?|listo|lista|pronto|pronta|bereit|prêt|prête)\b).{0,60}$",
    re.IGNORECASE,
)
_WAITED_FOR: Final = r"(?:server|service|model|engine|health|https?:|endpoint|api|port|url|vllm|sglang|llama|tgi|ollama|triton|trtllm|lmdeploy|deployment|rollout|container|pod)"
# What a loop says while it waits, in its own words.
NOT_YET: Final = Late(
    r"[-=#>*✗❌⏳. ]*(?:(?:still|the|it|it's|is|server|service|model|endpoint|health(?: check)?|api|port \d+|v?llm|llm|sglang|ollama|tgi|triton|llama-server|engine|backend|proxy)[ :]+){0,4}"
    r"(?:still (?:loading|starting|initializing|warming up|waiting|down)\b"
    r"|not (?:yet )?(?:ready|up|healthy|responding|reachable|available|listening)\b"
    r"|(?:please )?wait(?:ing)? (?:for|on|until) [^\n]{0,80}?(?<![/.\w])"
    + _WAITED_FOR
    + r"|(?:up|ready|healthy|alive)\? ?(?:no|false)\b"
    r"|FAILED - RETRYING: |(?:\S+ )?Retrying \(Retry\(total=|(?:process |server )?(?:is )?running,? but |health (?:check|probe) (?:#?\d+ )?failed(?: \(|,| -|:|\s*$)"
    r"|waiting ?(?:\(\d+ ?s|(?:\.{2,3}|…) (?=\(\w+ pid=|\[?\d{4}-|[A-Z][^|]{3,60}\d%|(?:INFO|WARNING|ERROR) ))"
    r"|(?:health|readiness|liveness)[ -]?(?:check|probe|status)?\s?[:=]\s?(?:fail(?:ed|ing|ure)?|down|bad|offline|error|no)\W*$"
    r"|(?:status|server|api|endpoint)\s?[:=]\s?(?:down|offline)\W*$"
    r"|wait(?:ing)?\b[^\n]{0,160}?(?:refused|reset by peer)|\d+ (?:tries|attempts|retries)\b[^\n]{0,160}?refused"
    r"|unhealthy\b|unreachable\b|no (?:response|answer|reply)\b|connection refused\b)",
    re.IGNORECASE,
    holds=(
        "still ",
        "not ",
        "wait",
        "? ",
        "?no",
        "?false",
        "retry",
        "running",
        "health",
        "readiness",
        "liveness",
        "down",
        "offline",
        "unreachable",
        "no re",
        "no answer",
        "refused",
    ),
)
_NOT_YET_ABROAD: Final = Late(
    r".{0,30}?(?:đang (?:tải|chờ|khởi)|等待|正在(?:启动|加载)|尚未|还没|未就绪|待機中|起動中|準備中|待って|대기 ?중|기다리|시작 ?중|준비 ?중|아직"
    r"|\b(?:ожида\w+|ждём|ждем|ещё не|еще не|esperando|aguardando|todavía no|aún no|ainda não|warte\w*|noch nicht|nicht bereit"
    r"|en attente|attente d|pas encore|in attesa|non ancora)\b)",
    re.IGNORECASE,
)
GAVE_UP: Final = Late(
    r"(?:[-=#>*✗❌ ]*)(?:TIMEOUT|TIMED OUT|[Tt]imed? ?out|FAILED|[Ff]ailed|GIVING UP|[Gg]iving up|ERROR: (?:server|timeout|Job failed)|[Gg]ave up)\b.{0,80}$"
    r"|.{0,60}\b(?:failed to (?:start|become|come)|never (?:became|came)|did(?: not|n't) (?:start|become|respond|come)|not (?:ready|healthy|reachable) after)\b.{0,100}$",
    holds=(
        "TIME",
        "imeout",
        "ime out",
        "imed",
        "FAILED",
        "ailed",
        "GIVING",
        "iving",
        "ERROR: ",
        "ave up",
        "never ",
        "did",
        "not ",
    ),
)
# The loop looked for the process, and it is not there any more.
DIED: Final = Late(
    r"[-=#>*✗❌ ]*(?:(?:error|warn(?:ing)?|fatal)[: ]+)?(?:(?:the|main|our) )*"
    r"(?:(?:v?llm|sglang|llama-server|ollama|tgi|triton|server|engine|service|container|process|pid|job)\b[ :]*){1,3}(?:#?\d+ )?(?:has |have |is |was )?"
    r"(?:died|crashed|dead|gone|killed|not running|no longer (?:running|alive)|exited|terminated)\b.{0,80}$",
    re.IGNORECASE,
)
# It starts the server anew itself.
STARTS_AGAIN: Final = Late(
    r"[-=#>* ]*(?:attempting |trying |auto-?)?(?:a )?restart(?:ing|ed)?\b[^\n]{0,60}(?:#?\d+(?: ?(?:/|of) ?\d+)?|server|vllm|sglang|llama-server)\W*$",
    re.IGNORECASE,
)
MAX_STARTS: Final = Late(
    r"[-=#>*✗❌ ]*max(?:imum)?\b.{0,30}\brestart.{0,30}\b(?:reached|exceeded)\b.{0,60}$",
    re.IGNORECASE,
    holds=("restart",),
)
# How a script ends that has waited long enough.
OWN_END: Final = Late(
    r"[\w.]*(?:Error|Exception|Exit|Timeout\w*): .*\b(?:server|service|endpoint|health|model|url|http\S*)\b.*"
    r"\b(?:not|never|fail(?:ed|s) to)\b.{0,30}\b(?:ready|up|healthy|start|respond|available)\w*\b.*\d"
    r"|[\w.]*(?:Connection|Connect|MaxRetry|URL)Error: .*(?:refused|Max retries|Errno 111).*(?:/health|/v1/models|/ready)",
    re.IGNORECASE,
)
_LEVELS: Final = ("DEBUG:", "INFO:", "WARNING:", "ERROR:", "CRITICAL:")
_SMALL_LEVELS: Final = ("debug: ", "info: ", "warn: ", "warning: ", "error: ")
_BASIC: Final = Late(r"[A-Z]+:[\w.]+:(?! )")
_TAG: Final = Late(r"\[(?:(?![\d-]{8})[A-Za-z*!?+][\w .:/-]{0,24}|\d{1,4}/\d{1,4})\] *")
# Frames, blocks and braille cells are a bar's or a table's, not a decoration.
_DRAWN: Final = ("─", "▟")


def plain(text: str) -> str:
    """Return a line without the pictures and the blanks before its first word."""
    first = text[:1]
    if first <= "\u2010" or _DRAWN[0] <= first <= _DRAWN[1] or first.isalnum():
        return text
    end = 0
    while (
        end < len(text) and not text[end].isalnum() and (text[end] > "\u2010" or text[end] == " ")
    ):
        end += 1
    return text[end:]


def said(text: str) -> str:
    """Return what a loop says behind its pictures and a tag: `[wait] `, `[SYSTEM] `."""
    text = plain(text).strip()
    if text.startswith(_LEVELS):
        text = _BASIC.sub("", text, 1)
    elif text.startswith(_SMALL_LEVELS):
        text = text.partition(": ")[2]
    if text.startswith("..."):
        text = text.lstrip(".").removeprefix("\\n").strip()
    return plain(_TAG.sub("", text, 1)) if text.startswith("[") else text


@lru_cache(maxsize=KEPT)
def hints(text: str) -> bool:
    """True when a text has a word with which a loop may say that it waits or that it need not."""
    low = text[:HINTED].lower()
    return any(word in low for word in _HINTS) or abroad(text)


def says_not_yet(text: str) -> bool:
    """True when a text says that the server is not ready."""
    if not hints(text):
        return False
    text = said(text)
    return bool(NOT_YET.match(text)) or (abroad(text) and bool(_NOT_YET_ABROAD.match(text)))


def says_ready(text: str) -> bool:
    """True when a text says that the server is ready and nothing else."""
    if not hints(text):
        return False
    text = said(text)
    if not text:
        return False
    found = READY.match(text) or (any(word in text for word in _ALSO) and _ALSO_READY.match(text))
    return bool(found and not _NEGATED.search(text)) or (
        abroad(text) and bool(_READY_ABROAD.match(text))
    )


def says_gave_up(text: str) -> bool:
    """True when a text says that the loop has waited long enough."""
    text = said(text)
    return bool(text) and bool(GAVE_UP.match(text) or MAX_STARTS.match(text))


def says_of_process(text: str) -> bool:
    """True when a text says that a watchdog found its process gone, starts it again or gives up."""
    if not any(word in text.lower() for word in _GONE):
        return False
    text = said(text)
    return bool(DIED.match(text) or STARTS_AGAIN.match(text) or MAX_STARTS.match(text))


_HINTS: Final = (
    "wait", "still", "not ", "ready", "health", "unreach", "no re", "no an", "refused", "retry", "alive?",
    "up", "ok", "rolled", "reachable", "respond", "available", "started", "but ", "down", "offline",
)  # fmt: skip
_GONE: Final = (
    "restart", "died", "crash", "dead", "gone", "kill", "running", "alive", "exited", "terminated"
)  # fmt: skip
HINTED: Final = 200
_ABROAD: Final = (
    "espera", "aguard", "listo", "lista", "pront", "warte", "bereit", "noch nicht", "attente", "attesa", "ancora"
)  # fmt: skip


def abroad(text: str) -> bool:
    """True when a short text may be in another language than English."""
    if len(text) >= HINTED:
        return False
    if not text.isascii() and any(char.isalpha() and char > "\u007f" for char in text):
        return True
    low = text.lower()
    return any(word in low for word in _ABROAD)
