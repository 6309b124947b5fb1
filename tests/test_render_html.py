from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from report_samples import (
    CRASH_LOOP,
    HOSTILE,
    KV,
    LONG_LOOP,
    READY,
    SAMPLES,
    SHARDS,
    TRANSCRIPT,
    make_report,
    make_run,
)
from rich_reports import RICH

from loopdetect.cli.main import main
from loopdetect.model import Evidence, Outcome, Phase, Report, Server, SourceFile, State
from loopdetect.render import RenderOptions, html_charts, renderer
from loopdetect.render.html_page import FOLDER
from loopdetect.render.reckoning import CERTAINTIES, MEANINGS
from loopdetect.render.segments import chart
from loopdetect.render.to_html import WORST

FLAP = Path(__file__).parent.parent / "fixtures" / "sglang" / "gpu-flap-ready.log"
VOID = {"meta", "br", "link", "img", "input", "hr"}
MANY_RUNS = make_report(
    State.CRASH_LOOPING,
    tuple(
        make_run(
            number,
            outcome=(Outcome.CRASHED, Outcome.KILLED)[number % 3 == 0],
            cause=replace(KV, text=f"{KV.text} in run {number}", fingerprint=f"f-{number % 7}"),
        )
        for number in range(1, 5001)
    ),
)


def html(*reports: Report) -> str:
    return renderer("html")(reports, RenderOptions())


def body(document: str) -> str:
    return document.split("</style>")[1].split("<script>")[0]


class Outline(HTMLParser):
    """Every element with its attributes, and whether all were closed in order."""

    def __init__(self, document: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(document)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def attributes(document: str, name: str) -> list[str]:
    return [attrs[name] or "" for _, attrs in Outline(document).found if name in attrs]


@pytest.mark.parametrize("name", SAMPLES)
def test_every_element_is_closed_and_every_id_is_there_once(name: str) -> None:
    document = html(SAMPLES[name], RICH)
    ids = attributes(document, "id")
    assert len(ids) == len(set(ids))
    for reference in attributes(document, "aria-labelledby"):
        assert reference in ids


@pytest.mark.parametrize("name", SAMPLES)
def test_the_verdict_stands_before_everything_else(name: str) -> None:
    document = html(SAMPLES[name])
    state = SAMPLES[name].verdict.state.value
    verdict = document.index('class="card verdict')
    assert f'<span class="badge s-{state}">{state}</span>' in document
    for later in ('class="card cause"', ">Timeline<", ">Runs<", ">Evidence<", ">How the verdict"):
        assert document.find(later) == -1 or document.index(later) > verdict


def test_nothing_is_loaded_and_nothing_is_inline() -> None:
    for document in map(html, (*SAMPLES.values(), RICH)):
        outline = Outline(document).found
        assert {tag for tag, _ in outline} & {"img", "link", "iframe", "object", "form"} == set()
        names = {name for _, attrs in outline for name in attrs}
        assert names & {"src", "style", "action", "srcset", "data"} == set()
        assert [name for name in names if name.startswith("on")] == []
        assert all(link.startswith("#") for link in attributes(document, "href"))


def test_the_policy_names_the_style_and_the_script_and_nothing_else() -> None:
    document = html(READY)
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', document)
    assert policy
    rules = dict(part.strip().split(" ", 1) for part in policy[1].replace("&#39;", "'").split(";"))
    assert rules["default-src"] == "'none'"
    for tag, key in (("style", "style-src"), ("script", "script-src")):
        (inside,) = re.findall(rf"<{tag}>(.*?)</{tag}>", document, re.S)
        digest = base64.b64encode(hashlib.sha256(inside.encode()).digest()).decode()
        assert rules[key] == f"'sha256-{digest}'"


def test_hostile_text_is_text() -> None:
    document = html(HOSTILE)
    assert re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e\ud800-\udfff]", document) is None
    assert "&lt;b&gt;@all&lt;/b&gt;" in document
    assert "<b>" not in document
    assert "\\x1b]0;owned\\x07" in document
    document.encode("utf-8")


@pytest.mark.parametrize(
    "text",
    ["</script><script>x()</script>", '"><svg onload=x()>', "{{ 7 * 7 }}", "{% include 'x' %}",
     "</style><b>", "' onfocus='x()", "<!--", "]]>", "\ufffd\x00"],
)  # fmt: skip
def test_no_field_of_a_report_can_break_out(text: str) -> None:
    def tags(word: str) -> list[str]:
        cause = replace(KV, text=word, reason=word, hint=word, before=(word,), after=(word,))
        report = make_report(
            State.CRASHED,
            (make_run(1, cause=cause, progress=(replace(SHARDS, label=word),)),),
            summary=word,
            notes=(word,),
            source=word,
            stream=word,
            server=Server(word, word, word),
            evidence=(Evidence(1, word, word),),
        )
        return [tag for tag, _ in Outline(html(report, report)).found]

    assert tags(text) == tags("x")


def test_a_line_of_a_megabyte_does_not_make_a_page_of_one() -> None:
    long = "x" * 1_000_000
    cause = replace(KV, text=long, before=(long,), after=(long,), hint="short")
    report = make_report(State.CRASHED, (make_run(1, cause=cause),), summary=long)
    assert len(html(report)) < 80_000


def test_five_thousand_runs_are_folded_into_a_small_page() -> None:
    document = html(MANY_RUNS)
    assert len(document.encode()) < 2_000_000
    assert "The first 120 and the last 120 of 5000 runs" in document
    assert document.count('class="seg ') < 500


def test_many_logs_are_listed_the_worst_first_in_a_small_page() -> None:
    document = html(*[READY] * 200, *[CRASH_LOOP] * 200)
    assert len(document.encode()) < 2_000_000
    assert "Details follow for the 100 worst." in document
    assert document.index("crash-looping</span>") < document.index("ready</span>")


def test_facts_that_are_there_are_shown() -> None:
    document = html(RICH)
    for shown in (
        "What loopdetect did not understand",
        "frobnicator failed: &lt;i&gt;no gas&lt;/i&gt;",
        "Started with",
        "/m/&lt;b&gt;one&lt;/b&gt;",
        "free memory at the start",
        "shrinks: 80 GiB at first, 59 GiB lately",
        "4 bad runs in a row with one cause.",
        "2 bad runs with one cause, 3 with mixed causes",
        "64/64 after 13 s; earlier runs (median of 3): 11 s (dashed)",
    ):
        assert shown in document


def test_a_bar_without_time_has_no_curve() -> None:
    assert len(html_charts.curves(RICH)) == 1
    still = tuple(
        replace(run, progress=(replace(run.progress[0], points=((0.0, 1.0), (0.0, 64.0))),))
        for run in RICH.runs
    )
    assert html_charts.curves(replace(RICH, runs=still)) == ()


def test_facts_that_are_absent_are_not_spoken_of() -> None:
    document = html(CRASH_LOOP)
    for absent in ("did not understand", "Started with", "free memory", "dashed", "thresholds"):
        assert absent not in body(document)


def test_an_unknown_log_and_no_log_make_a_page() -> None:
    assert "nothing to report on" in html()
    assert "Timeline" not in body(html(SAMPLES["unknown"]))


def test_runs_that_get_slower_are_said_to() -> None:
    runs = tuple(make_run(n) for n in range(1, 10))
    slower = tuple(
        replace(
            run,
            phases=tuple(
                replace(span, duration_s=100.0 + 30 * run.number)
                if span.phase is Phase.LOAD_WEIGHTS
                else span
                for span in run.phases
            ),
        )
        for run in runs
    )
    (steady,) = [m for m in html_charts.multiples(make_report(State.CRASHED, runs)) if m.title == "load-weights"]  # fmt: skip
    assert (steady.words, steady.warn) == ("steady, 8 min 8 s (median)", False)
    (grown,) = [m for m in html_charts.multiples(make_report(State.CRASHED, slower)) if m.title == "load-weights"]  # fmt: skip
    assert (grown.words, grown.warn) == ("slower: 2 min 40 s at first, 5 min 40 s lately", True)


def test_the_phase_that_a_run_died_in_is_marked_and_does_not_count_as_its_time() -> None:
    run = make_run(1)
    died = replace(run, phases=(replace(run.phases[0], duration_s=30.0),))
    (item,) = html_charts.multiples(make_report(State.CRASHED, (died, replace(died, number=2))))
    assert item.words == "died in it each time, after 30 s in the last run"
    assert [whole for _, _, whole, _ in item.points] == [False, False]


def test_a_strip_shows_when_the_runs_were() -> None:
    from loopdetect.render.html_timeline import strip

    found = strip(CRASH_LOOP)
    assert found
    assert [round(x, 1) for x, _, _, _ in found.bars] == [0.0, 25.3, 50.7, 76.0]
    assert found.bars[0][3] == "run 1, from 2026-03-01 10:00:00: crashed (exit 1) in kv-cache"
    assert strip(READY) is None
    assert strip(TRANSCRIPT) is None
    assert len(strip(LONG_LOOP).bars) == 189  # type: ignore[union-attr]
    assert len(strip(MANY_RUNS).bars) <= 240  # type: ignore[union-attr]


def test_every_block_stays_inside_its_lane() -> None:
    from loopdetect.render.html_timeline import timeline

    for report in (CRASH_LOOP, LONG_LOOP, READY):
        for row in timeline(chart(report.runs, 48)).rows:
            ends = [block.x + block.width for block in row.blocks]
            assert all(block.x >= 0 for block in row.blocks)
            assert all(end <= 100 for end in ends)
            starts = [block.x for block in row.blocks[1:]]
            assert all(end <= start + 1e-6 for end, start in zip(ends, starts, strict=False))


def test_the_files_of_a_history_are_listed() -> None:
    files = (SourceFile("a.log.1", 1), SourceFile("<i>a.log", 401))
    document = html(replace(CRASH_LOOP, files=files))
    assert "<li>a.log.1 from line 1</li><li>&lt;i&gt;a.log from line 401</li>" in document
    assert "counted through" not in html(replace(CRASH_LOOP, files=files[:1]))


def test_inspect_writes_a_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "report.html"
    assert main(["inspect", str(FLAP), "--format", "html", "-o", str(page)]) == 0
    assert capsys.readouterr() == ("", "")
    assert page.read_text("utf-8").startswith("<!doctype html>")
    assert main(["inspect", str(FLAP), "--format", "html"]) == 0
    assert capsys.readouterr().out == page.read_text("utf-8")


def test_each_state_phase_and_outcome_has_its_words_and_its_style() -> None:
    assert set(WORST) == set(MEANINGS) == set(State)
    assert len(CERTAINTIES) == 3
    style = (FOLDER / "style.css").read_text("utf-8")
    marks = (FOLDER / "charts.html.j2").read_text("utf-8")
    for state in State:
        assert re.search(rf"\.s-{state.value}\b", style)
        assert f".badge.s-{state.value}::before" in style
    for phase in Phase:
        assert f".p-{phase.value} {{" in style
    for outcome in Outcome:
        assert re.search(rf"\.o-{outcome.value}\b", style)
        assert outcome is Outcome.UNKNOWN or f'outcome == "{outcome.value}"' in marks
