"""Profiles are sound: samples match, near misses do not, reasons and phases are of the closed lists."""

from __future__ import annotations

from pathlib import Path

import pytest
import regex

from loopdetect.core.detector import Detector
from loopdetect.core.samples import check
from loopdetect.errors import ProfileError
from loopdetect.model import Kind, Phase
from loopdetect.profiles import SHIPPED, load_library
from loopdetect.profiles.literals import required_literal, required_texts
from loopdetect.profiles.reading import read_profile

FILES = sorted(path for path in SHIPPED.glob("*.toml") if path.name != "reasons.toml")
LIBRARY = load_library()

MINIMAL = """
name = "acme"
title = "Acme"

[[identify]]
id = "banner"
weight = 100
literal = "Acme server "
samples = ["Acme server 1.0"]

[[failure]]
id = "port-taken"
reason = "port-in-use"
literal = "cannot bind"
pattern = '''cannot bind (?P<address>\\S+)'''
samples = ["error: cannot bind 0.0.0.0:8000"]
not_samples = ["warning: cannot bind"]
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "acme.toml"
    path.write_text(text)
    return path


@pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])
def test_every_sample_is_taken_by_its_rule_and_no_near_miss_is(path: Path) -> None:
    assert check(path) == []


@pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])
def test_the_file_has_the_name_of_its_profile(path: Path) -> None:
    assert read_profile(path, frozenset(LIBRARY.reasons)).name == path.stem


def test_every_reason_says_what_to_do() -> None:
    assert len(LIBRARY.reasons) >= 50
    for reason in LIBRARY.reasons.values():
        assert len(reason.hint) > 30
        assert reason.explanation.endswith(".")


def test_generic_and_supervisors_claim_no_server() -> None:
    for name in ("generic", "supervisors"):
        assert not [r for r in LIBRARY.profiles[name].rules if r.kind is Kind.IDENTIFY]


def test_each_server_can_be_recognised_and_can_fail() -> None:
    for name, profile in LIBRARY.profiles.items():
        kinds = {rule.kind for rule in profile.rules}
        if name not in ("generic", "supervisors"):
            assert {Kind.IDENTIFY, Kind.START, Kind.READY, Kind.FAILURE} <= kinds, name


def test_a_new_server_needs_no_python(tmp_path: Path) -> None:
    path = written(tmp_path, MINIMAL)
    assert check(path) == []
    assert "acme" in load_library([path]).profiles


def test_the_functions_of_a_traceback_tell_how_far_the_start_up_was(tmp_path: Path) -> None:
    named = MINIMAL.replace(
        "[[identify]]", "[frames]\nwarmup = ['stoke_the_fire']\n[[identify]]", 1
    )
    log = (
        b"Acme server 1.0\nTraceback (most recent call last):\n"
        b'  File "/srv/acme/oven.py", line 7, in stoke_the_fire\n    self.blow()\n'
        b"OSError: no air\n"
    )
    phases = []
    for text in (MINIMAL, named):
        detector = Detector(load_library([written(tmp_path, text)]))
        detector.feed(log)
        phases.append(detector.finish()[0].verdict.phase)
    assert phases[1] is Phase.WARMUP
    assert phases[0] is not Phase.WARMUP


@pytest.mark.parametrize(
    ("wrong", "right", "complaint"),
    [
        ('reason = "port-in-use"', 'reason = "port-in-used"', "failure.port-taken.reason"),
        ("not_samples", "not_sample", "failure.port-taken.not_sample: unknown key"),
        ("weight = 100", 'weight = "100"', "identify.banner.weight: must be a whole number"),
        ('samples = ["Acme server 1.0"]', "samples = []", "needs at least one sample"),
        ('literal = "Acme server "', 'literal = "Ac"', "no text to search for"),
        ("(?P<address>", "(?P<address", "not a valid pattern"),
        ('title = "Acme"', "", "title: is missing"),
        ('literal = "cannot bind"', 'literal = "can not bind"', "no literal is in the sample"),
        ('name = "acme"', 'name = "Acme Server"', "must be kebab-case"),
        ("[[failure]]", "[[failures]]", "failures: unknown key"),
        ("[[identify]]", "[frames]\nloading = ['f']\n[[identify]]", "frames.loading: unknown key"),
        ("[[identify]]", "frames = ['f']\n[[identify]]", "frames: must be a table"),
    ],
)
def test_a_wrong_profile_is_refused_with_the_place(
    tmp_path: Path, wrong: str, right: str, complaint: str
) -> None:
    assert wrong in MINIMAL
    path = written(tmp_path, MINIMAL.replace(wrong, right, 1))
    with pytest.raises(ProfileError, match=str(path)) as caught:
        read_profile(path, frozenset(LIBRARY.reasons))
    assert complaint in str(caught.value)


def test_a_suggestion_is_made_for_a_word_that_is_nearly_right(tmp_path: Path) -> None:
    path = written(tmp_path, MINIMAL.replace("port-in-use", "port-inuse"))
    with pytest.raises(ProfileError) as caught:
        read_profile(path, frozenset(LIBRARY.reasons))
    assert caught.value.hint == "Did you mean 'port-in-use'?"


def test_a_rule_that_misses_its_sample_is_told(tmp_path: Path) -> None:
    path = written(tmp_path, MINIMAL.replace("0.0.0.0:8000", ""))
    assert any("does not match its sample" in problem for problem in check(path))


@pytest.mark.parametrize(
    ("pattern", "literal"),
    [
        (r"cannot bind (?P<a>\S+): address", "cannot bind "),
        (r"(?:xyz)?abc", "abc"),
        (r"a|b", None),
        (r"(?i)abc", None),
        (r"x(?:long literal)+y", "long literal"),
    ],
)
def test_the_literal_of_a_pattern_is_in_every_match(pattern: str, literal: str | None) -> None:
    assert required_literal(pattern) == literal


@pytest.mark.parametrize(
    ("pattern", "texts"),
    [
        (r"cannot bind (?P<a>\S+): address", ("cannot bind ",)),
        (r"(?:no such file|cannot open \w+)", ("cannot open ", "no such file")),
        (r"(?:no such file|\w+)", ()),
        (r"[Tt]imeout (?:of|after) \d+", ("imeout ",)),
        (r"(?i)abc", ()),
        (r"(?:(?i:abc)|def)", ()),
        (r"(?:abc)?def", ("def",)),
    ],
)
def test_each_match_holds_one_of_a_patterns_texts(pattern: str, texts: tuple[str, ...]) -> None:
    assert required_texts(pattern) == texts


def test_no_rule_matches_a_line_without_one_of_its_texts() -> None:
    rules = [rule for profile in LIBRARY.profiles.values() for rule in profile.rules]
    told = [rule for rule in rules if rule.holds]
    assert len(told) > len(rules) // 4
    for rule in told:
        pattern = regex.compile(str(rule.pattern))
        for other in rules:
            for sample in other.samples:
                if not any(text in sample for text in rule.holds):
                    assert pattern.search(sample, timeout=1) is None, (rule.id, sample)
