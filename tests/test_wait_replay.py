"""Every healthy log of the fixtures, written line by line: `wait` must not call it dead on the way."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from wait_stage import LIBRARY, Stage

from loopdetect.core.detector import Detector
from loopdetect.live.judge import Ending, Terms
from loopdetect.model import State

FIXTURES = Path(__file__).parent.parent / "fixtures"
PIECES = 12
PAUSE_S = 2.5
LARGEST = 150_000
GOOD = {
    State.READY: (Ending.REACHED,),
    State.LOADING: (Ending.REACHED, Ending.TIME_LIMIT, Ending.STALLED),
    State.STALLED: (Ending.REACHED, Ending.TIME_LIMIT, Ending.STALLED),
}


def healthy() -> list[Path]:
    """Return the logs of one start that did not end."""
    found = []
    for path in sorted(FIXTURES.glob("*/*.log")):
        answers = path.with_suffix(".expect.toml")
        if not answers.exists() or path.stat().st_size > LARGEST:
            continue
        expected = tomllib.loads(answers.read_text("utf-8"))
        if (
            expected.get("state") in list(GOOD)
            and expected.get("restarts") == 0
            and expected.get("kind") != "transcript"
        ):
            found.append(path)
    return found


@pytest.mark.parametrize("path", healthy(), ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_healthy_start_is_never_called_dead(path: Path) -> None:
    data = path.read_bytes()
    detector = Detector(LIBRARY)
    detector.feed(data)
    reports = detector.snapshot()
    state = reports[0].verdict.state
    if len(reports) != 1 or reports[0].kind != "log" or state not in GOOD:
        pytest.skip("not one server's log, or not read as it should be")
    lines = data.splitlines(keepends=True)
    size = -(-len(lines) // PIECES)
    pieces = [b"".join(lines[at : at + size]) for at in range(0, len(lines), size)]
    plot = [(1 + PAUSE_S * n, piece) for n, piece in enumerate(pieces)]
    decision = Stage(list(plot), terms=Terms(timeout=plot[-1][0] + 5)).run()
    assert decision.ending in GOOD[state]


def test_there_are_healthy_logs_to_replay() -> None:
    assert len(healthy()) > 20
