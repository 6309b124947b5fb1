"""From a write to the printed event, and what waiting costs; `tail -F` beside it."""

from __future__ import annotations

import os
import random
import select
import shutil
import statistics
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from watch_stage import COMMAND, add, noise, ready, start

WRITES = 50
IDLE = 5.0


def line_of(process: subprocess.Popen[bytes], seconds: float = 10.0) -> bytes:
    """Return the next line that the process prints."""
    assert process.stdout is not None
    can, _, _ = select.select([process.stdout], [], [], seconds)
    assert can, "nothing was printed"
    return os.read(process.stdout.fileno(), 1 << 16)


def measured(
    command: list[str], logs: list[Path], write: Callable[[Path, int], None], quiet_after: float
) -> tuple[list[float], float, float]:
    """Return latencies in ms, idle CPU in percent of a core, resident memory in MiB."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert process.stdout is not None
    try:
        while select.select([process.stdout], [], [], quiet_after)[0]:
            os.read(process.stdout.fileno(), 1 << 16)
        seen = psutil.Process(process.pid)
        before = sum(seen.cpu_times()[:2])
        began = time.monotonic()
        while time.monotonic() - began < IDLE:
            select.select([process.stdout], [], [], 0.5)
        idle = 100 * (sum(seen.cpu_times()[:2]) - before) / (time.monotonic() - began)
        chance = random.Random(1)
        waits = []
        for number in range(WRITES):
            log = chance.choice(logs)
            select.select([], [], [], 0.12)
            at = time.perf_counter()
            write(log, number)
            line_of(process)
            waits.append(1000 * (time.perf_counter() - at))
        return sorted(waits), idle, seen.memory_info().rss / 2**20
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


@pytest.mark.bench
@pytest.mark.parametrize("count", [1, 100, 1000])
def test_the_time_from_a_write_to_its_event(count: int, tmp_path: Path) -> None:
    logs = [tmp_path / f"{number}.log" for number in range(count)]
    for log in logs:
        log.write_bytes(start() + ready(30))
    tail = shutil.which("tail")
    rows = {
        "watch": (
            [*COMMAND, "--format", "jsonl", str(tmp_path)],
            lambda log, number: add(log, start(60 * (number + 1), pid=1000 + number)),
        ),
        "watch --poll": (
            [*COMMAND, "--format", "jsonl", "--poll", str(tmp_path)],
            lambda log, number: add(log, start(60 * (number + 200), pid=3000 + number)),
        ),
        "tail -F": (
            [tail or "tail", "-n0", "-q", "-F", *map(str, logs)],
            lambda log, number: add(log, noise(number)),
        ),
    }
    if count < 1000:
        del rows["watch --poll"]
    for name, (command, write) in rows.items():
        waits, idle, memory = measured(command, logs, write, quiet_after=2.0)
        median, p99 = statistics.median(waits), waits[int(0.99 * len(waits)) - 1]
        print(
            f"{name:<13} {count:>5} files  median {median:7.1f} ms  p99 {p99:7.1f} ms  "
            f"idle {idle:5.2f} % of a core  {memory:6.1f} MiB"
        )
        if name == "watch":
            assert median < 100
            assert idle < 5
