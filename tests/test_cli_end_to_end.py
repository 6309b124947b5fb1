"""The command as a user runs it, on a log made here."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

COMMAND = [sys.executable, "-m", "loopdetect", "inspect"]
START = "INFO 03-01 10:0{n}:00 [api_server.py:10] vLLM API server version 0.10.1"
DEATH = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
ATTEMPT = (
    START + "\n"
    "Traceback (most recent call last):\n"
    '  File "worker.py", line 1, in load\n' + DEATH + "\n"
)
LOG = "".join(ATTEMPT.replace("{n}", str(number)) for number in range(3)).encode()


def run(*arguments: str, **options: Any) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([*COMMAND, *arguments], capture_output=True, check=False, **options)


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
def test_standard_input_gives_the_same_report_as_the_file(packed: bool, tmp_path: Path) -> None:
    data = gzip.compress(LOG) if packed else LOG
    path = tmp_path / "server.log"
    path.write_bytes(data)
    piped = json.loads(run("--format", "json", "-", input=data).stdout)["reports"]
    read = json.loads(run("--format", "json", str(path)).stdout)["reports"]
    assert [report.pop("source") for report in piped + read] == ["-", str(path)]
    assert piped == read
    assert (piped[0]["lines"], piped[0]["bytes"]) == (LOG.count(b"\n"), len(LOG))


def test_the_crash_loop_is_found_and_fails_the_job() -> None:
    done = run("--fail-on", "crash-looping", "--format", "json", "-", input=LOG)
    verdict = json.loads(done.stdout)["reports"][0]["verdict"]
    assert (verdict["state"], verdict["restarts"]) == ("crash-looping", 2)
    assert DEATH in verdict["cause"]["text"]
    assert done.returncode == 1


def test_the_text_has_no_escape_codes_in_a_pipe() -> None:
    done = run("-", input=LOG.replace(b"GiB.", b"GiB. \x1b[2J\x1b]0;owned\x07"))
    assert done.returncode == 0
    assert b"\x1b" not in done.stdout + done.stderr


@pytest.mark.parametrize("form", ["text", "json", "jsonl", "markdown"])
def test_random_bytes_never_crash_it(form: str) -> None:
    done = run("--format", form, "-", input=os.urandom(400) + b"\n" + LOG)
    assert done.returncode in (0, 2)
    assert b"Traceback" not in done.stderr


def test_ctrl_c_while_it_reads_is_130_without_a_word() -> None:
    with subprocess.Popen(
        [*COMMAND, "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        # More than a pipe holds: once all of it is written, the command has begun to read.
        process.stdin.write(b"INFO some line of a log\n" * 20_000)
        process.stdin.flush()
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=20)
    assert (process.returncode, err) == (130, b"")


LOOK = b"Loading safetensors checkpoint shards: 100% Completed | 64/64 [00:14<00:00,  4.57it/s]\n"


@pytest.mark.parametrize(
    ("option", "state"),
    [([], "loading"), (["--as", "transcript"], "crash-looping"), (["--as", "log"], "loading")],
)
def test_the_user_says_that_it_is_a_transcript(option: list[str], state: str) -> None:
    done = run("--format", "json", *option, "-", input=(LOOK + b"\n") * 3)
    assert json.loads(done.stdout)["reports"][0]["verdict"]["state"] == state
