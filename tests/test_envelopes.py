"""What a collector puts round a log's lines changes nothing of what is said of it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from loopdetect.core.detector import Detector
from loopdetect.core.envelope import peel, uncoloured
from loopdetect.core.fingerprint import mask
from loopdetect.core.margin import margins_of
from loopdetect.expectation import load_expectation
from loopdetect.model import Report, State
from loopdetect.profiles import load_library

LIBRARY = load_library()
ROOT = Path(__file__).parent.parent / "fixtures"
SKIPPED = frozenset({"transcripts", "supervisors"})
OWN_TIME = re.compile(r"(?:20\d\d[-/])?(\d\d)[-/](\d\d)[ T](\d\d):(\d\d):(\d\d)")
# A collector's own words, its margin, and fences between pastes of several nodes.
WRAPPED = re.compile(r"(?m)exited with code|^[\w.-]+ +\| |^\S+ explorer |^```")
LOOKED_AT = 80
Wrap = Callable[[str, datetime, int], str]

ENVELOPES: dict[str, Wrap] = {
    "docker": lambda line, at, n: json.dumps(
        {"log": line + "\n", "stream": "stderr", "time": f"{at:%Y-%m-%dT%H:%M:%S}.000000000Z"}
    ),
    "cri": lambda line, at, n: f"{at:%Y-%m-%dT%H:%M:%S}.000000000Z stderr F {line}",
    "docker-timestamps": lambda line, at, n: f"{at:%Y-%m-%dT%H:%M:%S}.000000000Z {line}",
    "kubectl": lambda line, at, n: f"[pod/llm-0/server] {line}",
    "compose": lambda line, at, n: f"llm-1  | {line}",
    "syslog": lambda line, at, n: f"{at:%b %e %H:%M:%S} node serve[4242]: {line}",
    "journal-iso": lambda line, at, n: f"{at:%Y-%m-%dT%H:%M:%S}+0000 node serve[4242]: {line}",
    "ts": lambda line, at, n: f"{at:%b %d %H:%M:%S} {line}",
    "indented": lambda line, at, n: f"    {line}",
    "quoted": lambda line, at, n: f"> {line}",
    "numbered": lambda line, at, n: f"{n:>6}\t{line}",
    "crlf": lambda line, at, n: f"{line}\r",
    "coloured": lambda line, at, n: f"\x1b[32m{line}\x1b[0m",
}


def times(lines: list[str]) -> Iterator[datetime]:
    """When each line was written: its own time, or that of the line before."""
    at = datetime(2026, 1, 1, tzinfo=UTC)
    for line in lines:
        found = OWN_TIME.search(line[:LOOKED_AT])
        if found:
            month, day, hour, minute, second = map(int, found.groups())
            own = datetime(2026, month, day, hour, minute, second, tzinfo=UTC)
            at = max(at, own) if own - at < timedelta(days=400) else at
        yield at


def plain_logs() -> Iterator[Path]:
    """Logs of one server with times of their own and nothing round their lines."""
    for path in sorted(ROOT.glob("*/*.log")):
        text = path.read_bytes().decode("utf-8", "replace")
        lines = text.splitlines()
        wanted = load_expectation(path.with_suffix(".expect.toml"))
        dated = sum(bool(OWN_TIME.search(line[:LOOKED_AT])) for line in lines)
        if (
            path.parent.name not in SKIPPED
            and not path.stem.startswith("margin-")
            and not wanted.streams
            and State.STALLED not in wanted.whole["state"]
            and "\r" not in text
            and dated * 2 >= len(lines) >= 12
            and not WRAPPED.search(text)
            and not margins_of(path.read_bytes())
            and not any(peel(uncoloured(line)).kinds for line in lines)
        ):
            yield path


LOGS = list(plain_logs())[::2]


def judged(data: bytes) -> tuple[object, ...]:
    detector = Detector(LIBRARY)
    detector.feed(data)
    (report,) = detector.finish()
    return said(report)


def said(report: Report) -> tuple[object, ...]:
    verdict = report.verdict
    cause = verdict.cause
    return (
        report.kind,
        report.server.name,
        verdict.state,
        verdict.restarts,
        verdict.phase,
        verdict.ready_seen,
        cause and (cause.reason, mask(cause.text)),
    )


def test_there_are_logs_of_many_servers() -> None:
    assert len(LOGS) > 50
    assert len({path.parent.name for path in LOGS}) > 5


@pytest.mark.parametrize("path", LOGS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_an_envelope_changes_nothing(path: Path) -> None:
    data = path.read_bytes()
    plain = judged(data)
    lines = data.decode("utf-8", "replace").splitlines()
    stamps = list(times(lines))
    for name, wrap in ENVELOPES.items():
        wrapped = (
            wrap(line, at, n) for n, (line, at) in enumerate(zip(lines, stamps, strict=True), 1)
        )
        assert judged("\n".join([*wrapped, ""]).encode()) == plain, name
