"""What tells beforehand that a pattern cannot match is true of the pattern."""

from __future__ import annotations

import importlib
import pkgutil
import re
import string
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import loopdetect.core
from loopdetect.core.late import Late


def guarded() -> Iterator[tuple[str, Late]]:
    for module in pkgutil.iter_modules(loopdetect.core.__path__):
        inside = importlib.import_module(f"loopdetect.core.{module.name}")
        for name, value in vars(inside).items():
            if isinstance(value, Late) and (value.holds or value.begins):
                yield f"{module.name}.{name}", value


# One name for each pattern, however many modules import it.
PATTERNS = {name: late for late, name in {late: name for name, late in guarded()}.items()}


@pytest.mark.parametrize("name", PATTERNS)
@settings(max_examples=30, deadline=None, database=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_whatever_a_pattern_matches_is_not_turned_away(name: str, data: st.DataObject) -> None:
    late = PATTERNS[name]
    pattern = re.compile(f"(?:{late.pattern})[ -~]*", late.flags)
    signs = "".join({*string.printable, *late.pattern})
    text = data.draw(st.from_regex(pattern, fullmatch=True, alphabet=signs))
    if pattern.match(text):
        assert late.match(text), text


def test_a_text_that_tells_beforehand_is_not_matched() -> None:
    late = Late(r"a+b|c", begins="a", holds=("b",))
    assert late.match("aab")
    assert not late.match("c")
    assert not late.match("aa")
