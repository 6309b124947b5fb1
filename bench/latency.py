"""From a write to the printed event, and what waiting costs; `tail -F` beside it.

    python bench/latency.py            for 1, 100 and 1,000 files
"""

from __future__ import annotations

import os
import random
import select
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import psutil

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
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


def of(count: int, folder: Path) -> None:
    """Measure that many files, and print a row for each program."""
    logs = [folder / f"{number}.log" for number in range(count)]
    for log in logs:
        log.write_bytes(start() + ready(30))
    rows: dict[str, tuple[list[str], Callable[[Path, int], None]]] = {
        "watch": (
            [*COMMAND, "--format", "jsonl", str(folder)],
            lambda log, number: add(log, start(60 * (number + 1), pid=1000 + number)),
        ),
        "watch --poll": (
            [*COMMAND, "--format", "jsonl", "--poll", str(folder)],
            lambda log, number: add(log, start(60 * (number + 200), pid=3000 + number)),
        ),
        "tail -F": (
            [shutil.which("tail") or "tail", "-n0", "-q", "-F", *map(str, logs)],
            lambda log, number: add(log, noise(number)),
        ),
    }
    if count < 1000:
        del rows["watch --poll"]
    for name, (command, write) in rows.items():
        waits, idle, memory = measured(command, logs, write, quiet_after=2.0)
        median, p99 = statistics.median(waits), waits[int(0.99 * len(waits)) - 1]
        print(  # noqa: T201
            f"{name:<13} {count:>5} files  median {median:7.1f} ms  p99 {p99:7.1f} ms  "
            f"idle {idle:5.2f} % of a core  {memory:6.1f} MiB"
        )


if __name__ == "__main__":
    for number_of_files in (1, 100, 1000):
        with tempfile.TemporaryDirectory() as scratch:
            of(number_of_files, Path(scratch))
