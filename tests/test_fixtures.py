"""Every shipped log gets the verdict that its expectation file asks for, however it is fed."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from loopdetect.core.detector import Detector
from loopdetect.expectation import compare, load_expectation
from loopdetect.model import Report
from loopdetect.profiles import load_library

FIXTURES = Path(__file__).parent.parent / "fixtures"
LOGS = sorted(FIXTURES.rglob("*.log"))
IDS = [str(log.relative_to(FIXTURES)) for log in LOGS]
LIBRARY = load_library()
SMALL = 6000


def report(data: bytes, sizes: Callable[[], int], now: float | None = None) -> tuple[Report, ...]:
    detector = Detector(LIBRARY, source="x.log")
    at = 0
    while at < len(data):
        size = sizes()
        detector.feed(data[at : at + size])
        at += size
    return detector.finish(now=now)


def test_each_log_has_an_expectation_and_each_expectation_a_log() -> None:
    named = {
        path.with_name(path.name.removesuffix(".expect.toml"))
        for path in FIXTURES.rglob("*.expect.toml")
    }
    assert {log.with_suffix("") for log in LOGS} == named
    assert len(LOGS) > 100


@pytest.mark.parametrize("log", LOGS, ids=IDS)
def test_the_verdict_is_the_expected_one(log: Path) -> None:
    expectation = load_expectation(log.with_suffix(".expect.toml"))
    data = log.read_bytes()
    reports = report(data, lambda: max(1, len(data)), expectation.now)
    assert compare(expectation, reports) == []


@pytest.mark.parametrize("log", LOGS, ids=IDS)
def test_the_report_is_the_same_for_any_chunking(log: Path) -> None:
    data = log.read_bytes()
    whole = report(data, lambda: max(1, len(data)))
    chance = random.Random(len(data))
    assert report(data, lambda: chance.choice((1, 3, 80, 700, 5000))) == whole
    lines = iter([len(line) for line in data.splitlines(keepends=True)] + [1])
    assert report(data, lambda: next(lines)) == whole
    if len(data) <= SMALL:
        assert report(data, lambda: 1) == whole


@pytest.mark.parametrize("log", LOGS[::5], ids=IDS[::5])
def test_a_snapshot_says_what_the_end_would_say_and_changes_nothing(log: Path) -> None:
    data = log.read_bytes()
    detector = Detector(LIBRARY, source="x.log")
    half = len(data) // 2
    detector.feed(data[:half])
    early = detector.snapshot()
    first = Detector(LIBRARY, source="x.log")
    first.feed(data[:half])
    assert early == first.finish()
    detector.feed(data[half:])
    assert detector.snapshot() == detector.finish() == report(data, lambda: max(1, len(data)))
