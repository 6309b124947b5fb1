"""Many sources at once, against real files, with file events and without."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from watch_stage import (
    add,
    bar,
    death,
    inspected,
    noise,
    reading,
    ready,
    start,
    until,
    watching,
)

from loopdetect.follow.source import PACE, Followed
from loopdetect.follow.tail import Tail
from loopdetect.model import State

BOTH = pytest.mark.parametrize("events", [True, False], ids=["file-events", "polling"])


@BOTH
def test_a_loop_is_told_from_its_start_to_its_recovery(events: bool, tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    with watching(log, events=events) as (watcher, heard, _):
        for attempt in range(3):
            add(log, start(60 * attempt, pid=attempt + 1) + death(60 * attempt + 20))
            until(watcher, lambda n=attempt: heard.said().count("crash") == n + 1)  # type: ignore[misc]
        add(log, start(300, pid=9) + ready(360))
        until(watcher, lambda: "recovery" in heard.said())
    assert heard.said() == [
        "appeared", "start", "crash", "restart", "crash", "crash-loop", "restart", "crash",
        "restart", "ready", "recovery",
    ]  # fmt: skip


@BOTH
def test_what_stood_there_is_summed_up_once(events: bool, tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_bytes(start() + death(20) + start(60, pid=2) + death(80))
    with watching(log, events=events) as (watcher, heard, _):
        assert heard.said() == ["state"]
        assert [event.what.value for event in heard.events if event.alarm] == ["crash-loop"]
        add(log, start(120, pid=3))
        until(watcher, lambda: len(heard.said()) > 1)
    assert heard.said() == ["state", "restart"]


@BOTH
def test_a_rotation_in_the_middle_of_a_run_changes_nothing(events: bool, tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    parts = [start(), noise(1), noise(2), death(30), start(60, pid=2), death(90)]
    with watching(log, events=events) as (watcher, _, __):
        for number, part in enumerate(parts):
            add(log, part)
            if number % 2:
                log.rename(tmp_path / f"server.log.{number}")
            until(watcher, lambda: bytes_read(watcher.sources[str(log)]) > 0)
        log.touch()
        whole = b"".join(parts)
        until(watcher, lambda: bytes_read(watcher.sources[str(log)]) == len(whole))
        until(watcher, lambda: not watcher.sources[str(log)].dirty)
        assert watcher.sources[str(log)].reports == inspected(whole, str(log))


@BOTH
def test_a_link_that_is_swapped_is_followed(events: bool, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "one").write_bytes(start())
    link = tmp_path / "server.log"
    link.symlink_to(elsewhere / "one")
    with watching(link, events=events) as (watcher, heard, _):
        add(elsewhere / "one", death(20))
        until(watcher, lambda: "crash" in heard.said())
        (elsewhere / "two").write_bytes(start(60, pid=2))
        (tmp_path / "new").symlink_to(elsewhere / "two")
        os.replace(tmp_path / "new", link)
        until(watcher, lambda: "restart" in heard.said())
        add(elsewhere / "two", death(80))
        until(watcher, lambda: "crash-loop" in heard.said())
    assert heard.said() == ["state", "crash", "rotated", "restart", "crash", "crash-loop"]


@BOTH
def test_a_folder_that_is_made_anew_is_watched_again(events: bool, tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    log = folder / "server.log"
    log.write_bytes(start())
    with watching(log, events=events) as (watcher, heard, _):
        shutil.rmtree(folder)
        until(watcher, lambda: "gone" in heard.said())
        folder.mkdir()
        log.write_bytes(start(60, pid=2))
        until(watcher, lambda: "restart" in heard.said())
        add(log, death(80))
        until(watcher, lambda: "crash" in heard.said())


@BOTH
@pytest.mark.parametrize("argument", ["logs", "logs/*.log"], ids=["folder", "glob"])
def test_a_new_file_is_found_and_a_rotated_one_is_not_new(
    argument: str, events: bool, tmp_path: Path
) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    (folder / "a.log").write_bytes(start())
    with watching(tmp_path / argument, events=events) as (watcher, heard, _):
        (folder / "a.log").rename(folder / "a-old.log")
        (folder / "a.log").write_bytes(noise(1))
        (folder / "b.log").write_bytes(start(pid=7) + death(9))
        until(watcher, lambda: "crash" in heard.said())
        until(watcher, lambda: "rotated" in heard.said())
        watcher.step(0.0)
        assert sorted(Path(name).name for name in watcher.sources) == ["a.log", "b.log"]


def test_files_that_are_no_logs_are_set_aside_and_said_once(tmp_path: Path) -> None:
    (tmp_path / "model.bin").write_bytes(b"GGUF" + bytes(2000))
    (tmp_path / "server.log").write_bytes(start())
    with watching(tmp_path) as (watcher, heard, _):
        add(tmp_path / "model.bin", bytes(1000))
        until(watcher, lambda: "unreadable" in heard.said())
        for _ in range(3):
            watcher.step(0.0)
    assert heard.said().count("unreadable") == 1
    assert [event.text for event in heard.events if event.what.value == "unreadable"] == [
        "this is model weights, not a log; it is not followed"
    ]


def test_a_thousand_quiet_files_are_not_read_and_not_judged(tmp_path: Path) -> None:
    for number in range(1000):
        (tmp_path / f"{number}.log").write_bytes(start() + ready(30))
    with watching(tmp_path, events=False) as (watcher, _, __):
        before = (watcher.work.reads, judgements(watcher.sources.values()))
        looks = watcher.work.looks
        for _ in range(5):
            watcher._next_sweep = 0.0
            watcher.step(0.0)
            while watcher._hungry:  # a busy machine does not get round in one step
                watcher.step(0.0)
        assert watcher.work.looks - looks >= 5000
        assert (watcher.work.reads, judgements(watcher.sources.values())) == before


def test_a_bar_that_refreshes_all_the_time_is_thinned(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_bytes(start())
    with watching(log) as (watcher, heard, _):
        began = time.monotonic()
        for done in range(400):
            add(log, bar(done, 400))
            watcher.step(0.0)
        add(log, bar(400, 400) + b"\n")
        until(watcher, lambda: any("400/400" in event.text for event in heard.events))
        followed = watcher.sources[str(log)]
        assert heard.said().count("progress") <= 5
        assert followed.judgements <= 10 + (time.monotonic() - began) / PACE


def test_a_silent_start_is_found_to_stall_and_to_go_on(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_bytes(start() + bar(3) + b"\n")
    clock = Clock()
    followed = Followed.new(str(log), reading(), Tail(str(log)), live=False)
    followed.read(clock.now, clock.now, 1 << 18)
    said = [event.what.value for event in followed.judge(clock.now)]
    while "stall" not in said:
        wait = followed.due(clock.now)
        assert wait is not None
        clock.now += max(wait, 0.1)
        assert clock.now < 1e9 + 1000
        said += [event.what.value for event in followed.judge(clock.now) if not event.alarm]
    assert clock.now - 1e9 == pytest.approx(300, abs=61)
    assert followed.reports[0].verdict.state is State.STALLED
    add(log, bar(4) + b"\n")
    clock.now += 1
    followed.read(clock.now, clock.now, 1 << 18)
    said += [event.what.value for event in followed.judge(clock.now) if not event.alarm]
    assert said[-1] == "recovery"


def test_profiles_that_are_read_anew_hold_from_the_next_line_on(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_bytes(start() + noise(1))
    with watching(log) as (watcher, heard, _):
        again = reading()
        watcher.reload(replace(again, policy=replace(again.policy, loop_after=5)))
        for attempt in range(2):
            add(log, death(20 + 60 * attempt) + start(60 + 60 * attempt, pid=2 + attempt))
            until(watcher, lambda n=attempt: heard.said().count("restart") == n + 1)  # type: ignore[misc]
        until(watcher, lambda: not watcher.sources[str(log)].dirty)
        assert "crash-loop" not in heard.said()
        assert watcher.sources[str(log)].reports[0].verdict.restarts == 2


class Clock:
    now = 1e9


def bytes_read(followed: Followed) -> int:
    return followed.reports[0].bytes if followed.reports else 0


def judgements(sources: object) -> int:
    return sum(followed.judgements for followed in sources)  # type: ignore[attr-defined]


# -- any interleaving of writers and rotations

LINES = st.sampled_from(
    [start(0), noise(1), noise(2), death(40), start(60, pid=2), ready(90), start(120, pid=3)]
)
ROTATIONS = ("rename", "copytruncate", "delete", "atomic", "truncate", "touch")
STEPS = st.lists(
    st.one_of(st.tuples(st.just("write"), LINES), st.tuples(st.sampled_from(ROTATIONS), LINES)),
    max_size=25,
)


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(steps=STEPS, look=st.lists(st.booleans(), min_size=25, max_size=25))
def test_watching_ends_where_inspecting_all_that_was_written_ends(
    steps: list[tuple[str, bytes]], look: list[bool], tmp_path_factory: pytest.TempPathFactory
) -> None:
    log = tmp_path_factory.mktemp("any") / "server.log"
    written = bytearray()
    log.write_bytes(b"")
    followed = Followed.new(str(log), reading(), Tail(str(log)), live=True)
    clock = Clock()
    poll(followed, clock)
    for number, (what, line) in enumerate(steps):
        if what == "write":
            data = line + noise(number, number)
            add(log, data)
            written += data
        else:
            # Nobody can read what is not there any more, nor know a copy of what was never read.
            if what in ("delete", "truncate") or not log.stat().st_size or not read_of(followed):
                poll(followed, clock)
            DOES[what](log, number)
            poll(followed, clock)
        if look[number]:
            poll(followed, clock)
    poll(followed, clock)
    followed.judge(clock.now)
    assert followed.reports == inspected(bytes(written), str(log))


def read_of(followed: Followed) -> int:
    assert isinstance(followed.origin, Tail)
    return followed.origin.current.offset if followed.origin.current else 0


def poll(followed: Followed, clock: Clock) -> None:
    clock.now += 0.2
    while followed.read(clock.now, clock.now, 1 << 18):
        pass


def rename(log: Path, number: int) -> None:
    log.rename(log.with_name(f"server.log.{number}"))
    log.touch()


def copytruncate(log: Path, number: int) -> None:
    shutil.copyfile(log, log.with_name(f"server.log.{number}"))
    os.truncate(log, 0)


def delete(log: Path, number: int) -> None:
    log.unlink()
    log.touch()


def atomic(log: Path, number: int) -> None:
    other = log.with_name("new")
    other.write_bytes(b"")
    os.replace(other, log)


DOES: dict[str, Callable[[Path, int], None]] = {
    "rename": rename,
    "copytruncate": copytruncate,
    "delete": delete,
    "atomic": atomic,
    "truncate": lambda log, number: os.truncate(log, 0),
    "touch": lambda log, number: os.utime(log),
}
