"""The search finds what reading every line with every rule finds, however the bytes come."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from slow_reading import bench, fast_reports, made_log, slow_reports

from loopdetect.core.detector import Detector
from loopdetect.profiles import load_library

LIBRARY = load_library()
FIXTURES = Path(__file__).parent.parent / "fixtures"
LOGS = sorted(FIXTURES.rglob("*.log"))
SMALL = [path for path in LOGS if path.stat().st_size < 6000]


@pytest.mark.parametrize("path", LOGS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_fixture_reads_the_same_slowly_and_fast(path: Path) -> None:
    data = path.read_bytes()
    slow = slow_reports(LIBRARY, data)
    assert fast_reports(LIBRARY, data) == slow
    assert fast_reports(LIBRARY, data, 257) == slow


@pytest.mark.parametrize("path", SMALL[::5], ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_fixture_reads_the_same_byte_by_byte(path: Path) -> None:
    data = path.read_bytes()
    assert fast_reports(LIBRARY, data, 1) == slow_reports(LIBRARY, data)


@pytest.mark.parametrize("server", ["vllm", "sglang", "llama-cpp"])
@pytest.mark.parametrize(
    "kind",
    ["normal", "quiet", "prompts", "bars", "bars-cr", "restarts", "cri", "journald", "docker"],
)
def test_a_made_log_reads_the_same_slowly_and_fast(
    kind: str, server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bench("logs"), "LIVES", 12)
    data = made_log(kind, server, 200_000)
    slow = slow_reports(LIBRARY, data)
    assert slow[0].server.name == server
    for size in (1 << 18, 1 << 16, 4099):
        assert fast_reports(LIBRARY, data, size) == slow


@pytest.mark.parametrize("seed", range(60))
def test_a_damaged_log_reads_the_same_slowly_and_fast(seed: int) -> None:
    dice = random.Random(seed)
    lines = dice.choice(LOGS).read_bytes().split(b"\n")
    first = dice.randrange(max(1, len(lines) // 2)) if seed % 2 else 0
    data = b"\n".join(line for line in lines[first:] if dice.random() > 0.1) + b"\n"
    slow = slow_reports(LIBRARY, data)
    assert fast_reports(LIBRARY, data) == slow
    assert fast_reports(LIBRARY, data, dice.choice([61, 333, 1000])) == slow


def test_a_look_in_between_changes_nothing() -> None:
    data = made_log("bars", size=200_000)
    detector = Detector(LIBRARY, source="log")
    for start in range(0, len(data), 20_000):
        detector.feed(data[start : start + 20_000])
        assert detector.snapshot() == slow_reports(LIBRARY, data[: start + 20_000])
    assert detector.finish() == slow_reports(LIBRARY, data)


def test_a_restart_while_serving_is_seen_by_its_later_phases() -> None:
    log = made_log("normal", size=300_000)
    banner = b"vLLM API server version"
    at = log.index(b"Application startup complete", log.index(banner) + 1)
    served = log[: log.index(b"\n", at + 10_000) + 1]
    again = b"".join(
        line + b"\n"
        for line in log[: log.index(b"Loading weights took")].split(b"\n")[:-1]
        if banner not in line and b"non-default args" not in line
    ).replace(b"01-01 00:", b"01-01 05:")
    data = served + again
    slow = slow_reports(LIBRARY, data)
    assert slow[0].verdict.restarts == 1
    assert fast_reports(LIBRARY, data) == slow
