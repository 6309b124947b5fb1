from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from report_samples import CRASH_LOOP, HOSTILE_TEXT, KV, READY, START, make_report, make_run

from loopdetect.cli.main import main
from loopdetect.compare import (
    Comparison,
    Side,
    compare,
    good_run,
    pairs,
    parting,
    phase_changes,
)
from loopdetect.model import Exit, Outcome, Phase, PhaseSpan, Report, Run, State
from loopdetect.notable import Notable
from loopdetect.render import RenderOptions
from loopdetect.render.compare_to_html import compare_to_html
from loopdetect.render.compare_to_json import compare_to_json
from loopdetect.render.compare_to_text import compare_to_text

Golden = Callable[[str, str], None]
FIXTURES = Path(__file__).parent.parent / "fixtures"
GOOD = FIXTURES / "vllm" / "clean-cold-compile-ready.log"
BAD = FIXTURES / "vllm" / "crash-loop-truncated-shard.log"
ROLLING = FIXTURES / "sglang" / "gpu-recovered-ready.log"

WAY = (Phase.CONFIG, Phase.LOAD_WEIGHTS, Phase.KV_CACHE, Phase.WARMUP, Phase.SERVING)
LOG_A = """INFO non-default args: {'model': '/m/a', 'port': 8000, 'api_key': 'sk-one'}
WARNING failed to raise the limit of open files
INFO serving
"""
LOG_B = """INFO non-default args: {'model': '/m/b', 'api_key': 'sk-two', 'note': '<b>\x1b[31m'}
WARNING failed to raise the limit of open files
ERROR pool 7 failed
ERROR pool 8 failed
RuntimeError: <script>no</script> \x1b[2J room
"""


def way(*phases: Phase, took: dict[Phase, float] | None = None, **changes: object) -> Run:
    """A run through the phases, ten seconds each where `took` says nothing else."""
    spans, at = [], 0.0
    for place, phase in enumerate(phases):
        length = (took or {}).get(phase, 10.0)
        spans.append(PhaseSpan(phase, 1 + place, START + at, length))
        at += length
    ready = Phase.SERVING in phases
    return make_run(
        1,
        **{
            "phases": tuple(spans),
            "phase": phases[-1],
            "ready": ready,
            "ready_after_s": at - 10 if ready else None,
            "outcome": Outcome.READY if ready else Outcome.CRASHED,
            "cause": None if ready else replace(KV, line=5),
            "exit": Exit(),
            "duration_s": at,
            **changes,
        },
    )


def side(run: Run, log: str = "", **changes: object) -> Side:
    notable = Notable()
    notable.feed(log.encode())
    notable.finish()
    state = State.READY if run.ready else State.CRASHED
    return Side(make_report(state, (run,), **changes), run, notable)


GOOD_RUN = way(*WAY)
BAD_RUN = way(*WAY[:3], took={Phase.LOAD_WEIGHTS: 100.0})
FOUND = compare(side(GOOD_RUN, LOG_A, source="good.log"), side(BAD_RUN, LOG_B, source="bad.log"))


@pytest.mark.parametrize(
    ("a", "b", "phase", "sentence"),
    [
        (GOOD_RUN, BAD_RUN, Phase.KV_CACHE,
         "Both got to kv-cache. A went on to warmup; B crashed there (kv-cache-too-small, line 5)."),
        (GOOD_RUN, way(*WAY[:2], phase=Phase.KV_CACHE), Phase.KV_CACHE,
         "Both got to kv-cache. A went on to warmup; B crashed there (kv-cache-too-small, line 5)."),
        (GOOD_RUN, way(Phase.CONFIG, Phase.DOWNLOAD, cause=None), Phase.DOWNLOAD,
         "B went through download (line 2), A did not; B crashed in download."),
        (GOOD_RUN, way(Phase.CONFIG, Phase.LOAD_WEIGHTS, Phase.COMPILE, *WAY[2:]), Phase.COMPILE,
         "B went through compile (line 3), A did not."),
        (way(Phase.CONFIG, Phase.DOWNLOAD, *WAY[1:]), GOOD_RUN, Phase.DOWNLOAD,
         "A went through download (line 2); B did not."),
        (GOOD_RUN, way(*WAY, outcome=Outcome.KILLED, cause=None), Phase.SERVING,
         "Both got as far as serving; then B was killed in serving."),
        (GOOD_RUN, way(*WAY[:2], outcome=Outcome.STALLED, cause=None), Phase.LOAD_WEIGHTS,
         "Both got to load-weights. A went on to kv-cache; B stands still there."),
    ],
    ids=["died", "died-unseen", "died-in-download", "compiles", "cached", "killed", "stalled"],
)  # fmt: skip
def test_where_they_part(a: Run, b: Run, phase: Phase, sentence: str) -> None:
    found = parting(a, b)
    assert found
    assert (found.phase, found.sentence) == (phase, sentence)


def test_two_that_go_the_same_way_do_not_part() -> None:
    assert parting(GOOD_RUN, GOOD_RUN) is None
    assert parting(BAD_RUN, BAD_RUN) is None
    assert parting(BAD_RUN, way(*WAY[:3], outcome=Outcome.READY, cause=None)) is None


@pytest.mark.parametrize(
    ("a_s", "b_s", "slower"),
    [(10, 13, True), (10, 12, False), (1, 2.5, False), (100, 110, False), (0, 3, True), (10, 5, False)],
)  # fmt: skip
def test_what_counts_as_slower(a_s: float, b_s: float, slower: bool) -> None:
    a = way(*WAY, took={Phase.LOAD_WEIGHTS: a_s})
    b = way(*WAY, took={Phase.LOAD_WEIGHTS: b_s})
    by_phase = {change.phase: change for change in phase_changes(a, b)}
    assert by_phase[Phase.LOAD_WEIGHTS].slower is slower


def test_how_long_it_served_and_where_a_run_died_is_no_matter_of_speed() -> None:
    a = way(*WAY, took={Phase.SERVING: 10.0})
    b = way(*WAY, took={Phase.SERVING: 9000.0})
    assert not any(change.slower or change.faster for change in phase_changes(a, b))
    short = way(*WAY[:3], took={Phase.KV_CACHE: 0.1})
    long = way(*WAY, took={Phase.KV_CACHE: 90.0})
    assert not any(change.faster for change in phase_changes(long, short))


def test_arguments_errors_and_phases_of_two_logs() -> None:
    assert [(c.name, c.a, c.b) for c in FOUND.arguments] == [
        ("model", "/m/a", "/m/b"),
        ("port", "8000", None),
        ("api_key", "[hidden]", "[hidden]"),
        ("note", None, "<b>"),
    ]
    assert [(e.line, e.count) for e in FOUND.errors] == [(3, 2), (5, 1)]
    assert [c.phase for c in FOUND.phases if c.slower] == [Phase.LOAD_WEIGHTS]
    assert FOUND.same_arguments is False
    assert FOUND.notes == ()


def test_free_memory_is_told_where_both_printed_it() -> None:
    line = "[2026-03-01 10:00:00] Load weight begin. avail mem={} GB\n"
    a, b = side(GOOD_RUN, line.format(78.5)), side(BAD_RUN, line.format(0.76))
    said = "Free accelerator memory: A 78.5 GiB, B 0.76 GiB"
    assert said in compare_to_text([compare(a, b)], RenderOptions())
    assert said in compare_to_html([compare(a, b)], RenderOptions())
    assert "Free accel" not in compare_to_text([compare(a, side(BAD_RUN))], RenderOptions())


def test_what_a_profile_calls_harmless_is_left_out() -> None:
    found = compare(FOUND.a, FOUND.b, lambda text: "pool" in text)
    assert [e.line for e in found.errors] == [5]


@pytest.mark.parametrize(
    ("a", "b", "note"),
    [
        (side(BAD_RUN, LOG_A), side(GOOD_RUN, LOG_A), "the wrong way round"),
        (side(BAD_RUN, LOG_A), side(BAD_RUN, LOG_A), "No run of A got ready"),
        (side(GOOD_RUN), side(BAD_RUN, LOG_B), "A did not print arguments"),
        (side(GOOD_RUN), side(BAD_RUN), "A and B did not print arguments"),
        (side(GOOD_RUN, LOG_A, server=replace(READY.server, version="0.31")), FOUND.b,
         "The versions differ: A is vLLM 0.31, B is vLLM 0.32.0."),
        (side(GOOD_RUN, LOG_A, server=replace(READY.server, name="sglang", title="SGLang")), FOUND.b,
         "A was written by SGLang"),
    ],
    ids=["swapped", "never-ready", "a-silent", "both-silent", "versions", "servers"],
)  # fmt: skip
def test_what_the_reader_should_know_is_noted(a: Side, b: Side, note: str) -> None:
    assert any(note in said for said in compare(a, b).notes)


def test_without_arguments_on_both_sides_nothing_is_said_of_them() -> None:
    assert compare(side(GOOD_RUN), side(BAD_RUN, LOG_B)).same_arguments is None
    assert compare(side(GOOD_RUN, LOG_A), side(BAD_RUN, LOG_A)).same_arguments is True


def test_the_good_run_is_the_last_one_that_got_ready() -> None:
    runs = tuple(
        make_run(number, ready=number in (2, 3), outcome=Outcome.CRASHED) for number in range(1, 6)
    )
    report = make_report(State.CRASH_LOOPING, runs)
    assert good_run(report) == runs[2]
    assert good_run(report, before=runs[2].first_line) == runs[1]
    assert good_run(report, before=runs[1].first_line) == runs[0]
    assert good_run(report, before=1) is None
    assert good_run(CRASH_LOOP) == CRASH_LOOP.runs[-1]


def test_runs_that_show_no_phase_are_compared_all_the_same() -> None:
    for length in (30.0, None):
        silent = make_run(1, phases=(), phase=Phase.UNKNOWN, cause=None, duration_s=length)
        for a, b in ((silent, silent), (GOOD_RUN, silent), (silent, BAD_RUN)):
            found = [compare(side(a), side(b))]
            for form in (compare_to_text, compare_to_json, compare_to_html):
                assert form(found, RenderOptions())


def test_streams_of_one_name_are_compared() -> None:
    def named(*names: str | None) -> list[Report]:
        return [replace(READY, stream=name) for name in names]

    a, b = named("x", "y", "z"), named("z", "y", "w")
    assert [(one.stream, two.stream) for one, two in pairs(a, b)] == [("y", "y"), ("z", "z")]
    assert [(one.stream, two.stream) for one, two in pairs(named("x"), named(None))] == [
        ("x", None)
    ]
    assert pairs(named("x"), [replace(READY, runs=())]) == []


@pytest.mark.parametrize("form", ["wide", "narrow", "ascii", "coloured"])
def test_golden_of_the_text(form: str, golden: Golden) -> None:
    options = {
        "wide": RenderOptions(),
        "narrow": RenderOptions(width=72),
        "ascii": RenderOptions(width=72, ascii=True),
        "coloured": RenderOptions(width=100, color=True),
    }
    golden(f"compare/{form}.txt", compare_to_text([FOUND], options[form]))


def test_golden_of_the_json(golden: Golden) -> None:
    text = compare_to_json([FOUND], RenderOptions())
    golden("compare/compare.json", text.replace('"tool_version": "0.1.0"', '"tool_version": "X"'))


def hostile() -> Comparison:
    run = way(*WAY[:3], cause=replace(KV, text=HOSTILE_TEXT, reason="bad\x1bcode"))
    b = side(run, f"ERROR {HOSTILE_TEXT}\n".encode("utf-8", "replace").decode(), source="e\x1b[2J")
    return compare(side(GOOD_RUN), b)


def test_hostile_text_is_inert_in_each_form() -> None:
    text = compare_to_text([hostile()], RenderOptions())
    assert "\x1b" not in text
    assert "\u202e" not in text
    page = compare_to_html([hostile()], RenderOptions())
    assert "\x1b" not in page
    assert "<b>" not in page.replace("<body>", "")
    assert json.loads(compare_to_json([hostile()], RenderOptions()))["comparisons"]


def test_the_page_holds_everything_that_the_text_holds() -> None:
    page = compare_to_html([FOUND, FOUND], RenderOptions())
    for shown in (
        "They part in",
        "/m/b",
        "[hidden]",
        "10.0 × as long",
        "pool 7 failed",
        "(default)",
    ):
        assert page.count(shown) >= 2
    assert "&lt;script&gt;no&lt;/script&gt;" in page


def run_compare(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(["compare", *arguments])
    out, err = capsys.readouterr()
    return code, out, err


def test_two_logs_from_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run_compare(capsys, str(GOOD), str(BAD))
    assert (code, err) == (0, "")
    assert "They part" in out
    assert "/srv/models/" in out
    assert "Error-like lines that only B has" in out


def test_one_log_is_compared_with_its_own_last_good_start(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, out, _ = run_compare(capsys, str(ROLLING), str(ROLLING), "--format", "json")
    assert code == 0
    (found,) = json.loads(out)["comparisons"]
    assert (found["a"]["run"]["number"], found["b"]["run"]["number"]) == (2, 3)
    code, out, _ = run_compare(
        capsys, str(ROLLING), str(ROLLING), "--format", "json", "--run-a", "3", "--run-b", "1"
    )
    (found,) = json.loads(out)["comparisons"]
    assert (found["a"]["run"]["number"], found["b"]["run"]["number"]) == (3, 1)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["-", "-"], "standard input can be read only once"),
        ([str(GOOD), "no-such.log"], "no-such.log: no such file"),
        ([str(GOOD), str(BAD), "--run-b", "99"], "there is no run 99"),
        ([str(BAD), str(BAD), "--run-b", "1"], "run 1 is the first in it"),
        ([str(GOOD)], "Missing argument 'B'"),
        ([str(GOOD), str(BAD), "--format", "pdf"], "'pdf' is not one of"),
    ],
    ids=["stdin-twice", "no-file", "no-run", "nothing-before", "one-log", "format"],
)
def test_bad_input_is_said_in_a_line(
    capsys: pytest.CaptureFixture[str], arguments: list[str], says: str
) -> None:
    code, out, err = run_compare(capsys, *arguments)
    assert (code, out) == (2, "")
    assert says in err
    assert "Traceback" not in err


def test_a_log_without_a_start_is_said_to_have_none(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    empty = tmp_path / "empty.log"
    empty.write_text("hello\n")
    code, _, err = run_compare(capsys, str(GOOD), str(empty))
    assert code == 2
    assert "empty.log: no start of a server in it" in err
