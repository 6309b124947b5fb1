from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path

import pytest

LINES = 1_000_000


@pytest.mark.bench
def test_a_million_healthy_lines(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    with log.open("w") as file:
        file.write("INFO 03-01 10:00:00 [api_server.py:10] vLLM API server version 0.10.1\n")
        for number in range(LINES):
            port = 30000 + number % 30000
            file.write(f'INFO:     10.0.0.1:{port} - "POST /v1/completions HTTP/1.1" 200 OK\n')
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-m", "loopdetect", "inspect", "-q", str(log)], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(f"{LINES / spent:,.0f} lines/s, {log.stat().st_size / spent / 1e6:.0f} MB/s of CPU time")
    print(f"peak memory: {after.ru_maxrss / 1024:.0f} MiB")
    assert spent < 20
    assert after.ru_maxrss < 200 * 1024
