"""Reports folded into groups: what is the same failure, counted exactly, in any order."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from report_samples import PORT, START, make_report, make_run

from loopdetect.model import Evidence, Exit, Outcome, Phase, Report, SourceFile, State
from loopdetect.scan.digest import LogDigest, last_failure, log_digest
from loopdetect.scan.groups import EXAMPLES, Tally
from loopdetect.scan.to_json import group_object

LOOP = make_report(State.CRASH_LOOPING, tuple(make_run(n) for n in (1, 2, 3)))
PORT_RUN = {"cause": PORT, "fingerprint": "f-port", "phase": Phase.BIND}
TAKEN = make_report(State.CRASHED, (make_run(1, **PORT_RUN),))
SILENT_RUN = {"cause": None, "fingerprint": None, "outcome": Outcome.KILLED}
SILENT = make_report(
    State.CRASHED, (make_run(1, **SILENT_RUN, exit=Exit(signal="SIGKILL")),), evidence=()
)
READY_RUN = {"outcome": Outcome.READY, "ready": True, "cause": None, "fingerprint": None}
RECOVERED = make_report(State.READY, (make_run(1), make_run(2, **READY_RUN)))
HEALTHY = make_report(State.READY, (make_run(1, **READY_RUN),))
SEEN = make_report(State.CRASH_LOOPING, (), cause=None, restarts=4, phase=Phase.LOAD_WEIGHTS)
REPORTS = (LOOP, TAKEN, SILENT, RECOVERED, HEALTHY, SEEN)


def tally_of(*logs: LogDigest, places: list[int] | None = None) -> Tally:
    tally = Tally()
    for place in places or range(len(logs)):
        tally.add(place, logs[place])
    return tally


def told(tally: Tally) -> list[dict[str, Any]]:
    return [group_object(group) for group in tally.groups]


@pytest.mark.parametrize(
    ("report", "expected"),
    [
        (LOOP, (Phase.KV_CACHE, "kv-cache-too-small", "f-kv", 932)),
        (TAKEN, (Phase.BIND, "port-in-use", "f-port", 12)),
        (SILENT, (Phase.KV_CACHE, None, None, 311)),
        (RECOVERED, (Phase.KV_CACHE, "kv-cache-too-small", "f-kv", 310)),
        (SEEN, (Phase.LOAD_WEIGHTS, None, None, 1)),
        (HEALTHY, None),
    ],
    ids=["loop", "taken", "silent", "recovered", "seen", "healthy"],
)
def test_the_failure_of_a_log_is_its_last(report: Report, expected: object) -> None:
    failure = last_failure(report)
    found = failure and (failure.phase, failure.reason, failure.fingerprint, failure.line)
    assert found == expected


def test_a_failure_is_seen_at_every_run_that_ended_alike() -> None:
    other = make_run(4, **PORT_RUN)
    failure = last_failure(make_report(State.LOADING, (*LOOP.runs, other, make_run(5))))
    assert failure is not None
    assert (failure.first_at, failure.last_at) == (START + 530, START + 4 * 560 + 530)


def test_where_no_cause_is_known_the_line_of_the_death_is_shown() -> None:
    run = make_run(1, **SILENT_RUN)
    evidence = (Evidence(1, "start", "up"), Evidence(300, "death", "Engine core died"))
    failure = last_failure(make_report(State.CRASHED, (run,), evidence=evidence))
    assert failure is not None
    assert (failure.line, failure.text, failure.ending) == (
        300,
        "Engine core died",
        "killed (exit 1)",
    )


@pytest.mark.parametrize(
    ("change", "groups"),
    [
        ({"fingerprint": "f-kv"}, 1),
        ({"fingerprint": "f-other"}, 2),
        ({"phase": Phase.SERVING}, 2),
    ],
    ids=["same", "text", "phase"],
)
def test_phase_and_fingerprint_tell_failures_apart(change: dict[str, Any], groups: int) -> None:
    other = make_report(State.CRASHED, (make_run(1, **change),))
    tally = tally_of(log_digest("a", [LOOP]), log_digest("b", [other]))
    assert len(tally.groups) == groups


def test_the_server_tells_failures_apart() -> None:
    other = replace(LOOP, server=replace(LOOP.server, name="sglang"))
    tally = tally_of(log_digest("a", [LOOP]), log_digest("b", [other]))
    assert {group.failure.server for group in tally.groups} == {LOOP.server.name, "sglang"}


def test_deaths_without_a_word_are_told_apart_by_how_they_ended() -> None:
    quiet = make_report(State.CRASHED, (make_run(1, **SILENT_RUN, exit=Exit()),))
    tally = tally_of(log_digest("a", [SILENT]), log_digest("b", [quiet]), log_digest("c", [SILENT]))
    assert [(g.logs, g.failure.ending) for g in tally.groups] == [
        (2, "killed (SIGKILL)"),
        (1, "killed"),
    ]


def test_a_log_with_several_streams_is_one_log() -> None:
    rows = [replace(LOOP, stream="a"), replace(LOOP, stream="b"), replace(TAKEN, stream="c")]
    first, second = told(tally_of(log_digest("compose.log", rows)))
    assert (first["logs"], first["streams"], first["runs"], first["crashes"]) == (1, 2, 6, 6)
    assert (second["logs"], second["streams"]) == (1, 1)


def test_counts_are_exact_and_examples_few() -> None:
    digests = [log_digest(f"{n:04d}.log", [LOOP]) for n in range(1000)]
    (group,) = tally_of(*digests, places=list(range(999, -1, -1))).groups
    assert (group.logs, group.crashes) == (1000, 3000)
    assert [example.source for example in group.examples] == [
        f"{n:04d}.log" for n in range(EXAMPLES)
    ]


def test_failures_beyond_the_most_groups_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("loopdetect.scan.groups.MOST_GROUPS", 1)
    tally = tally_of(*(log_digest("a", [report]) for report in (LOOP, TAKEN, LOOP)))
    assert [group.logs for group in tally.groups] == [2]
    assert (tally.left_out, tally.logs) == (1, 3)


def test_only_failures_in_the_states_that_are_asked_for_are_grouped() -> None:
    wanted = frozenset({State.CRASH_LOOPING})
    tally = tally_of(*(log_digest("a", [r], wanted) for r in (LOOP, TAKEN, RECOVERED)))
    assert [group.logs for group in tally.groups] == [1]
    assert tally.states == {State.CRASH_LOOPING: 1, State.CRASHED: 1, State.READY: 1}


@pytest.mark.parametrize(
    ("clocks", "expected"),
    [
        (["wall", "wall"], "2026-03-01T10:08:50"),
        (["wall-no-year", "wall"], "2026-03-01T10:08:50"),
        (["wall-no-year", "time-of-day"], "--03-01T10:08:50"),
        (["time-of-day", "uptime"], None),
        ([None, None], None),
    ],
)
def test_times_of_one_kind_of_clock_are_compared(
    clocks: list[str | None], expected: str | None
) -> None:
    digests = [log_digest("x", [replace(LOOP, clock=clock)]) for clock in clocks]
    assert {group["first_seen"] for group in told(tally_of(*digests))} == {expected}


def test_an_example_names_the_file_of_a_history_that_holds_the_line() -> None:
    files = (SourceFile("s.log.1", 1), SourceFile("s.log", 900))
    (group,) = tally_of(log_digest("s.log", [replace(LOOP, files=files)])).groups
    (example,) = group.examples
    assert (example.source, example.line) == ("s.log", 932)
    assert (example.file, example.file_line) == ("s.log", 33)
    assert log_digest("s.log", [replace(LOOP, files=files)]).place(899) == ("s.log.1", 899)


@given(
    st.lists(st.lists(st.sampled_from(REPORTS), min_size=1, max_size=3), max_size=12),
    st.randoms(use_true_random=False),
)
def test_groups_do_not_depend_on_the_order(made: list[list[Report]], dice: Any) -> None:
    digests = [log_digest(f"{n}.log", reports) for n, reports in enumerate(made)]
    places = list(range(len(digests)))
    straight = tally_of(*digests)
    dice.shuffle(places)
    shuffled = tally_of(*digests, places=places)
    assert told(shuffled) == told(straight)
    assert shuffled.states == straight.states
    # No log is lost or counted twice.
    failed = Counter(
        key for reports in made for key in {f.key for f in map(last_failure, reports) if f}
    )
    assert sorted(failed.values()) == sorted(group.logs for group in straight.groups)
