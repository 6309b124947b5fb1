"""No anchor ever hides a line: whatever a rule's sample holds is found."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest
from slow_reading import bench, made_log

from loopdetect.core import prefilter
from loopdetect.core.prefilter import (
    FALSE_ALARMS,
    PER_AUTOMATON,
    Prefilter,
    cover,
    forms_of,
    grouped,
)
from loopdetect.core.search import Aim, Search
from loopdetect.model import Kind
from loopdetect.profiles import SHIPPED, compiled, load_library
from loopdetect.profiles.reading import MIN_LITERAL

LIBRARY = load_library()
SEARCH = Search(LIBRARY)
AIMS = bench("anchors").aims(LIBRARY)


@pytest.mark.parametrize("aim", AIMS, ids=lambda aim: f"{aim.plan}{'' if aim.alive else '-'}")
def test_the_sample_of_every_rule_is_found(aim: Aim) -> None:
    lines, bars, _ = SEARCH.filters(aim)
    for name in sorted(aim.profiles):
        for rule in LIBRARY.profiles[name].rules:
            if not SEARCH._tells(rule, aim):
                continue
            search = bars if rule.kind is Kind.PROGRESS and not aim.serving else lines
            for sample in rule.samples:
                raw = b"before\n" + sample.encode() + b"\nafter"
                hits = search.offsets(raw, 0, len(raw))
                assert any(7 <= hit < len(raw) - 6 for hit in hits), (rule.id, sample)
                assert search.holds(sample.encode()), (rule.id, sample)


@pytest.mark.parametrize("aim", AIMS, ids=lambda aim: f"{aim.plan}{'' if aim.alive else '-'}")
def test_no_automaton_is_too_large_for_the_fast_search(aim: Aim) -> None:
    groups = SEARCH.filters(aim)[0].anchors
    assert groups
    for group in groups:
        assert 0 < len(group) <= PER_AUTOMATON
        assert min(map(len, group)) >= MIN_LITERAL


def test_what_is_stored_is_made_from_the_profiles_as_they_are() -> None:
    assert compiled.load(SHIPPED) is not None, "run make data"
    assert bench("anchors").missing() == [], "run make data"


def test_the_compiled_profiles_are_the_profiles() -> None:
    assert compiled.load(SHIPPED) == compiled.read(SHIPPED)


def test_the_compiled_profiles_are_the_same_wherever_they_are_made(tmp_path: Path) -> None:
    shutil.copytree(SHIPPED, tmp_path / "profiles")
    stored = (SHIPPED / compiled.FILE).read_text("utf-8")
    assert compiled.form(tmp_path / "profiles") == stored, "run make data"


@pytest.mark.parametrize("server", ["vllm", "sglang", "llama-cpp"])
def test_while_a_server_serves_less_is_searched_for(server: str) -> None:
    serving = next(aim for aim in AIMS if aim.serving and aim.plan.startswith(server))
    loading = Aim(serving.profiles, serving.unknown, alive=False)
    everything = SEARCH.literals(loading) | SEARCH.literals(loading, bars=True)
    assert SEARCH.literals(serving) < everything


def test_a_literal_is_found_in_json_too() -> None:
    assert forms_of('msg="no device"') == ('msg="no device"', 'msg=\\"no device\\"')
    assert forms_of("plain") == ("plain",)
    raw = b'{"message": "msg=\\"no device\\" at once"}'
    search = Prefilter(lambda: ['msg="no device"'])
    assert search.offsets(raw, 0, len(raw))
    assert search.holds(raw)


def test_offsets_are_those_of_the_buffer() -> None:
    raw = b"needle needle" + b"." * 50 + b"needle"
    search = Prefilter(lambda: ["needle"])
    assert search.offsets(raw, 0, len(raw))[-1] >= 63
    assert search.offsets(raw, 20, len(raw)) == [
        at for at in search.offsets(raw, 0, len(raw)) if at > 20
    ]
    assert search.offsets(raw, 20, 60) == []


def test_without_the_fast_engine_the_same_lines_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    log = made_log("normal", size=100_000)
    words = ["Traceback (most", "initialization failed", "Application startup complete", "shards"]

    def lines_found() -> set[int]:
        offsets = Prefilter(lambda: words).offsets(log, 0, len(log))
        return {log.rfind(b"\n", 0, at) for at in offsets}

    fast = lines_found()
    monkeypatch.setattr(prefilter, "_Teddy", prefilter._Find)
    assert fast
    assert lines_found() == fast


def test_any_literals_are_covered_in_any_noise() -> None:
    dice = random.Random(3)
    letters = "abcdefgh :é"
    for _ in range(40):
        words = ["".join(dice.choices(letters, k=dice.randrange(4, 20))) for _ in range(90)]
        literals = [word.encode() for word in words]
        noise = b" ".join(dice.sample(literals, 5))
        plan = grouped({literal[:5] for literal in literals[::3]})
        for groups in (cover(literals), cover(literals, plan), cover(literals, plan, noise)):
            anchors = [anchor for group in groups for anchor in group]
            assert all(any(anchor in literal for anchor in anchors) for literal in literals)
            assert all(len(group) <= PER_AUTOMATON for group in groups)


def test_anchors_that_alarm_for_nothing_are_exchanged() -> None:
    search = Prefilter(lambda: ["cannot allocate memory", "engine is dead"])
    before = search.anchors
    noise = b" ".join(anchor for group in before for anchor in group)
    for _ in range(FALSE_ALARMS):
        assert not search.holds(noise)
    after = [anchor for group in search.anchors for anchor in group]
    assert not any(anchor in noise for anchor in after)
    for line in (b"worker: cannot allocate memory", b"the engine is dead."):
        assert search.offsets(line, 0, len(line))
        assert search.holds(line)
