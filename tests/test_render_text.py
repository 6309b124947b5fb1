from __future__ import annotations

import re
from dataclasses import replace

import pytest
from report_samples import (
    CRASH_LOOP,
    HOSTILE,
    KV,
    LONG_LOOP,
    READY,
    SAMPLES,
    TRANSCRIPT,
    make_report,
    make_run,
)

from loopdetect.model import Exit, Outcome, Phase, Report, State
from loopdetect.render import RenderOptions, figures, renderer
from loopdetect.render.paint import OUTCOME_COLORS, STATE_COLORS
from loopdetect.render.width import columns, cut, wrap


def text(report: Report, **options: object) -> str:
    return renderer("text")([report], RenderOptions(**options))  # type: ignore[arg-type]


def test_the_headline_tells_everything_in_one_line() -> None:
    assert text(CRASH_LOOP).splitlines()[0] == (
        "server.log: vLLM 0.32.0: crash-looping (certain), "
        "since 2026-03-01 10:00:00 (line 1), 4 starts"
    )


@pytest.mark.parametrize(
    ("clock", "since"),
    [
        ("wall", "since 2026-03-01 10:00:00 (line 1)"),
        ("wall-no-year", "since 03-01 10:00:00 (line 1)"),
        ("time-of-day", "since 10:00:00 (line 1)"),
    ],
)
def test_no_more_of_a_date_is_shown_than_the_log_has(clock: str, since: str) -> None:
    assert f", {since}, " in text(replace(CRASH_LOOP, clock=clock))


def test_a_long_source_leaves_room_for_the_verdict() -> None:
    line = text(replace(CRASH_LOOP, source="/var" * 50 + "/server.log"), width=80).splitlines()[0]
    assert columns(line.split(":")[0]) == 40
    assert "/server.log: vLLM" in line


def test_a_loop_is_told_with_counts_phase_time_and_cause() -> None:
    assert (
        "Started 4 times, 4 crashes, died each time in kv-cache after about 8 min 50 s, same cause."
        in text(CRASH_LOOP)
    )


def test_a_loop_in_several_phases_names_them_with_counts() -> None:
    assert "died in kv-cache (188 times), bind (1 time)" in text(LONG_LOOP)
    assert "2 different causes" in text(LONG_LOOP)


def test_a_loop_without_a_cause_says_that_the_log_does_not_hold_it() -> None:
    assert "cause not in the log" in text(TRANSCRIPT)


def test_the_first_failure_is_shown_when_it_was_another_one() -> None:
    shown = text(LONG_LOOP)
    assert "The first failure was another one (line 12, port-in-use, likely)" in shown
    assert "The first failure" not in text(CRASH_LOOP)


def test_a_first_cause_that_is_the_same_is_not_repeated() -> None:
    verdict = replace(CRASH_LOOP.verdict, first_cause=KV)
    assert "The first failure" not in text(replace(CRASH_LOOP, verdict=verdict))


def test_many_runs_are_folded_and_verbose_shows_all() -> None:
    folded = text(LONG_LOOP)
    assert "… 179 more runs, all the same: crashed in kv-cache (kv-cache-too-small)" in folded
    assert folded.count("crashed (exit 1)") == 10
    assert text(LONG_LOOP, detail=1).count("crashed (exit 1)") == 189


@pytest.mark.parametrize(("count", "folds"), [(20, False), (21, True)])
def test_runs_are_folded_above_twenty(count: int, folds: bool) -> None:
    runs = tuple(make_run(number) for number in range(1, count + 1))
    assert ("more runs" in text(make_report(State.CRASHED, runs))) is folds


def test_folded_runs_that_differ_are_counted() -> None:
    kinds = [Outcome.STOPPED if number % 4 == 0 else Outcome.CRASHED for number in range(30)]
    runs = tuple(make_run(n + 1, outcome=kind, cause=None) for n, kind in enumerate(kinds))
    hidden = figures.fold(runs).hidden
    stopped = sum(run.outcome is Outcome.STOPPED for run in hidden)
    assert figures.folded(hidden) == (
        f"… 20 more runs: {20 - stopped} × crashed in kv-cache, {stopped} × stopped in kv-cache"
    )


def test_columns_that_say_nothing_are_left_out() -> None:
    heading = next(line for line in text(TRANSCRIPT).splitlines() if line.startswith("  run"))
    assert heading.split() == ["run", "lines", "phase", "progress", "ended"]


@pytest.mark.parametrize(
    ("leaving", "cell"),
    [
        (Exit(code=1), "crashed (exit 1)"),
        (Exit(code=0), "crashed (exit 0)"),
        (Exit(signal="SIGKILL", code=137), "crashed (SIGKILL)"),
        (Exit(), "crashed"),
    ],
)
def test_the_exit_status_stands_beside_the_outcome(leaving: Exit, cell: str) -> None:
    assert figures.ended(make_run(1, exit=leaving)) == cell


def test_phases_of_the_last_run_stand_beside_the_median_of_the_earlier_ones() -> None:
    runs = []
    for number, seconds in enumerate((10.0, 30.0, 20.0, 99.0), start=1):
        span = replace(make_run(number).phases[0], duration_s=seconds)
        runs.append(make_run(number, phases=(span,)))
    (timing,) = figures.timings(make_report(State.CRASHED, tuple(runs)))
    assert (timing.duration_s, timing.median_s, timing.earlier) == (99.0, 20.0, 3)


@pytest.mark.parametrize("width", [40, 60, 80, 120])
@pytest.mark.parametrize("name", sorted(set(SAMPLES) - {"hostile"}))
def test_quoted_lines_and_tables_fit_the_terminal(name: str, width: int) -> None:
    verdict = SAMPLES[name].verdict
    if verdict.cause:
        verdict = replace(verdict, cause=replace(verdict.cause, text="日本" * 300 + "the end"))
    lines = text(replace(SAMPLES[name], verdict=verdict), width=width).splitlines()[1:]
    tables = [line for line in lines if not line.startswith("  Hint") and " | " in line]
    assert all(columns(line) <= width for line in tables)
    if verdict.cause:
        assert any(line.endswith("the end") for line in tables)


def test_a_wide_table_loses_its_least_needed_columns() -> None:
    lines = text(CRASH_LOOP, width=80).splitlines()
    heading = lines[lines.index("Runs") + 1]
    assert "progress" not in heading
    assert heading.split()[:2] == ["run", "phase"]


@pytest.mark.parametrize("detail", [-1, 0, 1])
@pytest.mark.parametrize("form", ["text", "markdown"])
def test_hostile_text_never_reaches_the_terminal(form: str, detail: int) -> None:
    shown = renderer(form)([HOSTILE], RenderOptions(detail=detail))
    assert all(char == "\n" or char.isprintable() for char in shown)
    assert "evil\\x1b[2J\\x0a.log" in shown


def test_colours_are_the_only_difference_that_colour_makes() -> None:
    coloured = text(CRASH_LOOP, color=True)
    assert "\x1b[1;31mcrash-looping\x1b[0m" in coloured
    assert re.sub(r"\x1b\[[\d;]+m", "", coloured) == text(CRASH_LOOP)


def test_every_state_and_outcome_has_a_colour() -> None:
    assert set(STATE_COLORS) == set(State)
    assert set(OUTCOME_COLORS) == set(Outcome)


def test_starts_that_cannot_be_said_are_only_those_seen() -> None:
    report = make_report(State.CRASHED, (make_run(1),), restarts=None)
    assert "1 start seen" in text(report)


def test_a_multi_line_cause_is_shown_line_by_line() -> None:
    verdict = replace(CRASH_LOOP.verdict, cause=replace(KV, text="ValueError: a\n  b"))
    lines = text(replace(CRASH_LOOP, verdict=verdict)).splitlines()
    place = lines.index("  > 310 | ValueError: a")
    assert lines[place + 1] == "  >     |   b"


def test_evidence_beyond_a_dozen_waits_for_verbose() -> None:
    many = READY.verdict.evidence[:1] * 15
    report = replace(READY, verdict=replace(READY.verdict, evidence=many))
    assert "… 3 more (-v shows them)" in text(report)
    assert "more (-v" not in text(report, detail=1)


def test_verbose_shows_the_bars() -> None:
    assert "Loading checkpoint shards: 64/64, 13 s, 0.2 s left (lines 61-126)" in text(
        READY, detail=1
    )


@pytest.mark.parametrize(
    ("line", "width", "expected"),
    [
        ("short", 10, "short"),
        ("0123456789", 10, "0123456789"),
        ("0123456789abcdef", 10, "012345…def"),
        ("日本語日本語", 7, "日本…語"),
        ("anything", None, "anything"),
        ("anything", 1, "…"),
        ("anything", 0, ""),
    ],
)
def test_a_long_line_keeps_both_ends(line: str, width: int | None, expected: str) -> None:
    assert cut(line, width) == expected


def test_wrapping_breaks_between_words_only() -> None:
    assert wrap("one two three four five six", 22, "  ") == [
        "  one two three four",
        "  five six",
    ]
    assert wrap("x" * 50, 30) == ["x" * 50]


def test_a_run_without_phases_has_no_phase_table() -> None:
    report = make_report(State.UNKNOWN, (make_run(1, phases=(), phase=Phase.UNKNOWN),))
    assert "Phases" not in text(report)
