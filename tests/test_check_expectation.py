from __future__ import annotations

import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
from report_samples import CRASH_LOOP, PORT, READY, TRANSCRIPT, make_report, make_run

from loopdetect.check.update import refreshed
from loopdetect.expectation import (
    ExpectationError,
    compare,
    expectation_path,
    load_expectation,
    log_beside,
    parse_expectation,
)
from loopdetect.model import Outcome, Report, State

STREAMS = (replace(READY, stream="web-1"), replace(CRASH_LOOP, stream="web-2"))


def differences(toml: str, *reports: Report) -> list[str]:
    found = compare(parse_expectation(tomllib.loads(toml), "x.expect.toml"), reports)
    return [f"{item.line}: {item.message}" for item in found]


@pytest.mark.parametrize(
    "toml",
    [
        'state = "crash-looping"',
        'state = ["crashed", "crash-looping"]',
        'state = "crash-looping"\nserver = "vllm"\nrestarts = 3\nphase = "kv-cache"',
        'state = "crash-looping"\nreason = ["port-in-use", "kv-cache-too-small"]\ncrashes = 4',
        'state = "crash-looping"\ncause = "KV cache is needed"\ncause_line = [1, 1243]',
        'state = "crash-looping"\nready_seen = false\ncertainty = "certain"\nkind = "log"',
        'state = "crash-looping"\noutcomes = ["crashed", "crashed", ["killed", "crashed"], "crashed"]',
        'state = "crash-looping"\nnow = 2026-03-01T12:00:00\nfiles = ["a.log"]',
    ],
)
def test_a_report_that_fits_has_no_difference(toml: str) -> None:
    assert differences(toml, CRASH_LOOP) == []


@pytest.mark.parametrize(
    ("toml", "found"),
    [
        ('state = "ready"', "1243: state: crash-looping, expected ready"),
        ('state = ["ready", "stopped"]', "1243: state: crash-looping, expected ready or stopped"),
        ('server = "sglang"', "1: server: vllm, expected sglang"),
        ("restarts = 2", "934: restarts: 3, expected 2"),
        ("restarts = [0, 1]", "934: restarts: 3, expected 0 or 1"),
        ('phase = "bind"', "1134: phase: kv-cache, expected bind"),
        ('reason = "port-in-use"', "1243: reason: kv-cache-too-small, expected port-in-use"),
        ('reason = ""', "1243: reason: kv-cache-too-small, expected none"),
        ('cause = ""', "1243: cause: ValueError: 21.00 GiB"),
        ('cause = "nothing like it"', "1243: cause: ValueError: 21.00 GiB"),
        ("cause_line = 1", "1243: cause_line: 1243, expected 1"),
        ("crashes = 1", "934: crashes: 4, expected 1"),
        ("ready_seen = true", "1243: ready_seen: false, expected true"),
        ('ready_within = "10m"', "1243: ready_within: never, expected 10 min"),
        ('certainty = "likely"', "1243: certainty: certain, expected likely"),
        ('kind = "transcript"', "1: kind: log, expected transcript"),
        ('outcomes = ["crashed"]', "934: outcomes: [crashed, crashed, crashed, crashed], expected"),
        (
            'outcomes = ["crashed", "crashed", "crashed", "ready"]',
            "934: outcomes: [crashed, crashed, crashed, crashed], expected [crashed, crashed",
        ),
    ],
)
def test_each_key_that_differs_is_told_with_its_line(toml: str, found: str) -> None:
    state = "" if toml.startswith("state") else 'state = "crash-looping"\n'
    report = replace(CRASH_LOOP, verdict=replace(CRASH_LOOP.verdict, since_line=1243))
    told = differences(state + toml, report)
    assert len(told) == 1
    assert told[0].startswith(found)


@pytest.mark.parametrize(
    ("limit", "report", "found"),
    [
        ("8m", READY, []),
        ("431", READY, []),
        ("7m", READY, ["300: ready_within: 7 min 11 s, expected 7 min"]),
        (
            "10m",
            make_report(
                State.READY, (make_run(1, ready=True, outcome=Outcome.READY),), since_line=9
            ),
            ["9: ready_within: not told by the log, expected 10 min"],
        ),
    ],
    ids=["within", "seconds", "too-slow", "no-times"],
)
def test_the_slowest_start_must_be_within_the_time(
    limit: str, report: Report, found: list[str]
) -> None:
    state = f'state = "ready"\nready_within = "{limit}"'
    assert differences(state, report) == found


def test_each_stream_is_held_against_its_own_table() -> None:
    toml = '[stream."web-1"]\nstate = "ready"\n[stream."web-2"]\nstate = "crash-looping"\n'
    assert differences(toml, *STREAMS) == []
    assert differences(toml, STREAMS[1]) == ["1: stream: missing, expected web-1"]
    one = '[stream."web-2"]\nstate = "crash-looping"\n'
    assert differences(one, *STREAMS) == ["1: stream: ready, expected none"]
    rest = 'state = "ready"\n' + one
    assert differences(rest, *STREAMS) == []


@pytest.mark.parametrize(
    ("toml", "words"),
    [
        ("", "state: is missing"),
        ("restarts = 1", "state: is missing"),
        ('[stream."a"]\nrestarts = 1', 'stream."a".state: is missing'),
        ('state = "redy"', "state: 'redy' is not one of its words; did you mean ready?"),
        ('state = "ready"\nrestart = 1', "restart: unknown key. Did you mean restarts?"),
        ('[stream."a"]\nstate = "ready"\nnow = 1', 'stream."a".now: unknown key'),
        ('state = "ready"\nrestarts = "1"', "restarts: must be a whole number"),
        ('state = "ready"\nrestarts = true', "restarts: must be a whole number"),
        ('state = "ready"\nrestarts = -1', "restarts: must be a whole number"),
        ('state = "ready"\nready_seen = 1', "ready_seen: must be true or false"),
        ('state = "ready"\nready_within = "soon"', "ready_within: 'soon' is not a duration"),
        ('state = "ready"\noutcomes = "ready"', "outcomes: must be a list, one a run"),
        ("state = []", "state: must hold at least one alternative"),
        ('state = "ready"\nnow = "noon"', "now: 'noon' is not a time"),
        ('state = "ready"\nfiles = "a"', "files: must be a list of file names"),
        ("stream = 1", "stream: must be tables"),
        ("state = ", "not valid TOML"),
    ],
)
def test_a_wrong_expectation_says_where_and_what(toml: str, words: str, tmp_path: Path) -> None:
    file = tmp_path / "x.expect.toml"
    file.write_text(toml)
    with pytest.raises(ExpectationError) as caught:
        load_expectation(file)
    told = f"{caught.value}. {(caught.value.hint or '')[:1].upper()}{(caught.value.hint or '')[1:]}"
    assert told.startswith(f"{file}: ")
    assert words in told


@pytest.mark.parametrize(
    ("log", "expectation"),
    [
        ("a/x.log", "a/x.expect.toml"),
        ("x.log.gz", "x.expect.toml"),
        ("x.poll.log", "x.poll.expect.toml"),
        ("x.txt", "x.expect.toml"),
        ("x", "x.expect.toml"),
    ],
)
def test_the_expectation_is_beside_the_log(log: str, expectation: str, tmp_path: Path) -> None:
    assert expectation_path(log) == Path(expectation)
    file = tmp_path / Path(log).name
    assert log_beside(str(expectation_path(str(file)))) is None
    file.touch()
    assert log_beside(str(expectation_path(str(file)))) == file


@pytest.mark.parametrize("reports", [(READY,), (CRASH_LOOP,), (TRANSCRIPT,), STREAMS])
def test_a_fresh_expectation_fits_what_it_was_made_from(reports: tuple[Report, ...]) -> None:
    text = refreshed(None, reports, 'a "log"\n.log')
    assert compare(parse_expectation(tomllib.loads(text), "x"), reports) == []
    assert refreshed(text, reports, "a.log") == text


def test_a_refresh_keeps_comments_alternatives_and_what_fits() -> None:
    old = (
        "# why this log is here\n"
        'state = "ready"   # once\n'
        'reason = ["kv-cache-too-small", "gpu-out-of-memory"]\n'
        "restarts = 1\n"
        "crashes = 4\n"
    )
    assert refreshed(old, (CRASH_LOOP,), "x.log") == (
        "# why this log is here\n"
        'state = "crash-looping"   # once\n'
        'reason = ["kv-cache-too-small", "gpu-out-of-memory"]\n'
        "restarts = 3\n"
        "crashes = 4\n"
    )


def test_a_refresh_of_one_stream_leaves_the_others_alone() -> None:
    old = '[stream."web-1"]\nstate = "ready" # a\n\n[stream.web-2]\nstate = "ready" # b\n'
    new = '[stream."web-1"]\nstate = "ready" # a\n\n[stream.web-2]\nstate = "crash-looping" # b\n'
    assert refreshed(old, STREAMS, "x.log") == new


@pytest.mark.parametrize(
    "old",
    [
        'outcomes = [\n  "ready",\n]\nstate = "ready"\nnow = 2026-03-01T10:00:00\n',
        'state = "ready"\n[stream."gone"]\nstate = "ready"\n',
        "state = \n",
    ],
    ids=["many-lines", "stream-gone", "not-toml"],
)
def test_what_can_not_be_edited_is_written_anew(old: str) -> None:
    text = refreshed(old, (CRASH_LOOP,), "x.log")
    assert compare(parse_expectation(tomllib.loads(text), "x"), (CRASH_LOOP,)) == []
    assert ("now = " in text) == ("now" in old)


def test_a_port_taken_differs_only_in_its_reason() -> None:
    report = replace(CRASH_LOOP, verdict=replace(CRASH_LOOP.verdict, cause=PORT))
    assert differences('state = "crash-looping"\nreason = "kv-cache-too-small"', report) == [
        "12: reason: port-in-use, expected kv-cache-too-small"
    ]
