"""What is told of a stream as its reports come, on a clock made here."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest
from report_samples import KV, PORT, SHARDS, make_report, make_run

from loopdetect.follow.happened import Happened, Manner, Memory, What
from loopdetect.follow.story import Story
from loopdetect.model import Certainty, Exit, Outcome, Phase, PhaseSpan, Progress, Report, State

MANNER = Manner()
LOADING = replace(
    make_run(1), outcome=Outcome.LOADING, cause=None, exit=Exit(), phase=Phase.CONFIG,
    phases=(PhaseSpan(Phase.CONFIG, 1, None, None),), progress=(),
)  # fmt: skip
READY = replace(LOADING, outcome=Outcome.READY, ready=True, ready_after_s=90.0)


@dataclass
class Teller:
    """A story, its clock, and all that it told."""

    story: Story = field(default_factory=lambda: Story("k", MANNER))
    now: float = 1000.0
    events: list[Happened] = field(default_factory=list)

    phases: bool = False

    def tell(self, report: Report, after: float = 1.0) -> list[str]:
        """Give a report; return the words of the events, alarms with a mark."""
        self.now += after
        events = self.story.told(report, self.now)
        self.events += events
        return [
            ("!" if event.alarm else "") + event.what.value
            for event in events
            if self.phases or event.what is not What.PHASE
        ]

    def settle(self, report: Report) -> list[str]:
        """Give a report again until nothing is due any more within a minute."""
        words: list[str] = []
        until = self.now + 60
        while (due := self.story.due()) is not None and due <= until:
            words += self.tell(report, max(0.0, due - self.now))
        return words


def loading(number: int = 1, **changes: object) -> Report:
    return make_report(State.LOADING, (*bad_runs(number - 1), replace(LOADING, number=number)),
                       cause=None, **changes)  # fmt: skip


def bad_runs(count: int) -> tuple[object, ...]:
    return tuple(make_run(number) for number in range(1, count + 1))


def crashed(count: int = 1, state: State = State.CRASHED, **changes: object) -> Report:
    return make_report(state, bad_runs(count), **changes)


def ready(number: int = 1) -> Report:
    return make_report(State.READY, (*bad_runs(number - 1), replace(READY, number=number)))


def test_a_start_its_phases_and_readiness_are_told_in_the_logs_order() -> None:
    teller = Teller(phases=True)
    assert teller.tell(loading()) == ["start"]
    spans = (
        PhaseSpan(Phase.CONFIG, 1, None, 20.0),
        PhaseSpan(Phase.LOAD_WEIGHTS, 60, None, 400.0),
        PhaseSpan(Phase.KV_CACHE, 200, None, None),
    )
    further = make_report(State.LOADING, (replace(LOADING, phases=spans),), cause=None)
    assert teller.tell(further) == ["phase", "phase"]
    assert [event.text for event in teller.events[-2:]] == [
        "load-weights after 20 s in config",
        "kv-cache after 6 min 40 s in load-weights",
    ]
    assert [event.line for event in teller.events[-2:]] == [60, 200]
    assert teller.tell(further) == []
    assert teller.tell(ready()) == ["ready", "!ready"]


def test_how_often_anybody_looks_changes_nothing_of_what_is_told() -> None:
    often, once = Teller(), Teller()
    reports = [loading(1), crashed(1), loading(2), crashed(2, State.CRASH_LOOPING)]
    words = [word for report in reports for word in [*often.tell(report), *often.tell(report)]]
    last = make_report(State.CRASH_LOOPING, (*bad_runs(2), replace(LOADING, number=3)), cause=KV)
    words += often.tell(last)
    assert [w for w in words if w[0] != "!"] == [
        w for w in [*once.tell(last)] if w[0] != "!"
    ] == ["start", "crash", "restart", "crash", "crash-loop", "restart"]  # fmt: skip


def test_a_death_waits_for_its_cause_while_the_log_goes_on() -> None:
    teller = Teller()
    teller.tell(loading())
    blank = crashed(1, cause=None)
    blank = replace(blank, runs=(replace(blank.runs[0], cause=None),))
    assert teller.tell(replace(blank, bytes=90_010)) == []
    assert teller.tell(replace(blank, bytes=90_020), 0.2) == []
    assert teller.tell(replace(crashed(), bytes=90_030), 0.2) == []
    assert teller.settle(replace(crashed(), bytes=90_030)) == ["crash", "!crash"]
    assert "kv-cache-too-small" in teller.events[-2].text


def test_a_death_is_told_at_last_though_the_log_never_stops() -> None:
    teller = Teller()
    teller.tell(loading())
    words = [teller.tell(replace(crashed(), bytes=90_000 + count), 0.2) for count in range(20)]
    assert words.count(["crash"]) == 1


def test_a_cause_that_shows_later_is_told_as_such() -> None:
    teller = Teller()
    teller.tell(loading())
    teller.tell(crashed())
    teller.settle(crashed())
    other = replace(crashed(), runs=(make_run(1, cause=PORT),))
    assert teller.tell(other) == ["error"]
    assert "the cause is port-in-use" in teller.events[-1].text
    assert teller.tell(other) == []


def test_an_error_that_a_run_survives_is_no_crash() -> None:
    teller = Teller()
    teller.tell(loading())
    unsure = make_report(State.CRASHED, (make_run(1, exit=Exit()),), certainty=Certainty.LIKELY)
    assert teller.tell(unsure) == ["error"]
    assert teller.tell(unsure, 5.0) == []
    assert teller.tell(ready()) == ["ready", "!ready"]


def test_an_error_after_which_nothing_comes_is_a_crash() -> None:
    teller = Teller()
    teller.tell(loading())
    unsure = make_report(State.CRASHED, (make_run(1, exit=Exit()),), certainty=Certainty.LIKELY)
    teller.tell(unsure)
    assert teller.settle(unsure) == ["crash", "!crash"]


# -- alarms


def test_a_loop_of_three_hundred_restarts_is_one_alarm_and_one_recovery() -> None:
    teller = Teller()
    words = teller.tell(loading(1))
    for number in range(1, 301):
        state = State.CRASH_LOOPING if number > 1 else State.CRASHED
        words += teller.tell(crashed(number, state))
        words += teller.tell(crashed(number, state), 0.3)
        if number < 300:
            looping = loading(number + 1)
            verdict = replace(looping.verdict, state=state, cause=KV) if number > 1 else None
            words += teller.tell(replace(looping, verdict=verdict) if verdict else looping)
    words += teller.tell(ready(301))
    assert [word for word in words if word[0] == "!"] == ["!crash-loop", "!recovery"]
    assert words.count("crash") == 300
    assert words.count("crash-loop") == 1
    assert words.count("recovery") == 1


def test_a_loop_that_goes_on_is_remembered_after_a_while() -> None:
    teller = Teller()
    loop = crashed(3, State.CRASH_LOOPING)
    teller.tell(loop)
    teller.settle(loop)
    assert teller.tell(loop, MANNER.remind - 100) == []
    assert teller.tell(loop, 200.0) == ["!reminder"]
    assert teller.tell(loop, 100.0) == []


def test_a_restart_at_once_makes_no_alarm_of_the_crash_but_its_recovery_does() -> None:
    teller = Teller()
    words = [*teller.tell(loading()), *teller.tell(crashed()), *teller.tell(crashed(), 0.3)]
    words += [*teller.tell(loading(2), 2.0), *teller.tell(ready(2), 60.0)]
    assert words == ["start", "crash", "restart", "ready", "recovery", "!recovery"]


def test_a_crash_that_stands_is_an_alarm_once_it_has_settled() -> None:
    teller = Teller()
    teller.tell(loading())
    teller.tell(crashed())
    assert teller.tell(crashed(), 0.3) == ["crash"]
    assert teller.tell(crashed(), MANNER.settle - 1) == []
    assert teller.tell(crashed(), 2.0) == ["!crash"]


def test_a_stall_and_its_end_are_told_once() -> None:
    teller = Teller()
    teller.tell(loading())
    stalled = make_report(State.STALLED, (replace(LOADING, outcome=Outcome.STALLED),), cause=None)
    assert teller.tell(stalled) == ["stall", "!stall"]
    assert teller.tell(stalled) == []
    assert teller.tell(loading()) == ["recovery"]
    assert teller.tell(ready()) == ["ready", "!recovery"]


def test_a_stop_is_told_and_ends_the_count() -> None:
    teller = Teller()
    teller.tell(crashed(2, State.CRASH_LOOPING))
    teller.settle(crashed(2, State.CRASH_LOOPING))
    stopped = make_report(
        State.STOPPED,
        (*bad_runs(2), replace(LOADING, number=3, outcome=Outcome.STOPPED)),
        cause=None,
    )
    assert teller.tell(stopped) == ["restart", "stopped", "!stopped"]
    assert teller.story.memory.failed == 0


def test_what_was_there_before_is_summed_up_and_only_bad_news_are_an_alarm() -> None:
    good, bad = Story("k", MANNER), Story("k", MANNER)
    assert [e.what for e in good.first(ready(), 1.0)] == [What.STATE]
    events = bad.first(crashed(3, State.CRASH_LOOPING), 1.0)
    assert [(e.what, e.alarm) for e in events] == [
        (What.STATE, False), (What.CRASH_LOOP, True),
    ]  # fmt: skip
    assert good.told(ready(), 2.0) == []


def test_an_empty_log_says_nothing() -> None:
    empty = make_report(State.UNKNOWN, (), cause=None)
    assert Story("k", MANNER).first(empty, 1.0) == []


def test_a_memory_that_was_saved_tells_nothing_twice() -> None:
    teller = Teller()
    loop = crashed(3, State.CRASH_LOOPING)
    teller.tell(loop)
    teller.settle(loop)
    later = Story("k", MANNER, Memory.loaded(teller.story.memory.saved()))
    assert later.told(loop, teller.now + 1) == []
    assert [e.what.value for e in later.told(crashed(4, State.CRASH_LOOPING), teller.now + 2)] == [
        "restart"
    ]


def test_what_is_read_again_after_a_restart_is_not_told_again() -> None:
    teller = Teller()
    loop = replace(crashed(3, State.CRASH_LOOPING), bytes=90_000)
    teller.tell(loop)
    teller.settle(loop)
    later = Teller(Story("k", MANNER, Memory.loaded(teller.story.memory.saved())), teller.now)
    assert later.tell(replace(crashed(1), bytes=30_000)) == []
    assert later.story.due() is None
    assert later.tell(loop) == []
    assert later.tell(replace(crashed(4, State.CRASH_LOOPING), bytes=91_000)) == ["restart"]


def test_a_memory_of_another_version_is_taken_as_far_as_it_is_known() -> None:
    assert Memory.loaded({"run": 4, "of_tomorrow": 1}).run == 4


def test_the_ids_count_on_without_a_gap() -> None:
    teller = Teller()
    for report in (loading(), crashed(), crashed(), ready(2)):
        teller.tell(report)
    assert [event.id for event in teller.events] == [
        f"k-{number}" for number in range(1, len(teller.events) + 1)
    ]


# -- progress


def shards(done: float, total: float = 64.0) -> Report:
    bar = Progress(SHARDS.label, done, total, None, None, 61, 62)
    return make_report(State.LOADING, (replace(LOADING, progress=(bar,)),), cause=None)


def test_twenty_refreshes_a_second_become_a_few_lines() -> None:
    teller = Teller()
    teller.tell(loading())
    words = [word for step in range(1281) for word in teller.tell(shards(step / 20), 0.05)]
    assert words == ["progress"] * 4
    assert teller.events[-1].text == "Loading checkpoint shards: 64/64"


def test_a_slow_bar_is_told_twice_a_minute() -> None:
    teller = Teller()
    teller.tell(loading())
    words = [word for step in range(1, 13) for word in teller.tell(shards(step, 1000), 10.0)]
    assert len(words) == pytest.approx(4, abs=1)


def test_a_bar_that_stands_still_is_not_told_again() -> None:
    teller = Teller()
    teller.tell(shards(32), 5.0)
    assert [teller.tell(shards(32), 40.0) for _ in range(3)].count(["progress"]) <= 1
