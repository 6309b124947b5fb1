"""`loopdetect wait` beside a real server process, a real log and a real port."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from fake_server import DEATH, ENGINE_DEATH

HERE = Path(__file__).parent
SERVER = str(HERE / "fake_server.py")
DEADLINE_S = 20.0
# Two seconds, where the machine has nothing else to do.
SOON_S = 2.0 if os.getloadavg()[0] < (os.cpu_count() or 1) else 6.0


@dataclass
class Answer:
    """What a wait came to, and when."""

    code: int
    wait: dict[str, Any]
    report: dict[str, Any]
    lines: str
    at: float


@dataclass
class Ground:
    """Where a test starts servers and waits for them; all are gone when it is over."""

    folder: Path
    started: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def log(self) -> Path:
        return self.folder / "server.log"

    def server(self, plot: str, port: int | None = None, log: str = "server.log", mode: str = "ab"):  # type: ignore[no-untyped-def]
        command = [sys.executable, SERVER, plot, *([str(port)] if port else [])]
        with (self.folder / log).open(mode) as out:
            return self._start(command, stdout=out, stderr=subprocess.STDOUT)

    def shell(self, script: str) -> subprocess.Popen[bytes]:
        names = {"PYTHON": sys.executable, "SERVER": SERVER, "LOG": str(self.log)}
        return self._start(["sh", "-c", script], env={**os.environ, **names})

    def wait(self, *options: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "loopdetect", "wait", "--format", "json", "--timeout"]
        arguments = ["15s", *options]
        if "server.log" not in options and "-" not in options:
            arguments.append(str(self.log))
        return self._start(
            [*command, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def waiting(self, *options: str) -> subprocess.Popen[bytes]:
        """Start a wait and return when it has had its first look."""
        waiting = self.wait(*options)
        assert waiting.stderr is not None
        assert waiting.stderr.readline().startswith(b"[")
        return waiting

    def answer(self, waiting: subprocess.Popen[bytes]) -> Answer:
        out, lines = waiting.communicate(timeout=DEADLINE_S)
        at = time.time()
        document = json.loads(out)
        return Answer(
            waiting.returncode, document["wait"], document["reports"][0], lines.decode(), at
        )

    def _start(self, command: list[str], **options: Any) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(command, start_new_session=True, **options)
        self.started.append(process)
        return process

    def clear(self) -> None:
        for process in self.started:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait(DEADLINE_S)
            for stream in (process.stdout, process.stderr):
                if stream is not None:
                    stream.close()


@pytest.fixture
def ground(tmp_path: Path) -> Iterator[Ground]:
    place = Ground(tmp_path)
    yield place
    place.clear()


@pytest.fixture
def port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        found: int = probe.getsockname()[1]
        return found


def url(port: int) -> str:
    return f"http://127.0.0.1:{port}/health"


def until(true: Callable[[], bool]) -> None:
    """Poll with a deadline."""
    pause = threading.Event()
    end = time.monotonic() + DEADLINE_S
    while not true():
        assert time.monotonic() < end, "it did not happen in time"
        pause.wait(0.01)


def test_a_healthy_start_with_503_then_an_empty_200(ground: Ground, port: int) -> None:
    waiting = ground.waiting("--health", url(port), "--interval", "50ms")
    server = ground.server("ready", port)
    answer = ground.answer(waiting)
    assert (answer.code, answer.wait["ending"]) == (0, "reached")
    assert (answer.wait["health_status"], answer.report["verdict"]["state"]) == (200, "ready")
    assert answer.wait["decided_by"] == ["log", "health"]
    assert server.poll() is None
    assert answer.at - self_time(ground.log, "Application startup complete") < SOON_S


def self_time(log: Path, text: str) -> float:
    """Return when the log was last written, once it holds the text."""
    assert text in log.read_text()
    return log.stat().st_mtime


def test_a_server_that_listens_only_when_it_is_ready(ground: Ground, port: int) -> None:
    waiting = ground.wait("--health", url(port), "--interval", "50ms", "--settle", "300ms")
    ground.server("late", port)
    assert ground.answer(waiting).code == 0


def test_a_crash_gives_its_cause_within_two_seconds(ground: Ground) -> None:
    waiting = ground.waiting()
    server = ground.server("crash")
    answer = ground.answer(waiting)
    assert server.wait(DEADLINE_S) == 1
    assert (answer.code, answer.wait["ending"]) == (1, "crashed")
    assert answer.report["verdict"]["cause"]["text"].endswith(DEATH)
    assert answer.at - self_time(ground.log, DEATH) < SOON_S


@pytest.mark.parametrize("redirect", [">>", ">"], ids=["append", "truncate"])
def test_a_crash_loop_in_a_shell(ground: Ground, redirect: str) -> None:
    waiting = ground.wait()
    # The pause that supervisors make too: what the next start truncates away before anybody could
    # look is lost, and a busy machine needs a while to look.
    again = f'"$PYTHON" "$SERVER" crash {redirect} "$LOG" 2>&1; sleep 1'
    ground.shell(f"while :; do {again}; done")
    answer = ground.answer(waiting)
    assert (answer.code, answer.wait["ending"]) == (5, "crash-looping")
    verdict = answer.report["verdict"]
    assert verdict["restarts"] >= 1
    assert DEATH in verdict["cause"]["text"]


def test_a_crash_at_the_third_start_of_a_server_that_was_stopped_twice(ground: Ground) -> None:
    for _ in range(2):
        server = ground.server("ready")
        until(
            lambda: (
                ground.log.read_text().count("startup complete")
                > ground.log.read_text().count("Shutting down")
            )
        )
        server.terminate()
        server.wait(DEADLINE_S)
    waiting = ground.wait()
    ground.server("crash")
    answer = ground.answer(waiting)
    assert (answer.code, answer.report["verdict"]["restarts"]) == (1, 2)


def test_a_crash_between_the_call_and_the_first_look_is_not_missed(ground: Ground) -> None:
    ground.log.touch()
    waiting = ground.wait()
    assert ground.server("crash").wait(DEADLINE_S) == 1
    assert ground.answer(waiting).code == 1


def test_a_stop_is_a_stop(ground: Ground) -> None:
    waiting = ground.wait()
    ground.server("stop")
    answer = ground.answer(waiting)
    assert (answer.code, answer.wait["ending"]) == (1, "stopped")
    assert answer.report["verdict"]["cause"] is None


def test_a_hang_is_stalled(ground: Ground) -> None:
    waiting = ground.wait("--stall", "700ms")
    server = ground.server("hang")
    answer = ground.answer(waiting)
    assert (answer.code, answer.wait["ending"]) == (6, "stalled")
    assert "load-weights at 3/12" in answer.wait["summary"]
    assert server.poll() is None


def test_ready_then_a_crash_in_the_settle_time(ground: Ground) -> None:
    waiting = ground.wait("--settle", "5s")
    ground.server("crash-after-ready")
    answer = ground.answer(waiting)
    assert (answer.code, answer.wait["ending"]) == (1, "crashed")
    assert ENGINE_DEATH in answer.report["verdict"]["cause"]["text"]
    assert answer.report["verdict"]["ready_seen"] is True


def test_an_orphan_on_the_port_does_not_count(ground: Ground, port: int) -> None:
    ground.server("ready", port, log="orphan.log")
    until(lambda: "startup complete" in (ground.folder / "orphan.log").read_text())
    waiting = ground.wait("--health", url(port), "--interval", "50ms")
    ground.shell('while :; do "$PYTHON" "$SERVER" crash >> "$LOG" 2>&1; done')
    answer = ground.answer(waiting)
    assert (answer.code, answer.wait["health_status"]) == (5, 200)


def test_an_orphan_on_the_port_is_told_from_the_process_given(ground: Ground, port: int) -> None:
    orphan = ground.server("ready", port, log="orphan.log")
    until(lambda: "startup complete" in (ground.folder / "orphan.log").read_text())
    deaf = ground.server("deaf", port)
    options = ("--health", url(port), "--interval", "50ms", "--pid", str(deaf.pid))
    answer = ground.answer(ground.wait(*options, "--timeout", "1500ms"))
    assert (answer.code, answer.wait["decided_by"]) == (124, ["port"])
    # The one that listens is ready.
    options = ("--health", url(port), "--pid", str(orphan.pid))
    assert ground.answer(ground.wait(*options)).code == 0


def test_a_dead_pid_ends_the_wait(ground: Ground) -> None:
    server = ground.server("quiet-death")
    waiting = ground.wait("--pid", str(server.pid))
    server.wait(DEADLINE_S)
    answer = ground.answer(waiting)
    assert (answer.code, answer.wait["ending"]) == (1, "crashed")
    assert answer.wait["decided_by"] == ["process"]


def test_yesterdays_loop_in_the_log_does_not_fail_todays_start(ground: Ground) -> None:
    for _ in range(3):
        ground.server("crash").wait(DEADLINE_S)
    waiting = ground.wait()
    assert waiting.stderr is not None
    assert b"nothing has started yet" in waiting.stderr.readline()
    ground.server("ready")
    answer = ground.answer(waiting)
    assert answer.code == 0
    assert answer.report["runs"][0]["cause"]["reason"] == "gpu-out-of-memory"


def test_a_log_that_is_rotated_by_a_restart(ground: Ground) -> None:
    waiting = ground.waiting("--tolerate", "1")
    assert waiting.stderr is not None
    ground.server("crash").wait(DEADLINE_S)
    while b"crashed" not in (line := waiting.stderr.readline()):
        assert line
    ground.log.rename(ground.folder / "server.log.1")
    ground.server("ready")
    answer = ground.answer(waiting)
    assert (answer.code, answer.wait["log_began_anew"]) == (0, 1)
    assert answer.report["verdict"]["restarts"] == 1


def test_a_server_that_nobody_knows(ground: Ground) -> None:
    ground.server("unknown")
    waiting = ground.wait("--ready-on-line", "is warm$", "--fail-on-line", "is cold$")
    assert ground.answer(waiting).code == 0


def test_standard_input(ground: Ground) -> None:
    script = '"$PYTHON" "$SERVER" {} | "$PYTHON" -m loopdetect wait -q -; echo $? > "$LOG"'
    for plot, code in (("crash", "1"), ("quiet-death", "4")):
        ground.shell(script.format(plot)).wait(DEADLINE_S)
        assert ground.log.read_text().strip() == code


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_it_without_a_word_more(
    ground: Ground, number: signal.Signals, code: int
) -> None:
    waiting = ground.waiting()
    waiting.send_signal(number)
    out, err = waiting.communicate(timeout=DEADLINE_S)
    assert (waiting.returncode, out, err) == (code, b"", b"")


def test_the_time_limit_says_that_nothing_started(ground: Ground) -> None:
    answer = ground.answer(ground.wait("--timeout", "300ms"))
    assert answer.code == 124
    assert "the log has not appeared" in answer.wait["summary"]


def test_quiet_prints_nothing(ground: Ground) -> None:
    ground.server("ready")
    command = [sys.executable, "-m", "loopdetect", "wait", "-q", "--timeout", "10s"]
    done = subprocess.run([*command, str(ground.log)], capture_output=True, timeout=DEADLINE_S)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--health", "localhost:8000"), "no health URL"),
        (("--pid", "1", "--pid-file", "x"), "cannot go together"),
        (("--fail-on-line", "("), "not a regular expression"),
        (("--health", "http://localhost/", "--health-token-env", "NO_SUCH_NAME"), "is not set"),
        (("--timeout", "soon"), "not a duration"),
        (("--until", "unknown"), "unknown"),
    ],
)
def test_a_wrong_call_is_one_line_and_code_2(
    ground: Ground, options: tuple[str, ...], words: str
) -> None:
    command = [sys.executable, "-m", "loopdetect", "wait", *options, str(ground.log)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S)
    assert (done.returncode, done.stdout) == (2, "")
    assert words in done.stderr
    assert done.stderr.count("\n") == 1
    assert "Traceback" not in done.stderr


def test_a_terminal_shows_the_servers_own_bar_and_is_left_clean(ground: Ground) -> None:
    import pty

    ground.server("hang")
    until(lambda: "3/12" in ground.log.read_text())
    main, side = pty.openpty()
    setting = {**os.environ, "TERM": "xterm", "COLUMNS": "100", "LINES": "30"}
    waiting = subprocess.Popen(
        [sys.executable, "-m", "loopdetect", "wait", "--stall", "800ms", str(ground.log)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=side,
        env=setting,
    )
    os.close(side)
    screen = b""
    try:
        while chunk := os.read(main, 65536):
            screen += chunk
    except OSError:
        pass  # the other side is closed
    finally:
        os.close(main)
    assert waiting.stdout is not None
    out = waiting.stdout.read()
    waiting.stdout.close()
    assert waiting.wait(DEADLINE_S) == 6
    text = screen.decode()
    assert "3/12 Loading safetensors checkpoint shards" in text
    assert "\x1b[?25l" in text
    assert text.rstrip().endswith("\x1b[?25h") or text.rindex("\x1b[?25h") > text.rindex(
        "\x1b[?25l"
    )
    assert b"stalled" in out
    assert b"\x1b" not in out
