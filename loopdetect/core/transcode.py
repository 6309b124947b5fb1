"""JSON collectors (docker's json-file, `journalctl -o json`) rewritten as plain enveloped lines.

One physical line stays one physical line: line ends inside a message become carriage returns.
Rewriting takes long, so a log is taken a piece at a time, and a piece in which nothing is found
is passed over as it is.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, Final

SAMPLE_LINES: Final = 5
PIECE: Final = 8 * 1024
# How docker escapes what the search does not know escaped: `<`, `>`, `&`, control characters.
ESCAPED: Final = b"\\u00"


def is_json_envelope(head: bytes) -> bool:
    """True when the first lines of a log are records of a JSON collector."""
    lines = [line for line in head.split(b"\n")[:SAMPLE_LINES] if line.strip()]
    return bool(lines) and all(
        _record(line) is not None for line in lines[: max(1, len(lines) - 1)]
    )


def pieces(buffer: bytes, start: int, stop: int) -> Iterator[tuple[int, int]]:
    """Yield pieces of whole lines; the records that docker makes of one long line are in one piece."""
    while start < stop:
        end = start
        while end < stop and (end == start or goes_on(buffer, start, end)):
            end = buffer.find(b"\n", min(end + PIECE, stop) - 1, stop) + 1 or stop
        yield start, end
        start = end


def goes_on(buffer: bytes, start: int, end: int) -> bool:
    """True when the last line of a piece is a record of docker's whose text goes on in the next one."""
    line = buffer[max(start, buffer.rfind(b"\n", start, end - 1) + 1) : end]
    return line.startswith(b'{"log":') and b'\\n","' not in line


def transcode(region: bytes) -> bytes:
    """Rewrite whole lines; what is no such record is kept as it is."""
    return b"".join(_line(line) for line in region.splitlines(keepends=True)) if region else region


def _record(line: bytes) -> dict[str, Any] | None:
    if not line.startswith(b"{"):
        return None
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(record, dict):
        return None
    docker = isinstance(record.get("log"), str) and "time" in record
    journal = "MESSAGE" in record and "__REALTIME_TIMESTAMP" in record
    return record if docker or journal else None


def _line(line: bytes) -> bytes:
    record = _record(line)
    if record is None:
        return line
    text = _docker(record) if "log" in record else _journal(record)
    inner = text.replace("\r\n", "\r").replace("\n", "\r").rstrip("\r")
    end = b"\n" if line.endswith(b"\n") else b""
    return inner.encode("utf-8", "replace") + end


def _docker(record: dict[str, Any]) -> str:
    text = str(record["log"])
    tag = "F" if text.endswith("\n") else "P"
    return f"{record['time']} {record.get('stream', 'stdout')} {tag} {text}"


def _journal(record: dict[str, Any]) -> str:
    message = record["MESSAGE"]
    if isinstance(message, list):
        message = bytes(b for b in message if isinstance(b, int) and 0 <= b < 256).decode(
            "utf-8", "replace"
        )
    try:
        when = datetime.fromtimestamp(int(record["__REALTIME_TIMESTAMP"]) / 1e6, UTC)
        stamp = when.strftime("%Y-%m-%dT%H:%M:%S.%f+00:00")
    except (ValueError, OverflowError, TypeError):
        stamp = "1970-01-01T00:00:00.000000+00:00"
    name = str(record.get("SYSLOG_IDENTIFIER") or record.get("_COMM") or "unknown").replace(
        " ", "-"
    )
    pid = record.get("_PID") or record.get("SYSLOG_PID")
    who = f"{name}[{pid}]" if pid else name
    return f"{stamp} host {who}: {message if message is not None else ''}"
