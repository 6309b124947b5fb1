"""The small parts of following: frozen states, arguments, mounts, patience, the bell, lines."""

from __future__ import annotations

import os
import pickle
import time
from dataclasses import replace
from pathlib import Path

import pytest
from report_samples import CRASH_LOOP, READY, SHARDS, make_report, make_run
from watch_stage import bar, death, noise, reading, ready, start, wait_for

from loopdetect.core.detector import Detector
from loopdetect.follow.bell import Bell, ReaderGone
from loopdetect.follow.freeze import Unusable, freeze, member, thaw
from loopdetect.follow.happened import Happened, What
from loopdetect.follow.lines import json_line, text_line
from loopdetect.follow.mounts import mount_table, silent_type
from loopdetect.follow.patience import Advance, log_time, next_look
from loopdetect.follow.pipe import Pipe
from loopdetect.follow.rotated import base_name, stem
from loopdetect.follow.targets import sort_out
from loopdetect.follow.wake import How, Watches
from loopdetect.model import Outcome, Phase, Policy, State

FIXTURES = sorted((Path(__file__).parent.parent / "fixtures").glob("*/*.log"))
POLICY = Policy()


# -- frozen states


def detector(source: str = "-") -> Detector:
    return Detector(reading().library, POLICY, source=source)


@pytest.mark.parametrize("log", FIXTURES[::7], ids=lambda path: path.stem)
def test_a_thawed_detector_goes_on_as_if_nothing_had_been(log: Path) -> None:
    data = log.read_bytes()
    whole = detector()
    whole.feed(data)
    parts = detector()
    middle = len(data) // 2
    parts.feed(data[:middle])
    later = thaw(freeze(parts), reading().library, POLICY, "-")
    later.feed(data[middle:])
    assert later.finish() == whole.finish()


def test_a_state_is_small_and_holds_no_rules() -> None:
    made = detector()
    for at in range(0, 500, 100):
        made.feed(start(at) + death(at + 30))
    made.feed(start(560))
    for number in range(20_000):
        made.feed(noise(number))
    assert len(freeze(made)) < 120_000


class Evil:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.system, ("true",)


@pytest.mark.parametrize(
    "data",
    [
        pickle.dumps(Evil()),
        b"cloopdetect.core.detector\ncopy.deepcopy\n.",
        b"cloopdetect.core.detector\nreplace\n.",
        pickle.dumps({"a": 1}),
        b"",
        b"nonsense",
    ],
    ids=["call", "dotted", "function", "other", "empty", "nonsense"],
)
def test_only_states_are_loaded(data: bytes) -> None:
    with pytest.raises(Unusable):
        thaw(data, reading().library, POLICY, "-")


# -- arguments


def test_arguments_are_told_apart(tmp_path: Path) -> None:
    (tmp_path / "odd[1].log").touch()
    targets = sort_out(
        [str(tmp_path), "a.log", "*.log", "-", str(tmp_path / "odd[1].log"), "a.log"]
    )
    assert targets.folders == (str(tmp_path),)
    assert targets.paths == ("a.log", str(tmp_path / "odd[1].log"))
    assert targets.globs == ("*.log",)
    assert targets.stdin


def test_a_folder_gives_its_logs_without_packed_hidden_and_rotated_ones(tmp_path: Path) -> None:
    for name in (
        "a.log", "a.log.1", "a.log.2.gz", "a.log-20260301", ".hidden", "b.1", "rank-1.log",
    ):  # fmt: skip
        (tmp_path / name).touch()
    (tmp_path / "inner").mkdir()
    found = [Path(name).name for name in sort_out([str(tmp_path)]).found()]
    assert found == ["a.log", "b.1", "rank-1.log"]


@pytest.mark.parametrize(
    ("name", "base"),
    [
        ("server.log.1", "server.log"),
        ("server.log.2.gz", "server.log"),
        ("server.log-20260301", "server.log"),
        ("server.log.2026-03-01", "server.log"),
        ("server.log.old", "server.log"),
        ("server.log", None),
        ("vllm-0.log", None),
    ],
)
def test_the_name_of_a_rotated_file_gives_the_logs_name(name: str, base: str | None) -> None:
    assert base_name(name) == base


def test_rotated_copies_share_a_stem() -> None:
    assert {stem(name) for name in ("server.log", "server.log.1", "server.log-20260301.gz")} == {
        "server"
    }


# -- mounts

MOUNTINFO = """\
22 1 254:0 / / rw,relatime - ext4 /dev/vda rw
30 22 0:40 / /mnt/my\\040share rw - nfs4 host:/x rw
31 22 0:41 / /mnt rw shared:1 - tmpfs tmpfs rw
32 22 0:42 / /data rw - fuse.sshfs host: rw
bad line
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/mnt/my share/logs", "nfs4"),
        ("/mnt/other", None),
        ("/data/x", "fuse.sshfs"),
        ("/var/log", None),
        ("/database", None),
    ],
)
def test_file_systems_without_events_are_known(path: str, kind: str | None) -> None:
    assert silent_type(path, mount_table(MOUNTINFO)) == kind


def test_the_reason_why_events_do_not_work_is_said_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    said: list[str] = []
    bell = Bell()
    watches = Watches(bell, said.append)
    watches.start()

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    watches.cover([str(tmp_path)])
    monkeypatch.setattr(watches._observers[How.EVENTS], "schedule", full)
    later, last = tmp_path / "later", tmp_path / "last"
    later.mkdir()
    last.mkdir()
    folders = [str(tmp_path), str(later), str(last)]
    for _ in range(2):
        watches.cover(folders)
    assert len(said) == 1
    assert "max_user_watches" in said[0]
    assert watches.working
    assert not watches.listening
    assert set(watches._watched) == {(folder, How.POLLING) for folder in folders}
    assert set(watches._observers) == {How.POLLING}
    watches.stop()
    bell.close()


def test_a_folder_where_events_may_not_arrive_is_polled_too(tmp_path: Path) -> None:
    bell = Bell()
    watches = Watches(bell, pytest.fail)
    watches.start()
    quiet, loud = tmp_path / "share", tmp_path / "disk"
    for folder in (quiet, loud):
        folder.mkdir()
    watches.cover([str(quiet), str(loud)], {str(quiet)})
    assert watches.listening
    assert set(watches._watched) == {
        (str(quiet), How.EVENTS),
        (str(quiet), How.POLLING),
        (str(loud), How.EVENTS),
    }
    watches._forget((str(quiet), How.EVENTS))
    (quiet / "x.log").write_text("here\n")
    told: set[str] = set()
    end = time.monotonic() + 20.0
    while str(quiet / "x.log") not in told and time.monotonic() < end:
        told |= bell.wait(0.1)
    assert str(quiet / "x.log") in told
    watches.stop()
    bell.close()


# -- patience

LOADING = make_report(
    State.LOADING,
    (make_run(1, outcome=Outcome.LOADING, cause=None, phase=Phase.LOAD_WEIGHTS),),
    cause=None,
    phase=Phase.LOAD_WEIGHTS,
)


def test_only_what_can_stall_is_looked_at_again() -> None:
    assert next_look([CRASH_LOOP], POLICY, 0.0) is None
    assert next_look([READY], POLICY, 0.0) == POLICY.stall_after
    assert next_look([READY], POLICY, POLICY.stall_after) is None
    assert next_look([LOADING], POLICY, 10.0) == 50.0


def test_a_day_of_silence_costs_few_looks() -> None:
    silent, looks = 0.0, 0
    while silent < 86_400:
        silent += next_look([LOADING], POLICY, silent) or 86_400
        looks += 1
    assert looks < 120


def test_a_log_without_times_stalls_by_the_watchers_clock() -> None:
    bare = replace(LOADING, clock=None)
    advance = Advance()
    assert advance.judged(bare, POLICY, 1000.0) is bare
    assert advance.judged(bare, POLICY, 1299.0) is bare
    stalled = advance.judged(bare, POLICY, 1301.0)
    assert stalled.verdict.state is State.STALLED
    assert "5 min 1 s" in stalled.verdict.summary
    further = replace(bare, runs=(replace(bare.runs[0], progress=(replace(SHARDS, done=64),)),))
    assert advance.judged(further, POLICY, 1302.0) is further


def test_a_log_with_times_is_left_to_the_core() -> None:
    advance = Advance()
    advance.judged(LOADING, POLICY, 0.0)
    assert advance.judged(LOADING, POLICY, 9999.0) is LOADING


def test_the_time_of_the_last_line_is_on_the_logs_clock() -> None:
    assert log_time([LOADING]) == 1772359200.0 + 530.0
    assert log_time([replace(LOADING, clock="uptime")]) is None


# -- waking


def test_the_bell_gives_the_paths_once() -> None:
    bell = Bell()
    bell.ring("/a")
    bell.ring("/b")
    assert bell.wait(5.0) == {"/a", "/b"}
    assert bell.wait(0.0) == set()
    bell.close()


def test_the_bell_tells_that_the_reader_has_gone() -> None:
    reader, writer = os.pipe()
    bell = Bell()
    bell.mind(writer)
    bell.wait(0.0)
    os.close(reader)
    with pytest.raises(ReaderGone):
        bell.wait(5.0)
    os.close(writer)
    bell.close()


def test_a_pipe_gives_whole_lines_and_its_rest_at_the_end() -> None:
    reader, writer = os.pipe()
    rung: list[None] = []
    pipe = Pipe(lambda: rung.append(None), reader)
    pipe.start()
    os.write(writer, b"one\ntwo")
    wait_for(lambda: rung)
    assert pipe.take(1.0) == (b"one\n", False)
    assert pipe.take(1.2) == (b"", False)
    assert pipe.take(1.9) == (b"two", False)
    os.write(writer, b"more")
    os.close(writer)
    wait_for(lambda: pipe._ended)
    assert pipe.take(2.0) == (b"more", True)
    os.close(reader)


# -- lines

EVENT = Happened(
    id="k-1", at=0.0, source="/logs/\x1b[31mserver.log", stream=None, what=What.CRASH,
    text="died\u202e: " + "x" * 400, state=State.CRASHED, phase=Phase.CONFIG, line=7,
)  # fmt: skip


def test_a_line_is_one_line_that_is_safe_and_fits() -> None:
    line = text_line(EVENT, width=100, clock=lambda at: "10:00:00")
    assert line.startswith("10:00:00  /logs/\\x1b[31mserver.log  crash       died\\u202e: xx")
    assert line.endswith("(line 7)")
    assert len(line) <= 100


def test_a_json_line_is_one_line_of_ascii_where_text_is_hostile() -> None:
    line = json_line(EVENT)
    assert "\n" not in line
    assert "\u202e" not in line
    assert '"event": "crash"' in line


def test_the_samples_of_the_stage_are_what_they_say() -> None:
    made = detector()
    made.feed(start() + bar(3) + b"\n" + ready(30))
    assert made.finish()[0].verdict.state is State.READY


def test_only_members_of_enums_are_looked_up_by_name() -> None:
    assert member(Phase, "BIND") is Phase.BIND
    for kind, name in [(Phase, "mro"), (os, "system"), ("text", "join")]:
        with pytest.raises(Unusable):
            member(kind, name)
