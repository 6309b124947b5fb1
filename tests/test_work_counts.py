"""How much work a megabyte of log makes, counted instead of timed."""

from __future__ import annotations

import pytest
from slow_reading import bench, made_log

from loopdetect.core.detector import Detector
from loopdetect.core.place import TAIL
from loopdetect.core.rules import CompiledRule, Match
from loopdetect.profiles import load_library

LIBRARY = load_library()
MEGABYTE = 1_000_000


@pytest.fixture
def tried(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The rules whose literal and pattern were tried on a line."""
    ids: list[str] = []
    match = CompiledRule.match

    def counted(self: CompiledRule, text: str, level: str | None) -> Match | None:
        ids.append(self.rule.id)
        return match(self, text, level)

    monkeypatch.setattr(CompiledRule, "match", counted)
    return ids


def read(data: bytes, size: int = 1 << 18) -> Detector:
    detector = Detector(LIBRARY, source="log")
    for start in range(0, len(data), size):
        detector.feed(data[start : start + size])
    return detector


def taken(data: bytes, size: int = 1 << 18) -> int:
    detector = read(data, size)
    detector.finish()
    return detector._walk.taken


@pytest.mark.parametrize("kind", ["normal", "quiet", "prompts", "cri", "journald"])
def test_a_megabyte_of_serving_costs_next_to_nothing(kind: str, tried: list[str]) -> None:
    less = taken(made_log(kind, size=MEGABYTE))
    tries = len(tried)
    more = taken(made_log(kind, size=4 * MEGABYTE))
    assert more - less <= 12
    assert len(tried) - 2 * tries <= 100


@pytest.mark.parametrize("server", ["sglang", "llama-cpp"])
def test_so_it_does_for_other_servers(server: str) -> None:
    less = taken(made_log("normal", server, MEGABYTE))
    assert taken(made_log("normal", server, 4 * MEGABYTE)) - less <= 12


@pytest.mark.parametrize("kind", ["bars", "bars-cr"])
def test_of_a_run_of_bars_only_the_ends_are_read(kind: str) -> None:
    data = made_log(kind, size=2 * MEGABYTE)
    states = data.count(b"% Completed |")
    assert states > 20_000
    assert taken(data) < states / 80


def test_prompts_are_not_read(tried: list[str]) -> None:
    data = made_log("prompts", size=MEGABYTE)
    assert data.count(b"Received request ") > 500
    assert data.count(b"CUDA out of memory") > 200
    detector = read(data)
    report = detector.finish()[0]
    assert "torch.OutOfMemoryError" not in str(report.runs[0])
    assert detector._walk.taken < 1000
    assert len(tried) < 5000


def test_what_is_kept_of_a_log_does_not_grow_with_it() -> None:
    for size in (MEGABYTE, 4 * MEGABYTE):
        place = read(made_log("normal", size=size))._place
        assert place._kept <= TAIL + (1 << 18)
        assert len(place.tail()) <= TAIL


def test_each_byte_is_searched_once_for_each_automaton(monkeypatch: pytest.MonkeyPatch) -> None:
    data = made_log("normal", size=4 * MEGABYTE)
    read(data).finish()
    searched: list[int] = []
    engine = bench("anchors").Prefilter
    offsets = engine.offsets

    def counted(self: object, block: bytes, start: int, stop: int) -> list[int]:
        searched.append(stop - start)
        return offsets(self, block, start, stop)  # type: ignore[no-any-return]

    monkeypatch.setattr(engine, "offsets", counted)
    read(data).finish()
    assert sum(searched) < 1.3 * len(data)
