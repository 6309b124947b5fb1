"""What an alarm carries: one document, made once, for every channel."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final

from loopdetect.follow.happened import Happened
from loopdetect.model import Report
from loopdetect.render.clock import iso
from loopdetect.render.escape import json_safe, visible
from loopdetect.render.to_json import report_object
from loopdetect.render.width import cut

LONGEST_VALUE: Final = 4000
PREFIX: Final = "WATCH_"
LONGEST_CAUSE: Final = 300
_SLACK: Final = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


@dataclass(frozen=True, slots=True)
class Message:
    """One alarm on its way; `body` is a JSON document."""

    id: str
    body: str

    @property
    def document(self) -> dict[str, Any]:
        """Return the body as an object."""
        document: dict[str, Any] = json.loads(self.body)
        return document


def message(event: Happened, report: Report | None) -> Message:
    """Return the alarm for an event, with the report it was made from."""
    document = {
        "text": slack_text(event, report),
        "id": event.id,
        "event": event.what.value,
        "at": utc(event.at),
        "source": event.source,
        "stream": event.stream,
        "state": event.state.value,
        "previous_state": event.previous.value if event.previous else None,
        "phase": event.phase.value,
        "reason": event.reason,
        "line": event.line,
        "summary": event.text,
        "report": report_object(report) if report else None,
    }
    return Message(event.id, json_safe(json.dumps(document, ensure_ascii=False)))


def slack_text(event: Happened, report: Report | None) -> str:
    """Return what a chat shows: state, source, summary, cause, hint."""
    source = visible(event.source) + (f" [{visible(event.stream)}]" if event.stream else "")
    lines = [f"*{_slack(event.what.value)}*: {_slack(source)} is {event.state.value}"]
    lines.append(_slack(cut(visible(event.text), LONGEST_CAUSE)))
    cause = report.verdict.cause if report and event.reason else None
    if cause:
        text = _slack(cut(visible(cause.text), LONGEST_CAUSE)).replace("`", "'")
        lines.append(f"line {cause.line}: `{text}`")
        if cause.hint:
            lines.append(_slack(visible(cause.hint)))
    return "\n".join(lines)


def facts(document: dict[str, Any]) -> dict[str, str]:
    """Return the environment variables that a command is given."""
    report = document.get("report") or {}
    verdict = report.get("verdict") or {}
    cause = verdict.get("cause") or {}
    server = report.get("server") or {}
    values = {
        "ID": document["id"],
        "EVENT": document["event"],
        "TIME": document["at"],
        "SOURCE": document["source"],
        "STREAM": document["stream"],
        "STATE": document["state"],
        "PREVIOUS_STATE": document["previous_state"],
        "SERVER": server.get("name"),
        "PHASE": document["phase"],
        "RESTARTS": verdict.get("restarts"),
        "CRASHES": verdict.get("crashes"),
        "REASON": document["reason"],
        "CAUSE": cause.get("text"),
        "CAUSE_LINE": cause.get("line"),
        "HINT": cause.get("hint"),
        "SUMMARY": document["summary"],
    }
    return {f"{PREFIX}{name}": _value(value) for name, value in values.items()}


def utc(seconds: float) -> str:
    """Return a moment as ISO 8601 in UTC."""
    return f"{iso(seconds)}Z"


def _value(value: object) -> str:
    return "" if value is None else visible(str(value))[:LONGEST_VALUE]


def _slack(text: str) -> str:
    return text.translate(_SLACK)
