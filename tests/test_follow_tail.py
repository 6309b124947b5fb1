"""One file through all that can happen to it: no byte is lost, none is read twice."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from watch_stage import wait_for

from loopdetect.follow.tail import LINGER, Tail


@dataclass
class Stage:
    """A log, its writer, and the tail that follows it; every written line is remembered."""

    path: Path
    handle: int = -1
    written: bytes = b""
    got: bytes = b""
    now: float = 100.0
    asleep: bool = False
    tail: Tail = field(init=False)

    def __post_init__(self) -> None:
        self.tail = Tail(str(self.path))

    def open(self) -> None:
        self.handle = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def write(self, text: str, handle: int | None = None) -> None:
        data = f"{text} {len(self.written):06}\n".encode()
        self.written += data
        os.write(self.handle if handle is None else handle, data)

    def poll(self) -> None:
        if self.asleep:
            return
        self.now += 0.1
        self.got += self.tail.poll(self.now)
        while self.tail.more:
            self.got += self.tail.poll(self.now)

    def happened(self) -> list[str]:
        return [happening.what for happening in self.tail.happenings]


def append(stage: Stage) -> None:
    for number in range(20):
        stage.write(f"new {number}")
        if number % 3 == 0:
            stage.poll()


def rename_create_late_writes(stage: Stage) -> None:
    old = stage.handle
    stage.path.rename(stage.path.with_suffix(".log.1"))
    stage.write("late", old)
    stage.open()
    stage.poll()
    stage.write("later", old)
    stage.poll()
    stage.write("fresh")


def rename_create_later(stage: Stage) -> None:
    stage.path.rename(stage.path.with_suffix(".log.1"))
    stage.write("still the old one")
    stage.poll()
    stage.write("and again")
    stage.open()
    stage.poll()
    stage.write("fresh")


def copytruncate(stage: Stage) -> None:
    stage.write("before the copy")
    shutil.copyfile(stage.path, stage.path.with_suffix(".log.1"))
    os.truncate(stage.path, 0)
    stage.poll()
    stage.write("after it")


def copytruncate_regrown(stage: Stage) -> None:
    stage.poll()
    shutil.copyfile(stage.path, stage.path.with_suffix(".log.1"))
    os.truncate(stage.path, 0)
    for number in range(60):
        stage.write(f"regrown {number}")


def clock_ticks(stage: Stage) -> None:
    """Wait until the file system's clock has moved on; its ticks are a few milliseconds."""
    other = stage.path.with_name("tick")
    wait_for(
        lambda: (
            other.write_bytes(b"") == 0 and other.stat().st_mtime_ns > stage.path.stat().st_mtime_ns
        )
    )


def truncate_same_size(stage: Stage) -> None:
    stage.poll()
    clock_ticks(stage)
    size = stage.path.stat().st_size
    os.truncate(stage.path, 0)
    text = "x" * (size - 8)
    stage.write(text)
    assert stage.path.stat().st_size == size


def delete_recreate(stage: Stage) -> None:
    stage.path.unlink()
    stage.open()
    stage.write("in a new file")


def delete_recreate_later(stage: Stage) -> None:
    stage.path.unlink()
    stage.write("into the file without a name")
    stage.poll()
    stage.open()
    stage.write("in a new file")


def symlink_swapped(stage: Stage) -> None:
    other = stage.path.with_name("other")
    link = stage.path.with_name("link")
    other.touch()
    link.symlink_to(other)
    os.replace(link, stage.path)
    stage.open()
    stage.write("behind the link")


def replaced_by_rename(stage: Stage) -> None:
    other = stage.path.with_name("new")
    other.write_bytes(b"")
    handle = os.open(other, os.O_WRONLY | os.O_APPEND)
    stage.write("written before the move", handle)
    os.replace(other, stage.path)
    stage.poll()
    stage.write("and after it", handle)


def folder_moved_and_made_anew(stage: Stage) -> None:
    old = stage.handle
    folder = stage.path.parent
    folder.rename(folder.with_name("moved"))
    stage.write("into the moved folder", old)
    stage.poll()
    folder.mkdir()
    stage.open()
    stage.write("into the new folder")


CASES: list[Callable[[Stage], None]] = [
    append,
    rename_create_late_writes,
    rename_create_later,
    copytruncate,
    copytruncate_regrown,
    truncate_same_size,
    delete_recreate,
    delete_recreate_later,
    symlink_swapped,
    replaced_by_rename,
    folder_moved_and_made_anew,
]


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    (tmp_path / "logs").mkdir()
    made = Stage(tmp_path / "logs" / "server.log")
    made.open()
    for number in range(30):
        made.write(f"line {number}")
    made.poll()
    return made


@pytest.mark.parametrize("happens", CASES, ids=lambda case: case.__name__)
def test_nothing_is_lost_and_nothing_read_twice(
    happens: Callable[[Stage], None], stage: Stage
) -> None:
    happens(stage)
    stage.poll()
    stage.write("the last line")
    stage.poll()
    assert stage.got == stage.written


def test_a_rotation_is_told_once_and_the_old_file_is_let_go(stage: Stage) -> None:
    rename_create_late_writes(stage)
    stage.poll()
    assert stage.happened() == ["rotated"]
    assert stage.tail.waiting
    stage.now += LINGER
    stage.poll()
    assert not stage.tail.waiting
    assert stage.got == stage.written


def test_a_file_that_comes_later_is_read_from_its_start(tmp_path: Path) -> None:
    stage = Stage(tmp_path / "logs" / "server.log")
    stage.poll()
    assert stage.tail.missing
    stage.path.parent.mkdir()
    stage.open()
    stage.write("first")
    stage.poll()
    assert stage.got == stage.written
    assert stage.happened() == ["appeared"]


def test_a_hole_of_nuls_after_a_truncation_is_left_out(stage: Stage) -> None:
    stage.got = stage.written = b""
    offset = stage.path.stat().st_size
    os.truncate(stage.path, 0)
    handle = os.open(stage.path, os.O_WRONLY)
    os.pwrite(handle, b"the writer kept its offset\n", offset)
    stage.poll()
    os.pwrite(handle, b"and goes on\n", offset + 27)
    stage.poll()
    assert stage.got == b"the writer kept its offset\nand goes on\n"


def test_an_unfinished_line_waits_and_is_given_once_nobody_adds_to_it(stage: Stage) -> None:
    stage.poll()
    stage.got = b""
    os.write(stage.handle, b"half a li")
    stage.poll()
    assert stage.got == b""
    assert stage.tail.rest(stage.now + 0.1, quiet=0.5) == b""
    assert stage.tail.rest(stage.now + 0.6, quiet=0.5) == b"half a li"
    os.write(stage.handle, b"ne\nnext\n")
    stage.poll()
    assert stage.got == b"ne\nnext\n"


def test_a_bar_is_given_refresh_by_refresh(stage: Stage) -> None:
    stage.got = b""
    os.write(stage.handle, b"\r1/3\r2/3")
    stage.poll()
    os.write(stage.handle, b"\r3/3\n")
    stage.poll()
    assert stage.got == b"\r1/3\r2/3\r3/3\n"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission_is_told_once_and_read_when_it_can_be(tmp_path: Path) -> None:
    stage = Stage(tmp_path / "server.log")
    stage.open()
    stage.write("secret")
    stage.path.chmod(0)
    stage.poll()
    stage.poll()
    assert stage.happened() == ["unreadable"]
    stage.path.chmod(0o600)
    stage.poll()
    assert stage.got == stage.written
    assert stage.happened() == ["unreadable", "appeared"]


def test_a_folder_in_the_files_place_is_told_once(stage: Stage) -> None:
    stage.path.unlink()
    stage.path.mkdir()
    stage.poll()
    stage.poll()
    assert stage.happened() == ["unreadable"]
    stage.path.rmdir()
    stage.open()
    stage.write("back")
    stage.poll()
    assert stage.got == stage.written


def test_a_quiet_file_costs_one_look_and_no_reading(stage: Stage) -> None:
    stage.poll()
    before = (stage.tail.work.looks, stage.tail.work.reads)
    for _ in range(50):
        stage.poll()
    assert (stage.tail.work.looks - before[0], stage.tail.work.reads - before[1]) == (50, 0)


def test_a_touch_is_no_truncation(stage: Stage) -> None:
    os.utime(stage.path)
    stage.poll()
    assert stage.got == stage.written
    assert stage.happened() == []


@pytest.mark.parametrize(
    "meanwhile",
    [append, rename_create_late_writes, copytruncate, delete_recreate, truncate_same_size],
    ids=lambda case: case.__name__,
)
def test_a_later_tail_goes_on_where_the_first_one_stood(
    meanwhile: Callable[[Stage], None], stage: Stage
) -> None:
    mark = stage.tail.mark()
    assert mark is not None
    stage.asleep = True
    meanwhile(stage)
    later = Tail(str(stage.path))
    rest = later.resume(mark) + later.poll(200.1)
    if meanwhile is delete_recreate:  # what nobody kept can't be had
        assert rest == stage.written[len(stage.got) :]
    else:
        assert stage.got + rest == stage.written


def test_an_older_copy_is_not_taken_for_the_rest(stage: Stage) -> None:
    copy = stage.path.with_suffix(".log.1")
    copy.write_bytes(stage.written + b"of another day\n")
    stage.write("one more")
    stage.poll()
    os.truncate(stage.path, 0)
    stage.poll()
    stage.write("after the truncation")
    stage.poll()
    assert stage.got == stage.written
