"""`loopdetect watch` as a user runs it: processes, signals, pipes, files that are made and lost."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import random
import re
import signal
import socket
import sqlite3
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from watch_stage import (
    COMMAND,
    add,
    bar,
    death,
    noise,
    ready,
    start,
    started,
    wait_for,
)


def run(*arguments: str | Path, data: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [*COMMAND, *map(str, arguments)], input=data, capture_output=True, timeout=30, check=False
    )


def events(path: Path) -> list[dict[str, object]]:
    """The events in an output file; a line that is being written is not one yet."""
    whole = path.read_bytes().rpartition(b"\n")[0] if path.exists() else b""
    return [json.loads(line) for line in whole.splitlines()]


def words(path: Path) -> list[object]:
    return [event["event"] for event in events(path)]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "server.log"
    path.write_bytes(start())
    return path


def test_once_prints_a_table_with_the_worst_first(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_bytes(start() + ready(30))
    (tmp_path / "b.log").write_bytes(start() + death(30))
    done = run("--once", tmp_path / "a.log", tmp_path / "b.log")
    lines = done.stdout.decode().splitlines()
    assert done.returncode == 0
    assert re.split(r" {2,}", lines[0])[0] == "source"
    assert [line.split()[0] for line in lines[1:]] == ["b.log", "a.log"]
    assert "gpu-out-of-memory" in lines[1]


def test_once_as_jsonl_is_what_inspect_prints(log: Path) -> None:
    add(log, death(20) + b"an unfinished line")
    once = run("--once", "--format", "jsonl", log)
    inspect = subprocess.run(
        [*COMMAND[:-1], "inspect", "--format", "jsonl", str(log)], capture_output=True, check=True
    )
    assert json.loads(once.stdout) == json.loads(inspect.stdout)


def test_once_reads_standard_input_to_its_end() -> None:
    done = run("--once", "-", data=start() + death(20))
    assert b"crashed" in done.stdout
    assert done.returncode == 0


def test_once_says_which_file_is_missing(tmp_path: Path) -> None:
    done = run("--once", tmp_path / "no.log", tmp_path / "*.none")
    assert done.returncode == 2
    assert done.stderr.count(b"\n") == 2
    assert b"no.log: no such file" in done.stderr


def test_a_pipe_is_followed_and_its_end_is_an_event() -> None:
    done = run("--format", "jsonl", "-", data=start() + bar(3) + b"\n" + death(30))
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0
    assert [event["event"] for event in told][-1] == "end"
    assert {"start", "crash"} <= {event["event"] for event in told}
    assert told[-1]["text"] == "the input has ended: crashed"


def test_the_keys_of_an_event_are_stable(log: Path) -> None:
    done = run("--format", "jsonl", "-", data=start())
    assert list(json.loads(done.stdout.splitlines()[0])) == [
        "id", "at", "source", "stream", "event", "text", "state", "phase", "run", "line", "reason",
    ]  # fmt: skip


def test_hostile_text_reaches_no_terminal(tmp_path: Path) -> None:
    data = start() + death(20).replace(b"GiB.", b"GiB. \x1b[2J\x1b]0;owned\x07 \xe2\x80\xae")
    for form in ("text", "jsonl"):
        done = run("--format", form, "-", data=data)
        assert b"\x1b" not in done.stdout
        assert "\u202e".encode() not in done.stdout
        assert done.returncode == 0


def test_two_watchers_do_not_share_a_state_folder(log: Path, tmp_path: Path) -> None:
    with started("--state-dir", tmp_path / "state", log, "-o", tmp_path / "out"):
        wait_for((tmp_path / "out").exists)
        done = run("--state-dir", tmp_path / "state", log)
    assert done.returncode == 2
    assert done.stderr.count(b"\n") == 1
    assert b"another loopdetect watch" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--webhook", "ftp://example.test/x"], b"no URL"),
        (["--metrics", "nowhere"], b"no address"),
        (["--metrics-file", "/no/such/folder/x.prom", "--state-dir", "/proc/nowhere"], b"/proc"),
        (["--format", "table", "-o", "x"], b"terminal"),
        (["--settle", "soon"], b"duration"),
    ],
    ids=["webhook", "metrics", "state-dir", "table", "settle"],
)
def test_bad_options_give_one_line_and_exit_2(arguments: list[str], said: bytes, log: Path) -> None:
    done = run(*arguments, log)
    assert done.returncode == 2
    assert said in done.stderr
    assert b"Traceback" not in done.stderr
    assert done.stdout == b""


# -- signals


def test_sigterm_tells_what_is_left_and_keeps_it(log: Path, tmp_path: Path) -> None:
    out, state = tmp_path / "out", tmp_path / "state"
    arguments = ("--format", "jsonl", "-o", out, "--state-dir", state, log)
    with started(*arguments) as process:
        wait_for(lambda: words(out) == ["state"])
        add(log, death(20))
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 143
        assert process.stderr is not None
        assert process.stderr.read() == b""
    assert words(out) == ["state", "crash"]
    with started(*arguments) as process:
        add(log, start(60, pid=2))
        wait_for(lambda: "restart" in words(out))
        process.send_signal(signal.SIGINT)
        assert process.wait(10) == 130
    assert words(out) == ["state", "crash", "restart"]


def test_sighup_reads_profiles_anew_and_a_broken_one_changes_nothing(
    log: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    profile = tmp_path / "mine.toml"
    profile.write_text(PROFILE.format(word="boom-one"))
    options = ("--format", "jsonl", "-o", out, "--profile", profile, tmp_path / "mine.log")
    (tmp_path / "mine.log").write_bytes(b"my server 1.0 begins\n")
    with started(*options) as process:
        wait_for(lambda: words(out) == ["state"])
        profile.write_text("this is = not [ toml")
        process.send_signal(signal.SIGHUP)
        assert process.stderr is not None
        os.set_blocking(process.stderr.fileno(), False)
        said = bytearray()
        wait_for(lambda: said.extend(process.stderr.read() or b"") or b"\n" in said)  # type: ignore[union-attr]
        assert b"after SIGHUP" in said
        assert said.count(b"\n") == 1
        profile.write_text(PROFILE.format(word="boom-two"))
        process.send_signal(signal.SIGHUP)
        add(tmp_path / "mine.log", b"boom-one\n")
        wait_for(lambda: crash_of(out, process, tmp_path / "mine.log"))
    assert [event["line"] for event in events(out) if event["event"] == "crash"] != [2]


def crash_of(out: Path, process: subprocess.Popen[bytes], log: Path) -> bool:
    """Write the new profile's word until the watcher knows it."""
    if "crash" not in words(out):
        add(log, b"boom-two\n")
    return "crash" in words(out)


PROFILE = """
name = "mine"
title = "Mine"

[[identify]]
id = "name"
literal = "my server"
weight = 100
samples = ["my server 1.0 begins"]

[[start]]
id = "begins"
literal = "my server"
samples = ["my server 1.0 begins"]

[[failure]]
id = "boom"
reason = "unknown"
fatal = true
literal = "{word}"
summary = "It blew up."
samples = ["{word}"]
not_samples = ["quiet"]
"""


# -- the reader of the output


def test_it_ends_quietly_when_the_reader_goes(log: Path) -> None:
    with started("--format", "jsonl", log) as process:
        assert process.stdout is not None
        assert b'"state"' in process.stdout.readline()
        process.stdout.close()
        assert process.wait(10) == 141
        assert process.stderr is not None
        assert process.stderr.read() == b""


def test_what_the_reader_could_not_get_is_told_to_the_next(log: Path, tmp_path: Path) -> None:
    options = ("--format", "jsonl", "--state-dir", tmp_path / "state", log)
    with started(*options) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.stdout.close()
        process.wait(10)
    add(log, death(20))
    with started(*options) as process:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["event"] == "crash"


# -- state that outlives a kill


def test_a_killed_watcher_loses_no_event_and_tells_none_twice(log: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    arguments = ("--format", "jsonl", "-o", out, "--state-dir", tmp_path / "state", log)
    with started(*arguments) as process:
        wait_for(lambda: words(out) == ["state"])
        process.kill()
    chance = random.Random(7)
    ended = 0
    for _ in range(int(os.environ.get("KILLS", "6"))):
        with started(*arguments) as process:
            until = time.monotonic() + chance.uniform(0.2, 0.9)
            while time.monotonic() < until:
                ended += 1
                add(log, death(60 * ended - 30))
                add(log, start(60 * ended, pid=100 + ended) + noise(ended))
                if ended % 7 == 0:
                    log.rename(tmp_path / f"server.log.{ended}")
                    log.touch()
                time.sleep(chance.uniform(0.0, 0.06))
            process.kill()
    with started(*arguments):
        wait_for(lambda: words(out).count("crash") >= ended, "the last crash", 20)
        wait_for(lambda: words(out).count("restart") >= ended, "the last restart")
    told = events(out)
    assert len({event["id"] for event in told}) == len(told)
    runs = {what: [e["run"] for e in told if e["event"] == what] for what in ("crash", "restart")}
    assert runs["crash"] == list(range(1, ended + 1))
    assert runs["restart"] == list(range(2, ended + 2))
    assert words(out).count("crash-loop") == 1


def test_a_state_that_cannot_be_kept_is_said_once_and_the_watching_goes_on(
    log: Path, tmp_path: Path
) -> None:
    state, out = tmp_path / "state", tmp_path / "out"
    with started("--format", "jsonl", "-o", out, "--state-dir", state, log) as process:
        wait_for(lambda: words(out) == ["state"])
        other = sqlite3.connect(state / "watch.sqlite3", isolation_level=None)
        other.execute("DROP TABLE memory")
        other.close()
        for attempt in range(3):
            add(log, death(20 + 60 * attempt) + start(60 + 60 * attempt, pid=2 + attempt))
            wait_for(lambda n=attempt: words(out).count("restart") == n + 1)  # type: ignore[misc]
        process.terminate()
        assert process.wait(10) == 143
        assert process.stderr is not None
        assert process.stderr.read().count(b"--state-dir") == 1


# -- acting


def test_the_command_is_run_with_the_report_and_the_facts(log: Path, tmp_path: Path) -> None:
    script = tmp_path / "act.sh"
    script.write_text(
        f'#!/bin/sh\ncat > "{tmp_path}/report.json"\n'
        f'echo "$WATCH_EVENT $WATCH_STATE $WATCH_REASON $WATCH_RESTARTS" >> "{tmp_path}/acts"\n'
    )
    script.chmod(0o755)
    out = tmp_path / "out"
    arguments = ("--on-change", script, "--settle", "0", "--format", "jsonl", "-o", out, log)
    with started(*arguments):
        wait_for(lambda: words(out) == ["state"])
        add(log, death(20))
        wait_for((tmp_path / "acts").exists)
        wait_for((tmp_path / "acts").read_text)
    assert (tmp_path / "acts").read_text() == "crash crashed gpu-out-of-memory 0\n"
    document = json.loads((tmp_path / "report.json").read_text())
    assert document["report"]["verdict"]["cause"]["reason"] == "gpu-out-of-memory"


def test_a_command_that_hangs_or_fails_is_reported_and_holds_nothing_up(
    log: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    command = 'case "$WATCH_EVENT" in crash) exec sleep 600;; *) echo broken >&2; exit 3;; esac'
    with started(
        "--on-change", command, "--on-change-limit", "300ms", "--settle", "0", "-o", out,
        "--format", "jsonl", log,
    ) as process:  # fmt: skip
        wait_for(lambda: words(out) == ["state"])
        add(log, death(20))
        wait_for(lambda: "crash" in words(out))
        add(log, start(60, pid=2) + ready(90))
        wait_for(lambda: "ready" in words(out))
        said = bytearray()
        assert process.stderr is not None
        os.set_blocking(process.stderr.fileno(), False)
        wait_for(lambda: said.extend(process.stderr.read() or b"") or said.count(b"\n") == 2)  # type: ignore[union-attr]
    assert b"took longer than 0.3 s" in said
    assert b"failed (exit 3): broken" in said


# -- metrics


def test_metrics_can_be_scraped_and_are_in_the_file(log: Path, tmp_path: Path) -> None:
    add(log, death(20))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    file = tmp_path / "watch.prom"
    with started("--metrics", f"127.0.0.1:{port}", "--metrics-file", file, log) as process:
        assert process.stdout is not None
        process.stdout.readline()
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
            text = answer.read().decode()
        process.terminate()
        assert process.wait(10) == 143
    for scraped in (text, file.read_text()):
        assert re.search(r'loopdetect_state\{[^}]*state="crashed"[^}]*\} 1\.0', scraped)
        assert re.search(
            r'loopdetect_crashes_total\{reason="gpu-out-of-memory",[^}]*\} 1\.0', scraped
        )
        assert "loopdetect_last_line_age_seconds" in scraped


def test_a_port_that_is_taken_is_said_in_one_line(log: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        done = run("--metrics", f"127.0.0.1:{taken.getsockname()[1]}", log)
    assert done.returncode == 2
    assert done.stderr.count(b"\n") == 1
    assert b"cannot listen" in done.stderr


def test_systemd_is_told_when_it_is_ready_and_when_it_stops(log: Path, tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(10)
        with started(log, env={"NOTIFY_SOCKET": str(tmp_path / "notify")}) as process:
            assert manager.recv(100) == b"READY=1"
            process.send_signal(signal.SIGHUP)
            assert manager.recv(100).startswith(b"RELOADING=1")
            assert manager.recv(100) == b"READY=1"
            process.terminate()
            assert manager.recv(100) == b"STOPPING=1"


# -- a terminal


@pytest.fixture
def terminal() -> Iterator[tuple[int, int]]:
    master, slave = pty.openpty()
    yield master, slave
    for handle in (master, slave):
        os.close(handle)


def test_a_terminal_gets_a_table_that_is_drawn_anew(log: Path, terminal: tuple[int, int]) -> None:
    master, slave = terminal
    os.set_blocking(master, False)
    seen = bytearray()

    def shows(text: bytes) -> bool:
        with contextlib.suppress(BlockingIOError):
            seen.extend(os.read(master, 1 << 16))
        return text in seen

    with started(log, stdout=slave, env={"TERM": "xterm", "COLUMNS": "120"}) as process:
        wait_for(lambda: shows(b"loading"))
        add(log, death(20))
        wait_for(lambda: shows(b"gpu-out-of-memory"))
        process.send_signal(signal.SIGINT)
        wait_for(lambda: [shows(b""), process.poll()][1] is not None)
        assert process.returncode == 130
    assert b"\x1b[?25h" in seen or shows(b"\x1b[?25h")
