from __future__ import annotations

import click
import pytest

from loopdetect.cli.params import DURATION, MOMENT, STATES
from loopdetect.model import State

TEN = 1772359200.0  # 2026-03-01 10:00:00 UTC


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90), ("5m", 300), ("1h30m", 5400), ("2d", 172800), ("1.5h", 5400), ("90", 90),
     ("0", 0), ("250ms", 0.25), (" 5M ", 300), ("1m30s", 90)],
)  # fmt: skip
def test_durations(text: str, seconds: float) -> None:
    assert DURATION.convert(text, None, None) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "-5m", "5 m", "5x", "m", "1h30", "nan", "inf", "1e3", "٣m"])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(click.BadParameter, match="is not a duration"):
        DURATION.convert(text, None, None)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("2026-03-01T10:00:00", TEN),
        ("2026-03-01 10:00:00", TEN),
        ("2026-03-01T10:00", TEN),
        ("2026-03-01T10:00:00Z", TEN),
        ("2026-03-01T12:00:00+02:00", TEN),
        ("2026-03-01T12:00:00+0200", TEN),
        ("2026-03-01T10:00:00.500", TEN + 0.5),
        ("2026-03-01T10:00:00,500", TEN + 0.5),
        ("2026-03-01", TEN - 36000),
        ("1772359200", TEN),
        ("1772359200.25", TEN + 0.25),
    ],
)
def test_moments(text: str, seconds: float) -> None:
    assert MOMENT.convert(text, None, None) == seconds


@pytest.mark.parametrize(
    "text", ["", "now", "10:00", "2026-13-01T10:00:00", "2026-03-01T25:00:00", "01/03/2026"]
)
def test_what_is_no_moment(text: str) -> None:
    with pytest.raises(click.BadParameter, match="is not a time"):
        MOMENT.convert(text, None, None)


def test_states() -> None:
    assert STATES.convert("crashed, crash_looping", None, None) == {
        State.CRASHED,
        State.CRASH_LOOPING,
    }
    assert STATES.convert(",".join(State), None, None) == set(State)


@pytest.mark.parametrize("text", ["", "crashed,", "dead"])
def test_what_is_no_state(text: str) -> None:
    with pytest.raises(click.BadParameter, match="is not a state"):
        STATES.convert(text, None, None)
