from __future__ import annotations

import bz2
import gzip
import lzma
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from loopdetect.errors import SourceError
from loopdetect.source.archive import PIECE
from loopdetect.source.files import CHUNK, CutShort, open_source

LOG = b"".join(b"INFO line %d of a log that is long enough\n" % n for n in range(40_000))

COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "xz": lzma.compress,
    "bzip2": bz2.compress,
    "zstd": zstandard.ZstdCompressor(write_checksum=True).compress,
}


def write(folder: Path, data: bytes, name: str = "server.log") -> str:
    path = folder / name
    path.write_bytes(data)
    return str(path)


def read(name: str) -> bytes:
    return b"".join(open_source(name))


def collect(name: str) -> tuple[bytes, SourceError | None]:
    got = b""
    try:
        for chunk in open_source(name):
            got += chunk
    except SourceError as problem:
        return got, problem
    return got, None


@pytest.mark.parametrize("data", [b"", b"x", b"\n", b"\x1f", b"BZ", b"PK", LOG], ids=len)
def test_a_plain_file_comes_as_it_is(data: bytes, tmp_path: Path) -> None:
    assert read(write(tmp_path, data)) == data


def test_chunks_are_bounded_and_reported(tmp_path: Path) -> None:
    seen: list[int] = []
    chunks = list(open_source(write(tmp_path, LOG), seen.append))
    assert max(map(len, chunks)) <= CHUNK
    assert sum(seen) == len(LOG)


@pytest.mark.parametrize("form", COMPRESS)
def test_a_compressed_file_is_known_by_its_bytes_and_unpacked(form: str, tmp_path: Path) -> None:
    assert read(write(tmp_path, COMPRESS[form](LOG), "any.name")) == LOG


@pytest.mark.parametrize("form", COMPRESS)
def test_an_empty_compressed_file_is_an_empty_log(form: str, tmp_path: Path) -> None:
    assert read(write(tmp_path, COMPRESS[form](b""))) == b""


@pytest.mark.parametrize("form", COMPRESS)
def test_appended_archives_are_read_as_one(form: str, tmp_path: Path) -> None:
    both = COMPRESS[form](b"first\n") + COMPRESS[form](LOG)
    assert read(write(tmp_path, both)) == b"first\n" + LOG


@pytest.mark.parametrize("form", COMPRESS)
def test_an_archive_padded_with_zeros_is_whole(form: str, tmp_path: Path) -> None:
    assert read(write(tmp_path, COMPRESS[form](LOG) + bytes(512))) == LOG


@pytest.mark.parametrize("form", ["gzip", "zstd"])
def test_a_truncated_archive_gives_what_it_holds_and_then_the_problem(
    form: str, tmp_path: Path
) -> None:
    packed = COMPRESS[form](os.urandom(300_000).hex().encode() + b"\n")
    got, problem = collect(write(tmp_path, packed[: len(packed) // 2]))
    assert isinstance(problem, CutShort)
    assert "ends too soon" in str(problem)
    assert len(got) > 100_000


@pytest.mark.parametrize("form", COMPRESS)
def test_a_truncated_archive_is_never_taken_for_a_whole_one(form: str, tmp_path: Path) -> None:
    packed = COMPRESS[form](LOG)
    for length in (8, len(packed) // 2, len(packed) - 1):
        got, problem = collect(write(tmp_path, packed[:length]))
        assert problem is not None, length
        assert LOG.startswith(got)


@pytest.mark.parametrize("form", COMPRESS)
def test_a_damaged_archive_is_a_problem_and_no_crash(form: str, tmp_path: Path) -> None:
    packed = bytearray(COMPRESS[form](LOG))
    packed[len(packed) // 2 : len(packed) // 2 + 40] = b"\xff" * 40
    _, problem = collect(write(tmp_path, bytes(packed)))
    assert problem is not None
    assert problem.hint


def test_text_appended_to_an_archive_is_told(tmp_path: Path) -> None:
    got, problem = collect(write(tmp_path, gzip.compress(LOG) + b"plain text\n"))
    assert got == LOG
    assert "not compressed follows" in str(problem)


@pytest.mark.parametrize("form", COMPRESS)
def test_an_archive_that_grows_a_thousandfold_comes_in_bounded_pieces(
    form: str, tmp_path: Path
) -> None:
    name = write(tmp_path, COMPRESS[form](b"a" * 50_000_000))
    total = largest = 0
    for chunk in open_source(name):
        total += len(chunk)
        largest = max(largest, len(chunk))
    assert total == 50_000_000
    assert largest <= (40_000_000 if form == "zstd" else PIECE)


BINARY = {
    "zip": b"PK\x03\x04" + os.urandom(600),
    "tar": b"a.log".ljust(257, b"\0") + b"ustar\x0000" + bytes(300),
    "journal": b"LPKSHHRH" + bytes(600),
    "weights": b"GGUF\x03\0\0\0",
    "elf": b"\x7fELF\x02\x01\x01",
    "nul-rich": b"a\0b\0c\0" * 300,
    "controls": bytes(range(1, 256)) * 10,
}


@pytest.mark.parametrize("kind", BINARY)
def test_what_is_no_log_is_refused_with_a_hint(kind: str, tmp_path: Path) -> None:
    name = write(tmp_path, BINARY[kind])
    got, problem = collect(name)
    assert got == b""
    assert problem is not None
    assert not isinstance(problem, CutShort)
    assert str(problem).startswith(f"{name}: this is ")
    assert problem.hint


def test_a_packed_tar_is_refused_too(tmp_path: Path) -> None:
    _, problem = collect(write(tmp_path, gzip.compress(BINARY["tar"]), "logs.tar.gz"))
    assert "tar archive" in str(problem)


@pytest.mark.parametrize(
    "data",
    [
        "ÄÖÜ 日本 🙂 \x1b[32mok\x1b[0m\r\n".encode() * 50,
        b"caf\xe9 latin-1\n" * 60,
        b"100%|##| 1/1\x08\x08\x08\r" * 60,
        b"one \0 nul\n" * 60 + b"INFO more text without any\n" * 60,
    ],
    ids=["utf8-ansi", "latin1", "backspaces", "a-few-nuls"],
)
def test_odd_logs_are_still_logs(data: bytes, tmp_path: Path) -> None:
    assert read(write(tmp_path, data)) == data


@pytest.mark.parametrize("hole", [10, CHUNK, 3 * CHUNK + 5])
def test_the_hole_at_the_head_of_a_truncated_log_is_left_out(hole: int, tmp_path: Path) -> None:
    assert read(write(tmp_path, bytes(hole) + LOG)) == LOG


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf16_with_a_mark_is_read_as_utf8(encoding: str, tmp_path: Path) -> None:
    text = "INFO größer 日本 🙂\r\n" * 30_000
    assert read(write(tmp_path, ("\ufeff" + text).encode(encoding))) == text.encode()


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda folder: folder / "missing.log", "no such file"),
        (lambda folder: folder, "this is a folder"),
        (lambda folder: Path(write(folder, b"x")) / "deeper", "no such file"),
        (lambda folder: folder / ("x" * 300), "too long"),
    ],
    ids=["missing", "folder", "below-a-file", "long-name"],
)
def test_what_cannot_be_opened_is_said_with_a_hint(
    make: Callable[[Path], Path], words: str, tmp_path: Path
) -> None:
    name = str(make(tmp_path))
    _, problem = collect(name)
    assert words in str(problem)
    assert str(problem).startswith(name)
    assert problem is not None
    assert problem.hint


def test_no_permission_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)
    _, problem = collect(str(tmp_path / "a.log"))
    assert "no permission" in str(problem)


def test_a_read_error_half_way_keeps_what_was_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = write(tmp_path, LOG)
    real, calls = os.read, iter([True, False])

    def fail_second(handle: int, size: int) -> bytes:
        if next(calls):
            return real(handle, size)
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "read", fail_second)
    got, problem = collect(name)
    assert got == LOG[:CHUNK]
    assert isinstance(problem, CutShort)


def test_a_fifo_that_closes_is_just_an_end(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    writer = threading.Thread(target=fifo.write_bytes, args=(LOG,))
    writer.start()
    assert read(str(fifo)) == LOG
    writer.join(timeout=10)
    assert not writer.is_alive()


READ_STDIN = (
    "import sys; from loopdetect.source.files import open_source\n"
    "for chunk in open_source('-'): sys.stdout.buffer.write(chunk); sys.stdout.flush()"
)


@pytest.mark.parametrize("pack", [bytes, gzip.compress, lzma.compress], ids=["plain", "gz", "xz"])
def test_standard_input_is_unpacked_too(pack: Callable[[bytes], bytes]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", READ_STDIN], input=pack(LOG), capture_output=True, check=True
    )
    assert done.stdout == LOG


def test_a_pipe_gives_what_is_there_before_it_closes() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", READ_STDIN], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as reader:
        assert reader.stdin is not None
        assert reader.stdout is not None
        reader.stdin.write(b"first line\n")
        reader.stdin.flush()
        assert reader.stdout.readline() == b"first line\n"
        reader.stdin.close()
        assert reader.wait(timeout=10) == 0


def test_a_closed_standard_input_is_said() -> None:
    done = subprocess.run(
        ["sh", "-c", 'exec "$0" -c "$1" <&-', sys.executable, READ_STDIN],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "there is no standard input" in done.stderr
