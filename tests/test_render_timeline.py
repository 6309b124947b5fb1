from __future__ import annotations

import io
import re
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import pytest
from report_samples import KV, LONG_LOOP, READY, START, make_report, make_run

from loopdetect.cli import output
from loopdetect.model import Exit, Outcome, Phase, PhaseSpan, Report, Run, State
from loopdetect.render import RenderOptions, renderer
from loopdetect.render.marks import LETTERS, OUTCOME_MARKS, PHASE_COLORS
from loopdetect.render.segments import Alike, chart, fold, ticks
from loopdetect.render.timeline import timeline
from loopdetect.render.width import columns

Golden = Callable[[str, str], None]


def spans(
    *parts: tuple[Phase, float | None, float | None], first: int = 1
) -> tuple[PhaseSpan, ...]:
    """Phases as (phase, seconds since the start, how long), ten lines each."""
    return tuple(
        PhaseSpan(phase, first + 10 * place, None if at is None else START + at, took)
        for place, (phase, at, took) in enumerate(parts)
    )


def run_of(number: int, length: float | None, *parts: tuple[Phase, float | None, float | None], **changes: object) -> Run:  # fmt: skip
    return make_run(
        number,
        **{
            "started_at": None if length is None else START,
            "ended_at": None,
            "duration_s": length,
            "phases": spans(*parts, first=1 + (number - 1) * 311),
            "phase": parts[-1][0],
            "cause": None,
            "exit": Exit(),
            "progress": (),
            **changes,
        },
    )


LOADED = ((Phase.CONFIG, 0.0, 10.0), (Phase.LOAD_WEIGHTS, 10.0, 40.0), (Phase.KV_CACHE, 50.0, 10.0))
SERVED = run_of(
    1, 86400.0, *LOADED, (Phase.SERVING, 60.0, 86340.0), ready=True, ready_after_s=60.0,
    outcome=Outcome.KILLED,
)  # fmt: skip
DIED = run_of(2, 55.0, *LOADED)
UNTIMED = run_of(3, None, *((phase, None, None) for phase, _, _ in LOADED))
OUTCOMES = tuple(
    run_of(number, 55.0, *LOADED, outcome=outcome) for number, outcome in enumerate(Outcome, 1)
)
FLAPPING = tuple(
    run_of(n, 60.0 + n, *LOADED, outcome=Outcome.KILLED if n % 2 else Outcome.CRASHED)
    for n in range(1, 41)
)
SILENT = tuple(
    make_run(n, phases=(), phase=Phase.UNKNOWN, cause=None, duration_s=length)
    for n, length in ((1, 30.0), (2, None), (3, 60.0))
)
PICTURES = {
    "no-phases": make_report(State.CRASH_LOOPING, SILENT),
    "nothing-but-lines": make_report(
        State.CRASH_LOOPING, tuple(replace(run, duration_s=None) for run in SILENT)
    ),
    "served-for-a-day": make_report(State.CRASH_LOOPING, (SERVED, DIED)),
    "every-outcome": make_report(State.UNKNOWN, OUTCOMES),
    "no-times": make_report(
        State.CRASHED, tuple(replace(UNTIMED, number=n) for n in (1, 2)), clock=None
    ),
    "one-without-times": make_report(State.CRASHED, (SERVED, DIED, UNTIMED)),
    "flapping": make_report(State.CRASH_LOOPING, FLAPPING),
    "long-loop": LONG_LOOP,
}
OPTIONS = {
    "wide": RenderOptions(width=120),
    "narrow-ascii": RenderOptions(width=60, ascii=True),
    "coloured": RenderOptions(width=80, color=True),
}


def plain(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def drawn(report: Report, **options: object) -> list[str]:
    return timeline(report, RenderOptions(**{"width": 80, **options}))  # type: ignore[arg-type]


@pytest.mark.parametrize("name", PICTURES)
def test_golden_of_each_picture(name: str, golden: Golden) -> None:
    for form, options in OPTIONS.items():
        golden(f"timeline/{name}.{form}.txt", "\n".join(timeline(PICTURES[name], options)) + "\n")


@pytest.mark.parametrize("width", [40, 60, 80, 133, 200])
@pytest.mark.parametrize("name", PICTURES)
@pytest.mark.parametrize("ascii_only", [False, True])
def test_no_line_is_wider_than_the_terminal(name: str, width: int, ascii_only: bool) -> None:
    for color in (False, True):
        lines = drawn(PICTURES[name], width=width, ascii=ascii_only, color=color)
        assert max(columns(plain(line)) for line in lines) <= max(width, 52)


@pytest.mark.parametrize("name", PICTURES)
def test_ascii_is_ascii(name: str) -> None:
    assert "\n".join(drawn(PICTURES[name], ascii=True)).isascii()


@pytest.mark.parametrize("name", PICTURES)
def test_colour_adds_nothing_but_colour(name: str) -> None:
    coloured = "\n".join(drawn(PICTURES[name], color=True))
    assert "\x1b[30;" in coloured
    assert plain(coloured) == "\n".join(drawn(PICTURES[name]))


def test_one_short_run_is_not_drawn() -> None:
    short = make_report(State.CRASHED, (run_of(1, 9.0, *LOADED[:2]),))
    assert drawn(short) == []
    assert drawn(make_report(State.UNKNOWN, ())) == []
    assert drawn(make_report(State.CRASHED, (run_of(1, 9.0, *LOADED),))) != []


def test_the_text_report_holds_the_picture() -> None:
    assert "Timeline (time from each run's start)" in renderer("text")([READY], RenderOptions())


def test_the_day_that_a_run_served_does_not_squeeze_the_start_ups() -> None:
    lines = drawn(PICTURES["served-for-a-day"])
    first = next(line for line in lines if line.lstrip().startswith("1 "))
    assert first.index("✓") > 40
    assert "»†" in first
    assert first.endswith("1 d")
    assert "» goes on" in lines[-1]


def test_a_run_that_hung_far_longer_than_the_others_is_cut() -> None:
    runs = (*(run_of(n, 60.0, *LOADED) for n in range(1, 8)), run_of(8, 36000.0, *LOADED[:2], (Phase.COMPILE, 50.0, 35950.0)))  # fmt: skip
    picture = chart(runs, None)
    assert picture.cut
    assert picture.extent < 1000


def test_runs_without_times_are_drawn_by_lines_and_it_says_so() -> None:
    lines = drawn(PICTURES["no-times"])
    assert "by lines: the log has no times" in lines[1]
    assert "311 lines" in lines[3]


def test_a_run_without_times_beside_others_says_so() -> None:
    assert any(line.endswith("no times") for line in drawn(PICTURES["one-without-times"]))


def test_each_run_is_drawn_when_everything_is_asked_for() -> None:
    numbers = [line.split()[0] for line in drawn(LONG_LOOP, detail=1)[3:]]
    assert numbers[:189] == [str(number) for number in range(1, 190)]


def test_the_same_runs_are_folded_into_one_line() -> None:
    lines = drawn(LONG_LOOP)
    assert any(
        "3–189" in line and "the same (187 runs, about 8 min 50 s each)" in line for line in lines
    )
    assert len(lines) < 10


@pytest.mark.parametrize("limit", [6, 12, 48])
@pytest.mark.parametrize("count", [1, 5, 13, 40, 500, 5000])
@pytest.mark.parametrize("kinds", [1, 2, 3])
def test_folding_loses_no_run_and_keeps_to_the_limit(limit: int, count: int, kinds: int) -> None:
    ends = (Outcome.CRASHED, Outcome.KILLED, Outcome.STOPPED)
    runs = [make_run(n, outcome=ends[n % kinds]) for n in range(1, count + 1)]
    items = fold(runs, limit)
    seen = [
        run.number for item in items for run in (item.runs if isinstance(item, Alike) else (item,))
    ]
    assert seen == list(range(1, count + 1))
    assert len(items) <= max(limit + 1, 3)


def test_what_is_folded_as_the_same_is_like_the_run_above_it() -> None:
    runs = [make_run(n, outcome=Outcome.KILLED if n in (3, 20) else Outcome.CRASHED) for n in range(1, 60)]  # fmt: skip
    items = fold(runs, 8)
    for above, item in pairwise(items):
        if isinstance(item, Alike) and item.same:
            assert isinstance(above, Run)
            assert {run.outcome for run in item.runs} == {above.outcome}


def test_phases_without_starts_follow_each_other() -> None:
    run = run_of(1, 60.0, (Phase.CONFIG, None, 10.0), (Phase.LOAD_WEIGHTS, None, 40.0),
                 (Phase.KV_CACHE, None, 10.0), started_at=None)  # fmt: skip
    lane = chart((run,), None).drawn[0]
    assert [(s.start, s.end) for s in lane.segments] == [(0, 10), (10, 50), (50, 60)]


def test_a_phase_whose_time_is_not_known_takes_no_room() -> None:
    run = run_of(1, 60.0, (Phase.CONFIG, 0.0, None), (Phase.COMPILE, None, None),
                 (Phase.KV_CACHE, 50.0, 10.0))  # fmt: skip
    lane = chart((run,), None).drawn[0]
    assert [(s.start, s.end, s.known) for s in lane.segments] == [
        (0, 50, True),
        (50, 50, False),
        (50, 60, True),
    ]


@pytest.mark.parametrize("extent", [0.05, 1, 9, 59, 61, 3599, 90000, 4e6])
@pytest.mark.parametrize("by_lines", [False, True])
def test_ticks_are_round_and_few(extent: float, by_lines: bool) -> None:
    found = ticks(extent, 6, by_lines)
    assert found[0] == (0, "0")
    assert len(found) <= 7
    assert all(at <= extent for at, _ in found)
    assert len({label for _, label in found}) == len(found)


@pytest.mark.parametrize(
    ("term", "terminal", "encoding", "ascii_only"),
    [("dumb", True, "utf-8", True), ("dumb", False, "utf-8", False), ("xterm", True, "utf-8", False),
     ("xterm", True, "ascii", True), ("xterm", False, "latin-1", True), ("", True, "no-such", True)],
)  # fmt: skip
def test_who_asks_for_ascii(term: str, terminal: bool, encoding: str, ascii_only: bool) -> None:
    class Stream(io.StringIO):
        def isatty(self) -> bool:
            return terminal

    stream = Stream()
    type(stream).encoding = property(lambda self: encoding)  # type: ignore[assignment]
    assert output.ascii_only({"TERM": term}, stream) is ascii_only


def test_each_phase_and_outcome_has_a_sign_of_its_own() -> None:
    assert set(LETTERS) == set(PHASE_COLORS) == set(Phase)
    assert len(set(LETTERS.values())) == len(Phase)
    assert set(OUTCOME_MARKS) == set(Outcome)
    for ascii_only in (False, True):
        marks = {marks[ascii_only] for marks in OUTCOME_MARKS.values()}
        assert len(marks) >= len(Outcome) - 1
        assert all(columns(mark) == 1 for mark in marks)


def test_a_cause_of_another_kind_is_not_the_same_run() -> None:
    runs = [make_run(n, cause=replace(KV, fingerprint="other" if n == 9 else "f-kv")) for n in range(1, 20)]  # fmt: skip
    numbers = [item.number for item in fold(runs, 12) if isinstance(item, Run)]
    assert numbers == [1, 9, 10]
