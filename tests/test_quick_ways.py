"""Quick ways of doing what a slow way does too: both must come to the same."""

from __future__ import annotations

import json
import statistics

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from loopdetect.core.envelope import ANSI, BARE, peel, uncoloured
from loopdetect.core.first_char import first_chars
from loopdetect.core.late import Late
from loopdetect.core.lines import count_line_feeds
from loopdetect.core.prefilter import PER_AUTOMATON, buckets_of, cover
from loopdetect.core.rules import Prefixes
from loopdetect.core.streak import median
from loopdetect.profiles import load_library
from loopdetect.render.to_json import _pieces

LIBRARY = load_library()
PATTERNS = sorted({x.pattern for p in LIBRARY.profiles.values() for x in p.prefixes})
SAMPLES = [s for p in LIBRARY.profiles.values() for x in p.prefixes for s in x.samples]
COLOURED = st.lists(
    st.sampled_from(
        [
            "\x1b[",
            "\x1b]0;",
            "\x07",
            "#033[",
            "^[[",
            "\ufffd[",
            "[",
            "0;0m",
            "1;31m",
            "31",
            "m",
            ";",
            "a ",
            "é",
        ]
    )
).map("".join)
DOCUMENTS = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=20,
)


@given(
    st.lists(
        st.sampled_from([b"\n", b"\r", b"\x00", b"\x0b", b"\x8a", b"\xff", b"a"]), max_size=40
    ),
    st.integers(0, 200),
    st.integers(0, 9000),
)
def test_line_feeds_are_counted(parts: list[bytes], times: int, start: int) -> None:
    buffer = b"".join(parts) * times
    stop = max(start, len(buffer) - 7)
    assert count_line_feeds(buffer, 0, len(buffer)) == buffer.count(b"\n")
    assert count_line_feeds(buffer, start, stop) == buffer.count(b"\n", start, stop)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_match_begins_with_no_other_character(pattern: str) -> None:
    told = first_chars(pattern)
    begins = regex.compile(pattern)
    possible = {chr(code) for code in range(128) if begins.match(chr(code), partial=True)}
    assert told is None or possible <= told


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("abc", "a"),
        ("a?bc", "ab"),
        ("(?:a|b)c|d", "abd"),
        (r"\[?(?P<x>[IW])", "[IW"),
        (r"\d+", "0123456789"),
        (r"(?:<\d+>)?\[", "<["),
        (r"a{0,3}b", None),
        (r"(?i)a", None),
        (r"(?=a)b", None),
        (r"[^a]b", None),
        (r"\w+", None),
        ("a|", None),
        (".", None),
    ],
)
def test_only_what_is_plain_to_see_is_told(pattern: str, expected: str | None) -> None:
    assert first_chars(pattern) == (None if expected is None else frozenset(expected))


@pytest.mark.parametrize("sample", [*SAMPLES, "", "é", "plain words"])
def test_a_prefix_comes_off_as_if_all_patterns_were_tried(sample: str) -> None:
    prefixes = Prefixes(tuple(LIBRARY.profiles.values()))
    quick = prefixes.strip(sample)
    every = Prefixes(tuple(LIBRARY.profiles.values()))
    whole = every._that_begin_with("other")
    every._by_first = dict.fromkeys([chr(code) for code in range(128)] + ["other"], whole)
    assert quick == every.strip(sample)


@given(COLOURED)
def test_escape_sequences_are_found_as_fast_as_they_are_missed(text: str) -> None:
    assert uncoloured(text) == ANSI.sub("", text)


@given(DOCUMENTS)
def test_json_is_written_as_the_library_writes_it(document: object) -> None:
    assert "".join(_pieces(document)) == json.dumps(document, ensure_ascii=False, indent=2)


@given(st.lists(st.floats(-1e9, 1e9), min_size=1))
def test_the_median_is_that_of_the_library(values: list[float]) -> None:
    assert median(values) == statistics.median(values)


@given(st.from_regex(r"[A-Za-z]{4,20} [A-Za-z0-9].*", fullmatch=True))
def test_two_plain_words_have_no_envelope(text: str) -> None:
    assert BARE.match(text.encode())
    assert peel(text).kinds == ()


def test_a_noisy_anchor_leaves_the_others_in_their_buckets() -> None:
    group = [b"%04d" % number for number in range(40)]
    literals = [b"x" + anchor + b"yzzz" for anchor in group]
    kept = cover(literals, [group], b"0007 0008")[0]
    width = buckets_of(len(group))
    assert len(kept) == len(group) <= PER_AUTOMATON
    assert {b"0007", b"0008"}.isdisjoint(kept)
    for place, anchor in enumerate(kept):
        assert anchor in group[place % width :: width]


def test_a_late_pattern_is_like_any_other() -> None:
    late = Late(r"(\d)x")
    found = late.match("1x")
    assert found is not None
    assert found[1] == "1"
    assert late.search("a2x") is not None
    assert late.match("a2x") is None
    assert late.sub("-", "1x2x", 1) == "-2x"
    assert [m[1] for m in late.finditer("1x2x", 1)] == ["2"]
