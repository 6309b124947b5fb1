from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopdetect.render.duration import spoken
from loopdetect.render.escape import code_span, json_safe, markdown, visible
from loopdetect.render.figures import counted


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (None, "-"),
        (float("nan"), "-"),
        (0, "0 s"),
        (0.417, "0.42 s"),
        (3.14, "3.1 s"),
        (9.99, "10 s"),
        (59.6, "1 min"),
        (530, "8 min 50 s"),
        (3600, "1 h"),
        (3605, "1 h"),
        (5430, "1 h 30 min"),
        (90061, "1 d 1 h"),
        (-5, "-5 s"),
    ],
)
def test_durations_are_said_in_two_units(seconds: float | None, words: str) -> None:
    assert spoken(seconds) == words


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain [1/2] äöü 日本 🙂", "plain [1/2] äöü 日本 🙂"),
        ("a\tb", "a    b"),
        ("\x1b[31mred\x1b[0m", "\\x1b[31mred\\x1b[0m"),
        ("\r\n\x00\x7f", "\\x0d\\x0a\\x00\\x7f"),
        ("\x9b2J\x85", "\\x9b2J\\x85"),
        ("\u202egnp\u2066", "\\u202egnp\\u2066"),
        ("\udcff", "\\udcff"),
        ("\U000e0041", "\\U000e0041"),
        ("\u200b\ufeff\u2028", "\\u200b\\ufeff\\u2028"),
    ],
)
def test_what_a_terminal_would_obey_is_shown(text: str, shown: str) -> None:
    assert visible(text) == shown


@given(st.text(st.characters()))
def test_visible_text_can_always_be_printed_and_shown_again(text: str) -> None:
    shown = visible(text)
    shown.encode("utf-8")
    assert visible(shown) == shown
    assert not any(ord(char) < 32 or 127 <= ord(char) < 160 for char in shown)


@given(st.text(st.characters()))
def test_json_safe_changes_the_spelling_and_not_the_value(text: str) -> None:
    document = json_safe(json.dumps({"a": text}, ensure_ascii=False))
    document.encode("utf-8")
    assert json.loads(document) == json.loads(json.dumps({"a": text}))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a|b", "a\\|b"),
        ("<img src=x>", "\\<img src=x\\>"),
        ("[x](y) *b* `c`", "\\[x\\](y) \\*b\\* \\`c\\`"),
        ("@all a@b @ c", "@<!-- -->all a@<!-- -->b @ c"),
        ("a\nb", "a\\\\x0ab"),
    ],
)
def test_markdown_shows_text_as_it_stands(text: str, shown: str) -> None:
    assert markdown(text) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [("a", "`a`"), ("a`b", "``a`b``"), ("`a", "`` `a ``"), ("a|b", "`a|b`")],
)
def test_a_code_span_outlasts_its_backticks(text: str, shown: str) -> None:
    assert code_span(text) == shown


@pytest.mark.parametrize(
    ("count", "noun", "words"),
    [
        (1, "crash", "1 crash"),
        (2, "crash", "2 crashes"),
        (0, "run", "0 runs"),
        (2, "time", "2 times"),
    ],
)
def test_counts_agree_with_their_nouns(count: int, noun: str, words: str) -> None:
    assert counted(count, noun) == words
