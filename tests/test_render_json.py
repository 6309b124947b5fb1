from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from report_samples import (
    CRASH_LOOP,
    HOSTILE,
    HOSTILE_TEXT,
    READY,
    SHARDS,
    START,
    UNKNOWN,
    make_run,
)

from loopdetect import __version__
from loopdetect.model import Report
from loopdetect.render import RenderOptions, renderer

CAUSE = {"line", "text", "reason", "hint", "certainty"}


def parsed(*reports: Report) -> Any:
    return json.loads(renderer("json")(reports, RenderOptions()))


def test_the_document_has_the_promised_shape() -> None:
    document = parsed(CRASH_LOOP)
    assert {"schema_version", "tool_version", "reports"} == set(document)
    assert (document["schema_version"], document["tool_version"]) == (1, __version__)
    report = document["reports"][0]
    assert {"source", "stream", "kind", "lines", "bytes", "server", "verdict", "runs"} <= set(
        report
    )
    assert report["server"] == {"name": "vllm", "version": "0.32.0"}
    verdict = report["verdict"]
    assert {
        "state", "certainty", "summary", "restarts", "crashes", "ready_seen", "phase", "cause",
        "first_cause", "evidence",
    } <= set(verdict)  # fmt: skip
    assert set(verdict["cause"]) == CAUSE
    assert verdict["evidence"] == [
        {"line": 1, "kind": "start", "text": "vLLM API server version 0.32.0"}
    ]
    run = report["runs"][0]
    assert {
        "number", "first_line", "last_line", "started_at", "ended_at", "duration_s", "phase",
        "ready_after_s", "ready", "outcome", "exit", "cause", "fingerprint", "phases", "progress",
    } <= set(run)  # fmt: skip
    assert run["exit"] == {"code": 1, "signal": None}
    assert set(run["cause"]) == CAUSE
    assert run["phases"][1] == {
        "phase": "load-weights",
        "line": 60,
        "started_at": "2026-03-01T10:00:20",
        "duration_s": 488.25,
    }
    assert run["progress"][0] == {
        "label": "Loading checkpoint shards", "done": 63, "total": 64, "elapsed_s": 13,
        "remaining_s": 0.2, "first_line": 61, "last_line": 126,
    }  # fmt: skip


def test_an_empty_call_is_still_a_document() -> None:
    assert parsed()["reports"] == []


def test_what_is_not_known_is_null() -> None:
    verdict = parsed(UNKNOWN)["reports"][0]["verdict"]
    assert [verdict[key] for key in ("cause", "restarts", "ready_seen", "since")] == [None] * 4


@pytest.mark.parametrize("number", [float("nan"), float("inf"), None])
def test_numbers_that_json_lacks_are_null(number: float | None) -> None:
    run = make_run(1, duration_s=number, progress=(replace(SHARDS, total=number),))
    shown = parsed(replace(READY, runs=(run,)))["reports"][0]["runs"][0]
    assert shown["duration_s"] is None
    assert shown["progress"][0]["total"] is None


@pytest.mark.parametrize(
    ("seconds", "clock", "expected"),
    [
        (START, None, "2026-03-01T10:00:00"),
        (START + 0.25, None, "2026-03-01T10:00:00.250"),
        (START, "wall", "2026-03-01T10:00:00"),
        (START, "wall-no-year", "--03-01T10:00:00"),
        (START + 0.25, "time-of-day", "T10:00:00.250"),
        (1e20, None, None),
        (None, None, None),
    ],
)
def test_times_are_iso_without_a_guessed_zone_year_or_date(
    seconds: float | None, clock: str | None, expected: str | None
) -> None:
    report = replace(READY, clock=clock, runs=(make_run(1, started_at=seconds),))
    assert parsed(report)["reports"][0]["runs"][0]["started_at"] == expected


def test_hostile_text_comes_back_whole_and_is_printed_harmless() -> None:
    text = renderer("json")([HOSTILE], RenderOptions())
    assert json.loads(text)["reports"][0]["runs"][0]["cause"]["text"] == HOSTILE_TEXT
    assert all(char == "\n" or char.isprintable() for char in text)
