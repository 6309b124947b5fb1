"""Whatever the bytes, the detector answers, and says the same however they are cut."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from loopdetect.core.detector import Detector
from loopdetect.model import Report, State
from loopdetect.profiles import load_library

LIBRARY = load_library()
FIXTURES = Path(__file__).parent.parent / "fixtures"
LOGS = [
    "vllm/crash-loop-truncated-shard.log",
    "sglang/gpu-loop-memfraction.log",
    "llama-cpp/supervisord-segv.log",
    "transcripts/vigil-900s.log",
    "llama-cpp/cri-clean.log",
]
# Real lines of several servers and collectors, and what is between them: the parts of made-up logs.
PARTS = [
    line for name in LOGS for line in (FIXTURES / name).read_bytes().splitlines(keepends=True)[:60]
] + [
    b"\n",
    b"\r",
    b"\r\n",
    b"\x1b[31m",
    b"\xff\xfe\x00",
    b"{",
    b"Traceback (most recent call last):\n",
]
QUIET = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))


def feed(*pieces: bytes) -> tuple[Report, ...]:
    detector = Detector(LIBRARY, source="x")
    for piece in pieces:
        detector.feed(piece)
    return detector.finish()


@QUIET
@given(st.binary(max_size=4000))
def test_any_bytes_get_an_answer(data: bytes) -> None:
    reports = feed(data)
    assert len(reports) == 1
    assert reports[0].bytes == len(data)
    assert reports[0].verdict.state in State


@pytest.mark.parametrize("before", [b"", b"INFO:     Uvicorn running on http://0.0.0.0:8000\n"])
def test_thousands_of_bars_on_one_line_get_an_answer(before: bytes) -> None:
    looks = b"".join(b"[%ds] http=000\n" % (10 * number) for number in range(20))
    bars = b"25%|## | 1/4 [00:21<01:03, 21.00s/it]" * 9000 + b"\n"
    for data in (before + bars, looks + bars):
        assert feed(data)[0].lines == data.count(b"\n")


@QUIET
@given(st.lists(st.sampled_from(PARTS), max_size=80), st.lists(st.integers(0, 9999), max_size=12))
def test_the_cuts_make_no_difference(parts: list[bytes], cuts: list[int]) -> None:
    data = b"".join(parts)
    places = sorted({cut % (len(data) + 1) for cut in cuts} | {0, len(data)})
    pieces = [data[a:b] for a, b in pairwise(places)]
    assert feed(*pieces) == feed(data)


@QUIET
@given(st.sampled_from(LOGS), st.integers(1, 40))
def test_lines_of_no_interest_do_not_change_the_verdict(name: str, every: int) -> None:
    lines = (FIXTURES / name).read_bytes().split(b"\n")
    if name.startswith("transcripts") or "cri" in name:
        return
    noise = b"plain words of some other program"
    noisy = b"\n".join(
        line + b"\n" + noise if i % every == 0 and line and not line[:1].isspace() else line
        for i, line in enumerate(lines)
    )
    before, after = feed(b"\n".join(lines))[0].verdict, feed(noisy)[0].verdict
    assert (after.state, after.restarts, after.phase) == (
        before.state,
        before.restarts,
        before.phase,
    )


def test_line_ends_do_not_change_the_verdict() -> None:
    for name in LOGS:
        data = (FIXTURES / name).read_bytes().replace(b"\r\n", b"\n")
        unix, dos = feed(data)[0].verdict, feed(data.replace(b"\n", b"\r\n"))[0].verdict
        assert (dos.state, dos.restarts, dos.cause and dos.cause.line) == (
            unix.state,
            unix.restarts,
            unix.cause and unix.cause.line,
        ), name


def test_a_line_without_an_end_is_survived_and_the_rest_is_read() -> None:
    log = (FIXTURES / LOGS[0]).read_bytes()
    long_line = b"x" * 3_000_000
    reports = feed(log[: len(log) // 2], b"\n", long_line, b"\n", log[len(log) // 2 :])
    assert reports[0].verdict.state is State.CRASH_LOOPING


def test_nothing_is_not_an_error() -> None:
    verdict = feed()[0].verdict
    assert verdict.state is State.UNKNOWN
    assert verdict.restarts == 0


MARGINS: dict[str, Callable[[int], bytes]] = {
    "indentation": lambda _: b"    ",
    "quote": lambda _: b"> ",
    "file": lambda _: b"server.log:",
    "numbers": lambda number: b"%d:" % number,
    "clock": lambda number: b"[10:%02d:%02d] " % divmod(number, 60),
}


@pytest.mark.parametrize("margin", MARGINS)
def test_what_a_paste_puts_before_every_line_changes_no_verdict(margin: str) -> None:
    name = "vllm/crash-loop-truncated-shard.log"
    lines = (FIXTURES / name).read_bytes().split(b"\n")[:-1]
    pasted = b"".join(
        MARGINS[margin](number) + line + b"\n" for number, line in enumerate(lines, 1)
    )
    before, after = feed(b"\n".join(lines))[0].verdict, feed(pasted)[0].verdict
    assert before.cause is not None
    assert after.cause is not None
    assert (after.state, after.restarts, after.phase, after.cause.line, after.cause.text) == (
        before.state,
        before.restarts,
        before.phase,
        before.cause.line,
        before.cause.text,
    )
