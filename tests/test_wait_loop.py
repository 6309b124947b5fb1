"""`wait` from the call to the answer, on a clock of the test's own."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from wait_stage import (
    ALIVE,
    BUSY,
    DOWN,
    GONE,
    UP,
    WALL,
    Stage,
    death,
    lines,
    notice,
    ready,
    shards,
    start,
    stop,
)

from loopdetect.core.fusion import Writer
from loopdetect.live.closing import closing_lines, final_reports, headline, wait_object
from loopdetect.live.judge import Ending, Terms
from loopdetect.live.patterns import LinePatterns
from loopdetect.live.plain import Plain
from loopdetect.live.tail import Turn
from loopdetect.model import Policy, State
from loopdetect.probe.seen import ProcessSeen
from loopdetect.render.paint import painter

LOOP = start(1) + death(1) + start(2) + death(2) + start(3) + death(3)
Plot = list[tuple[float, bytes | Turn]]

# What the log does after the call -> how it ends, after how many seconds at most.
PLOTS: dict[str, tuple[Plot, Ending, float]] = {
    "healthy start": ([(1, start()), (3, shards(8)), (9, ready())], Ending.REACHED, 10),
    "crash": ([(1, start()), (3, death())], Ending.CRASHED, 5),
    "clean stop": ([(1, start()), (3, stop())], Ending.STOPPED, 5),
    "loop, a new start in between": (
        [(1, start(1)), (3, death(1)), (3.5, start(2)), (5, death(2))], Ending.CRASH_LOOPING, 6,
    ),
    "loop that truncates its log": (
        [(1, start(1)), (3, death(1)), (3.5, Turn.TRUNCATED), (3.6, start(2)), (5, death(2))],
        Ending.CRASH_LOOPING, 6,
    ),
    "hang": ([(1, start()), (3, shards(8))], Ending.STALLED, 304),
    "hang with notices that tell of no advance": (
        [(1, start()), (3, shards(8)), *((60.0 * n, notice()) for n in range(1, 9))],
        Ending.STALLED, 305,
    ),
    "slow but moving": (
        [(1, start()), *((200.0 * n, shards(n)) for n in range(1, 5)), (850, ready())],
        Ending.REACHED, 851,
    ),
    "nothing ever": ([], Ending.TIME_LIMIT, 901),
}  # fmt: skip


@pytest.mark.parametrize(("plot", "ending", "latest"), PLOTS.values(), ids=PLOTS)
def test_the_answer_comes_when_it_is_known(plot: Plot, ending: Ending, latest: float) -> None:
    decision = Stage(plot).run()
    assert decision.ending is ending
    assert decision.waited_s <= latest


def test_a_truncated_log_counts_the_same_restarts() -> None:
    stage = Stage([(1, start(1)), (3, death(1)), (3.5, Turn.TRUNCATED), (3.6, start(2) + death(2))])
    decision = stage.run()
    report = final_reports(decision, stage.log)[0]
    assert (report.verdict.restarts, report.verdict.crashes) == (1, 2)
    assert any("began anew" in note for note in report.notes)
    assert report.verdict.cause is not None
    # Three lines of start, four of death: the file that stands there now has the cause in line 7.
    assert stage.log.where(report.verdict.cause.line) == "line 7"


@pytest.mark.parametrize("history", [LOOP, LOOP + stop(3), start(1) + shards(9)])
def test_yesterdays_log_does_not_fail_todays_start(history: bytes) -> None:
    plot: Plot = [(0, history), (5, start(7)), (20, shards(9)), (60, ready(7))]
    decision = Stage(plot).run()
    assert decision.ending is Ending.REACHED
    assert 60 <= decision.waited_s < 61


def test_a_loop_in_progress_is_called_at_its_next_death() -> None:
    decision = Stage([(0, LOOP + start(4)), (30, death(4))]).run()
    assert decision.ending is Ending.CRASH_LOOPING
    assert 30 <= decision.waited_s < 31


def test_one_old_crash_and_a_new_one_of_the_same_cause_are_a_loop() -> None:
    plot: Plot = [(0, start(1) + death(1)), (5, start(2)), (9, death(2))]
    assert Stage(plot).run().ending is Ending.CRASH_LOOPING


def test_a_ready_line_from_before_the_call() -> None:
    """It counts at once where its writer lives, late where nobody can say, and not for a new one."""
    history = start(1) + ready(1)

    def waited(writer: Writer, *more: tuple[float, bytes], process: ProcessSeen | None = None):  # type: ignore[no-untyped-def]
        plot: Plot = [(0, history), *more]
        seen = None if process is None else [(0.0, process)]
        decision = Stage(plot, writer=writer, process=seen, terms=Terms(timeout=60)).run()
        return decision.ending, round(decision.waited_s)

    assert waited(Writer.SAME) == (Ending.REACHED, 0)
    assert waited(Writer.UNKNOWN) == (Ending.REACHED, 10)
    assert waited(Writer.UNKNOWN, (5, start(2)), (30, ready(2))) == (Ending.REACHED, 30)
    assert waited(Writer.NEWER) == (Ending.TIME_LIMIT, 60)
    assert waited(Writer.NEWER, (20, start(2)), (30, ready(2))) == (Ending.REACHED, 30)
    old, new = (replace(ALIVE, started=WALL + days * 86_400) for days in (-2, 0))
    assert waited(Writer.UNKNOWN, process=old) == (Ending.REACHED, 0)
    assert waited(Writer.UNKNOWN, process=new) == (Ending.TIME_LIMIT, 60)


def test_nothing_started_by_the_time_limit_is_said() -> None:
    stage = Stage([(0, LOOP)], terms=Terms(timeout=60))
    decision = stage.run()
    assert decision.ending is Ending.TIME_LIMIT
    assert "nothing has started since the wait began" in headline(decision, stage.log)


def test_what_was_written_between_the_call_and_the_first_look_is_no_history() -> None:
    def ending(plot: Plot, modified: float) -> Ending:
        return Stage(plot, modified=modified, terms=Terms(timeout=60)).run().ending

    crash, loop = start(1) + death(1), LOOP
    assert ending([(0, crash)], WALL - 0.1) is Ending.TIME_LIMIT
    assert ending([(0, crash)], WALL + 0.1) is Ending.CRASHED
    assert ending([(0, loop)], WALL - 0.1) is Ending.TIME_LIMIT
    assert ending([(0, loop)], WALL + 0.1) is Ending.CRASH_LOOPING
    assert ending([(0, loop + start(4))], WALL + 0.1) is Ending.TIME_LIMIT


def test_a_failure_that_is_tried_again_is_not_the_end() -> None:
    again = (
        "(APIServer pid=101) WARNING 01-02 03:01:05 [download.py:7] "
        "OSError: [Errno 28] No space left on device: '/cache/part.1'"
    )
    plot: Plot = [(1, start()), *((5.0 * n, lines(again)) for n in range(1, 9))]
    assert Stage([*plot, (60, shards(3)), (70, ready())]).run().ending is Ending.REACHED
    silent = Stage(plot)
    assert silent.run().ending is Ending.CRASHED
    assert silent.audience.shown[-20].why.startswith("the log shows a failure")


# -- evidence that contradicts the log


def test_503_then_200() -> None:
    stage = Stage([(1, start()), (9, ready())], health=[(0, DOWN), (4, BUSY), (12, UP)])
    decision = stage.run()
    assert (decision.ending, decision.fused.rule) == (Ending.REACHED, "ready-and-up")
    assert 12 <= decision.waited_s < 12.5


def test_startup_complete_with_a_refused_port_is_stalled_in_the_end() -> None:
    stage = Stage([(1, start()), (9, ready())], health=[(0, DOWN)])
    decision = stage.run()
    assert decision.ending is Ending.STALLED
    assert "not reachable" in headline(decision, stage.log)


def test_an_orphan_on_the_port_does_not_make_a_crash_loop_ready() -> None:
    plot: Plot = [(1, start(1)), (3, death(1)), (4, start(2)), (9, death(2))]
    decision = Stage(plot, health=[(0, UP)]).run()
    assert decision.ending is Ending.CRASH_LOOPING


def test_an_orphan_that_answered_before_the_death_is_no_sign_of_the_next_start() -> None:
    plot: Plot = [(1, start(1)), (3, death(1)), (4, start(2)), (9, shards(4))]
    decision = Stage(plot, health=[(0, DOWN), (2, UP)], terms=Terms(timeout=60, tolerate=5)).run()
    # It came up with the first start, so that start was ready: nothing to say against it.
    assert decision.ending is Ending.REACHED
    late = Stage(plot, health=[(0, UP)], terms=Terms(timeout=60, tolerate=5)).run()
    assert (late.ending, late.fused.state) == (Ending.TIME_LIMIT, State.LOADING)


def test_a_server_whose_ready_line_is_not_logged_is_ready_by_its_health() -> None:
    decision = Stage([(1, start()), (3, shards(64))], health=[(0, DOWN), (8, UP)]).run()
    assert (decision.ending, decision.fused.rule) == (Ending.REACHED, "up-after-down")


def test_a_dead_process_under_a_loading_log_is_crashed() -> None:
    decision = Stage([(1, start()), (3, shards(9))], process=[(0, ALIVE), (7, GONE)]).run()
    assert (decision.ending, decision.fused.decided_by) == (Ending.CRASHED, ("process",))
    assert decision.waited_s < 8


def test_a_process_that_was_dead_at_the_call_ends_the_wait() -> None:
    decision = Stage([(0, LOOP)], process=[(0, GONE)]).run()
    assert decision.ending is Ending.CRASH_LOOPING
    assert Stage([], process=[(0, GONE)]).run().ending is Ending.CRASHED


# -- terms


def test_a_crash_in_the_settle_time_is_reported_as_such() -> None:
    fatal = "RuntimeError: CUDA error: an illegal memory access was encountered"
    plot: Plot = [(1, start()), (9, ready()), (13, death(1, fatal))]
    stage = Stage(plot, terms=Terms(settle=10))
    decision = stage.run()
    assert decision.ending is Ending.CRASHED
    assert decision.served_s == pytest.approx(4, abs=0.3)
    assert "after it was ready" in headline(decision, stage.log)
    assert Stage(plot).run().ending is Ending.REACHED


def test_settling_starts_anew_when_health_falls() -> None:
    health = [(0, DOWN), (10, UP), (15, BUSY), (20, UP)]
    decision = Stage([(1, start()), (9, ready())], health=health, terms=Terms(settle=10)).run()
    assert decision.ending is Ending.REACHED
    assert 30 <= decision.waited_s < 30.5


@pytest.mark.parametrize(("tolerate", "ending", "at"), [
    (0, Ending.CRASHED, 3), (1, Ending.CRASH_LOOPING, 8), (2, Ending.CRASH_LOOPING, 13),
    (3, Ending.REACHED, 18),
])  # fmt: skip
def test_tolerated_crashes_do_not_end_the_wait(tolerate: int, ending: Ending, at: float) -> None:
    plot: Plot = []
    for number in (1, 2, 3):
        plot += [(5.0 * number - 4, start(number)), (5.0 * number - 2, death(number))]
    plot += [(16, start(4)), (18, ready(4))]
    decision = Stage(plot, terms=Terms(tolerate=tolerate)).run()
    assert decision.ending is ending
    assert at <= decision.waited_s < at + 1


def test_a_tolerated_crash_that_nothing_follows_is_a_crash_after_the_stall_time() -> None:
    decision = Stage([(1, start()), (3, death())], terms=Terms(tolerate=3)).run()
    assert decision.ending is Ending.CRASHED
    assert 300 <= decision.waited_s < 305


@pytest.mark.parametrize(("until", "at"), [
    ("loading", 1), ("ready", 9), ("stopped", 30),
])  # fmt: skip
def test_another_goal(until: str, at: float) -> None:
    plot: Plot = [(1, start()), (9, ready()), (30, stop())]
    decision = Stage(plot, terms=Terms(until=State(until))).run()
    assert decision.ending is Ending.REACHED
    assert at <= decision.waited_s < at + 1.5


def test_compiling_may_be_silent_for_long_and_loading_may_not() -> None:
    compiling = lines(
        "(EngineCore pid=101) INFO 01-02 03:01:09 [backends.py:548] Using cache directory: "
        "/root/.cache/vllm/torch_compile_cache/ab/rank_0_0/backbone for vLLM's torch.compile"
    )
    plot: Plot = [(1, start()), (5, compiling), (2200, ready())]
    assert Stage(plot, terms=Terms(timeout=7200)).run().ending is Ending.REACHED
    hung: Plot = [(1, start()), (5, shards(3)), (2200, ready())]
    assert Stage(hung, terms=Terms(timeout=7200)).run().ending is Ending.STALLED


def test_the_stall_time_is_the_users() -> None:
    stage = Stage([(1, start()), (5, shards(3))], policy=Policy(stall_after=20))
    decision = stage.run()
    assert decision.ending is Ending.STALLED
    assert 25 <= decision.waited_s < 26


def test_lines_of_a_server_that_nobody_knows() -> None:
    def patterns() -> LinePatterns:
        return LinePatterns(re.compile(r"all \w+ warm"), re.compile("giving up"))

    warm = [(1, b"booting\n"), (4, b"all coils wa"), (5, b"rm\n")]
    decision = Stage(warm, patterns=patterns()).run()
    assert decision.ending is Ending.REACHED
    assert decision.seen.log.hit is not None
    assert (decision.seen.log.hit.line, decision.seen.log.hit.text) == (2, "all coils warm")
    failed = Stage([(1, b"booting\n"), (4, b"giving up\n")], patterns=patterns()).run()
    assert failed.ending is Ending.CRASHED
    # What failed before the call is history; what was ready before it still is.
    old = Stage([(0, b"giving up\n"), (4, b"all coils warm\n")], patterns=patterns()).run()
    assert old.ending is Ending.REACHED


def test_an_unknown_log_that_no_longer_grows_is_stalled() -> None:
    assert Stage([(1, b"booting\n"), (9, b"more\n")]).run().ending is Ending.STALLED


def test_the_end_of_a_pipe_decides_or_leaves_it_undecided() -> None:
    def piped(*plot: tuple[float, bytes]) -> Ending:
        return Stage(list(plot), ends=True, history=False).run().ending

    assert piped((0, start()), (1, ready())) is Ending.REACHED
    assert piped((0, start()), (1, death())) is Ending.CRASHED
    assert piped((0, start()), (1, shards(4))) is Ending.UNDECIDED
    assert piped((0, b"hello\n")) is Ending.UNDECIDED


# -- words


def test_the_last_words_name_time_phases_cause_and_what_decided() -> None:
    stage = Stage([(1, start()), (5, shards(3)), (300, death())])
    decision = stage.run()
    told = list(closing_lines(decision, stage.log, "server.log", painter(False), None))
    assert told[0].startswith("server.log: vLLM 0.12.0: crashed in load-weights")
    assert "decided by log" in told[1]
    assert any("cause (line 8, gpu-out-of-memory, certain): torch.Out" in line for line in told)
    document = wait_object(decision, stage.log, 1)
    assert (document["ending"], document["exit_code"]) == ("crashed", 1)


def test_ready_tells_how_long_the_phases_took_though_the_log_has_no_times() -> None:
    def bare(data: bytes) -> bytes:
        return data.replace(b" INFO 01-02 03:01:05 [core.py:58] ", b" ")

    plot: Plot = [(1, bare(start())), (15, shards(3)), (120, shards(64)), (373, bare(ready()))]
    stage = Stage(plot, terms=Terms(settle=20))
    words = headline(stage.run(), stage.log)
    assert words.startswith("ready after 6 min 12 s: ")
    assert "load-weights 6 min 12 s" in words


def test_hostile_log_text_is_shown_not_obeyed() -> None:
    stage = Stage([(1, start()), (3, death(1, "ValueError: \x1b[2J\x1b]0;owned\x07"))])
    decision = stage.run()
    told = "\n".join(closing_lines(decision, stage.log, "a\x1b[2Jb.log", painter(False), None))
    assert "\x1b" not in told
    said: list[str] = []
    plain = Plain(said.append)
    for status in stage.audience.shown:
        plain.show(status)
    assert said
    assert "\x1b" not in "".join(said)


def test_plain_lines_come_at_changes_and_once_a_minute() -> None:
    stage = Stage([(1, start()), (3, shards(3)), (200, ready())])
    stage.run()
    said: list[str] = []
    plain = Plain(said.append)
    for status in stage.audience.shown:
        plain.show(status)
    assert len(said) == len(set(said))
    loading = [line for line in said if "load-weights 3/64" in line]
    assert 3 <= len(loading) <= 5
    assert len(said) <= 9


def test_the_eta_comes_from_earlier_starts() -> None:
    first = start(1) + ready(3) + stop(3)
    plot: Plot = [(0, first), (5, start(7)), (20, shards(9)), (150, ready(9))]
    stage = Stage(plot)
    assert stage.run().ending is Ending.REACHED
    told = [s for s in stage.audience.shown if s.left_from == "by earlier starts"]
    assert told
    assert told[0].left_s == pytest.approx(120, abs=1)
    assert told[0].attempt == 2
