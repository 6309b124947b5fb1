"""Following one log: growth, truncation, replacement, late arrival, and what is no log."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest

from loopdetect.errors import SourceError
from loopdetect.live.tail import FileTail, PipeTail, Tail, Turn, open_tail


def drain(tail: Tail) -> tuple[bytes, list[Turn]]:
    """Return what there is to read now, and what happened to the file."""
    data, turns = b"", []
    while True:
        look = tail.look()
        data += look.data
        if look.turn is not None:
            turns.append(look.turn)
        if not look.more:
            return data, turns


def test_a_log_that_comes_late_is_read_from_its_beginning(tmp_path: Path) -> None:
    path = tmp_path / "late.log"
    tail = FileTail(str(path))
    assert not tail.look().exists
    path.write_bytes(b"one\n")
    assert drain(tail) == (b"one\n", [Turn.APPEARED])
    with path.open("ab") as file:
        file.write(b"two\n")
    assert drain(tail) == (b"two\n", [])


def test_truncation_by_a_restart_is_seen_and_nothing_is_read_twice(tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    path.write_bytes(b"first life\n" * 3)
    tail = FileTail(str(path))
    drain(tail)
    path.write_bytes(b"second\n")
    assert drain(tail) == (b"second\n", [Turn.TRUNCATED])
    assert drain(tail) == (b"", [])


def test_truncation_is_seen_even_when_the_new_text_is_longer(tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    path.write_bytes(b"first life\n")
    tail = FileTail(str(path))
    drain(tail)
    inode = path.stat().st_ino
    path.write_bytes(b"second life, which says much more\n")
    assert path.stat().st_ino == inode
    assert drain(tail) == (b"second life, which says much more\n", [Turn.TRUNCATED])


def test_truncation_is_seen_even_when_the_new_text_ends_in_the_same_words(tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    same = b" of a server that dies of the same cause each time\n" * 9
    path.write_bytes(b"life 1" + same)
    tail = FileTail(str(path))
    drain(tail)
    path.write_bytes(b"life 2" + same)
    assert drain(tail) == (b"life 2" + same, [Turn.TRUNCATED])


def test_rotation_reads_the_old_file_to_its_end_first(tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    path.write_bytes(b"one\n")
    tail = FileTail(str(path))
    drain(tail)
    with path.open("ab") as file:
        file.write(b"last words\n")
    path.rename(tmp_path / "server.log.1")
    assert drain(tail) == (b"last words\n", [])
    assert drain(tail) == (b"", [Turn.VANISHED])
    path.write_bytes(b"new\n")
    assert drain(tail) == (b"new\n", [Turn.REPLACED])


def test_a_hole_left_by_a_truncation_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    path.write_bytes(b"\0" * 5000 + b"text\n")
    assert drain(FileTail(str(path))) == (b"text\n", [Turn.APPEARED])


def test_what_is_there_already_can_be_left_out(tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    path.write_bytes(b"old\n")
    tail = FileTail(str(path), skip_present=True)
    assert drain(tail)[0] == b""
    with path.open("ab") as file:
        file.write(b"new\n")
    assert drain(tail) == (b"new\n", [])


def test_a_late_log_is_not_left_out(tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    tail = FileTail(str(path), skip_present=True)
    tail.look()
    path.write_bytes(b"new\n")
    assert drain(tail)[0] == b"new\n"


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (gzip.compress(b"text\n"), "gzip"),
        (b"\x7fELF" + b"\0" * 600, "a program"),
        (bytes(range(256)) * 8, "binary"),
    ],
    ids=["gzip", "program", "noise"],
)
def test_what_is_no_log_is_refused(data: bytes, words: str, tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(data)
    with pytest.raises(SourceError, match=words):
        drain(FileTail(str(path)))


def test_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="folder"):
        drain(open_tail(str(tmp_path)))


def test_a_pipe_gives_what_it_holds_and_its_end() -> None:
    read, write = os.pipe()
    tail = PipeTail(read)
    tail._patient = False
    try:
        assert tail.look().data == b""
        os.write(write, b"text\n")
        assert tail.look().data == b"text\n"
        os.close(write)
        assert tail.look().ended
        assert tail.look().ended
    finally:
        os.close(read)


def test_a_named_pipe_waits_for_its_writer(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    tail = open_tail(str(path))
    assert not tail.look().ended
    write = os.open(path, os.O_WRONLY)
    os.write(write, b"text\n")
    assert tail.look().data == b"text\n"
    os.close(write)
    assert tail.look().ended
