from __future__ import annotations

import random

import pytest
from test_arguments import LLAMA, TGI, VLLM

from loopdetect import notable as module
from loopdetect.notable import ErrorLine, Notable

LOG = "\r\n".join(
    (
        VLLM,
        "INFO 03-01 10:00:01 nothing here",
        "  5%|5         | 1/20\r100%|##########| 20/20\rERROR 03-01 10:00:02 disk broke",
        "ERROR 03-01 10:00:03 [a.py:1] Traceback (most recent call last):",
        'ERROR 03-01 10:00:03 [a.py:1]   File "x.py", line 3, in y',
        "ERROR 03-01 10:00:03 [a.py:1] ValueError: 12 is too many",
        "pod-1 | ERROR 03-01 10:00:04 [a.py:1] ValueError: 13 is too many",
        TGI.replace("\n", "\r\n"),
        LLAMA,
        "ERROR 03-01 10:00:05 [a.py:1] ValueError: 14 is too many",
        "",
    )
).encode()


def read(*chunks: bytes) -> Notable:
    found = Notable()
    for chunk in chunks:
        found.feed(chunk)
    found.finish()
    return found


@pytest.mark.parametrize(
    "line",
    ["ERROR 03-01 10:00:00 [x.py:1] engine died", "ValueError: no", "torch.OutOfMemoryError: CUDA",
     "panic: runtime error", "error: unrecognized arguments: --x", "E0301 10:00:00.1 1 server.cc:1] x",
     "failed to load model", "Killed", "[E1120 10:03:02 x.cpp:1] watchdog: exception: CUDA",
     "bind: address refused", "level=FATAL msg=x", "cannot open '/m/a'", "Aborted (core dumped)"],
)  # fmt: skip
def test_lines_like_errors(line: str) -> None:
    assert [item.text for item in read(f"{line}\n".encode()).errors(1, 1)] == [line]


@pytest.mark.parametrize(
    "line",
    ["INFO all fine", "0 errors, 0 failures", "finished without errors", "error=null",
     'File "x.py", line 1, in raise_error', "    raise ValueError(", "mirror terrors",
     "ERROR 03-01 10:00:03 [a.py:1]     raise ValueError(", "--log-level error-only",
     "ERROR 03-01 10:00:03 [a.py:1]        ^^^^^^", "import torch.errors",
     "ERROR 03-01 10:00:03 [a.py:1] Traceback (most recent call last):", VLLM],
)  # fmt: skip
def test_lines_not_like_errors(line: str) -> None:
    assert read(f"{line}\n".encode()).errors(1, 1) == []


def test_errors_are_counted_by_shape_and_found_by_run() -> None:
    found = read(LOG)
    assert [(item.line, item.count) for item in found.errors(1, 100)] == [(3, 1), (6, 3)]
    (late,) = found.errors(8, 100)
    assert late == ErrorLine(
        16, "ERROR 03-01 10:00:05 [a.py:1] ValueError: 14 is too many", 1, late.shape
    )
    assert found.errors(8, 15) == []


def test_a_line_in_the_middle_of_many_is_shown_by_its_shape() -> None:
    found = read(b"".join(b"ValueError: take %d\n" % number for number in range(1, 9)))
    assert found.errors(3, 5) == [ErrorLine(3, "ValueError: take <n>", 3, "ValueError: take <n>")]


def test_a_stream_sees_its_own_errors() -> None:
    log = b"api-1  | ValueError: in a\nweb-2  | ValueError: in b\n"
    found = read(log)
    assert [item.text for item in found.errors(1, 9, "api-1")] == ["ValueError: in a"]
    assert len(found.errors(1, 9, None)) == 2
    assert len(found.errors(1, 9, "never-seen")) == 2


@pytest.mark.parametrize(
    ("lines", "gib"),
    [
        (["[2026-03-01 10:00:00 TP0] Load weight begin. avail mem=78.58 GB",
          "[2026-03-01 10:00:00 TP1] Load weight begin. avail mem=12.08 GB"], 12.08),
        (["INFO 03-01 10:00:00 [gpu_worker.py:1] Available KV cache memory: -0.53 GiB"], -0.53),
        (["llama_model_load_from_file_impl: using device CUDA0 (NVIDIA X (Y)) - 2048 MiB free"], 2),
        (["0.00.1 I cmn  common_param:   - CUDA0   : NVIDIA RTX (19983 MiB, 1024 MiB free)"], 1),
        (["Load weight end. avail mem=1.00 GB", "4096 MiB free of disk"], None),
    ],
    ids=["sglang", "vllm", "llama-cpp", "llama-cpp-new", "other"],
)  # fmt: skip
def test_free_memory_is_that_of_the_fullest_device(lines: list[str], gib: float | None) -> None:
    assert read("\n".join(lines).encode() + b"\n").free_memory(1, 9) == gib


def test_dumps_are_found_by_run() -> None:
    found = read(LOG)
    assert [dump.line for dump in found.dumps(1, 100, None)] == [1, 8, 15]
    assert [dump.line for dump in found.dumps(2, 14, None)] == [8]
    assert '"org/model"' in found.dumps(8, 8, None)[0].text


@pytest.mark.parametrize("seed", range(20))
def test_any_chunking_finds_the_same(seed: int) -> None:
    rng = random.Random(seed)
    cuts = sorted(rng.randrange(len(LOG) + 1) for _ in range(rng.randrange(1, 40)))
    chunks = [LOG[a:b] for a, b in zip([0, *cuts], [*cuts, len(LOG)], strict=True)]
    whole, parts = read(LOG), read(*chunks)
    assert parts.errors(1, 100) == whole.errors(1, 100)
    assert parts.dumps(1, 100, None) == whole.dumps(1, 100, None)


def test_lines_are_counted_through_the_files_of_a_history() -> None:
    found = Notable()
    for file in (b"one\nValueError: a", b"ValueError: b\n", b"ValueError: c"):
        found.next_file()
        found.feed(file)
    found.finish()
    assert [item.line for item in found.errors(1, 9)] == [2, 3, 4]


def bar(done: int, seconds: int, total: int = 64) -> bytes:
    share = f"{100 * done // total:3d}%|###       | {done}/{total}"
    return f"\rLoading shards: {share} [00:{seconds:02d}<00:05,  1.20it/s]".encode()


def bar_log(*states: tuple[int, int]) -> bytes:
    return b"".join(bar(*state) for state in states) + b"\n"


def test_a_bar_is_kept_as_points() -> None:
    log = b"INFO start\n" + bar_log((0, 0), (16, 4), (16, 5), (64, 9)) + b"ValueError: x\n"
    log += bar_log((0, 0), (32, 30))
    for chunks in ([log], [log[at : at + 1] for at in range(len(log))]):
        found = Notable(bars=True)
        for chunk in chunks:
            found.feed(chunk)
        found.finish()
        assert found.bars
        assert found.bars.within("Loading shards", 1, 2) == ((0, 0), (4, 16), (9, 64))
        assert found.bars.within("Loading shards", 3, 9) == ((0, 0), (30, 32))
        assert found.bars.within("shards", 1, 1) == ()
        assert found.bars.within("other", 1, 9) == ()
        assert [item.line for item in found.errors(1, 9)] == [3]


def test_points_are_thinned_and_old_series_forgotten() -> None:
    states = [(done, done // 20) for done in range(1000)]
    log = b"".join(bar(done, seconds, 1000) for done, seconds in states) + b"\n"
    found = Notable(bars=True)
    found.feed(log * 200)
    found.finish()
    assert found.bars
    points = found.bars.within("Loading shards", 200, 200)
    assert 20 <= len(points) <= 65
    assert (points[0], points[-1]) == ((0, 0), (49, 999))
    assert found.bars.within("Loading shards", 1, 100) == ()


def test_bars_are_not_looked_for_unasked() -> None:
    assert read(bar_log((0, 0), (64, 9))).bars is None


def test_a_dump_split_by_a_container_runtime_is_joined() -> None:
    cut = VLLM.index("8192") + 2
    stamp = "2026-03-01T10:00:00.000000000Z stdout"
    log = f"{stamp} P {VLLM[:cut]}\n{stamp} F {VLLM[cut:]}\n".encode()
    (dump,) = read(log).dumps(1, 9, None)
    assert dump.text.endswith("'max_model_len': 8192}")


def test_memory_stays_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_SHAPES", 50)
    monkeypatch.setattr(module, "MAX_PLACES", 500)
    letters = [chr(97 + n % 26) * (1 + n // 26) for n in range(200)]
    log = "".join(f"ValueError: {word}\n" for word in letters * 20).encode()
    found = read(log)
    assert len(found.errors(1, 10_000)) == 50
    assert sum(item.count for item in found.errors(1, 10_000)) == 500
    assert found.overflowed


def test_a_dump_that_never_ends_is_given_up() -> None:
    log = b"non-default args: {'a': 1,\n" + b"'b': 2,\n" * 5000 + b"ValueError: seen\n"
    found = read(log)
    assert [item.text for item in found.errors(1, 9999)] == ["ValueError: seen"]
    assert len(found.dumps(1, 9999, None)[0].text) < 10_000


def test_many_dumps_keep_the_first_and_the_last() -> None:
    found = read(f"{VLLM}\n".encode() * 1000)
    lines = [dump.line for dump in found.dumps(1, 1000, None)]
    assert lines == [*range(1, 21), *range(801, 1001)]


def test_a_line_of_megabytes_and_broken_bytes_are_taken() -> None:
    found = read(b"ERROR \xff\xfe " + b"x" * 3_000_000 + b"\nValueError: after\n")
    assert [item.line for item in found.errors(1, 9)] == [1, 2]
    assert all(len(item.text) <= 600 for item in found.errors(1, 9))
