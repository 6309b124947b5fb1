"""Health checks over real sockets, and processes that are really there or not."""

from __future__ import annotations

import http.server
import os
import socket
import socketserver
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from fake_server import Answer

from loopdetect.core.fusion import Health, Port, Process, Writer
from loopdetect.errors import UsageProblem
from loopdetect.probe import process_probe
from loopdetect.probe.http_probe import HttpProbe, Target, explain, target_of
from loopdetect.probe.process_probe import PidFileProbe, PidProbe, owner_of
from loopdetect.probe.unit_probe import UnitProbe
from loopdetect.probe.writers import started_at, writer_of


class UnixServer(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True

    def get_request(self) -> tuple[socket.socket, str]:
        request, _ = super().get_request()
        return request, "unix"


@contextmanager
def serving(server: socketserver.BaseServer) -> Iterator[None]:
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture
def port(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    monkeypatch.setattr(Answer, "status", 200)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    with serving(server):
        yield server.server_address[1]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        found: int = probe.getsockname()[1]
        return found


@pytest.mark.parametrize(
    ("status", "health"),
    [(200, "up"), (204, "up"), (299, "up"), (503, "down"), (500, "down"), (404, "down")],
)
def test_the_status_decides_and_the_body_does_not(
    port: int, status: int, health: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Answer, "status", status)
    seen = HttpProbe(Target(f"http://127.0.0.1:{port}/health"))()
    assert (seen.health, seen.status) == (Health(health), status)
    assert ("is the path right" in seen.text) is (status == 404)


def test_a_redirect_is_followed(port: int) -> None:
    assert HttpProbe(Target(f"http://127.0.0.1:{port}/moved"))().status == 200


def test_the_token_is_sent(port: int) -> None:
    target = Target(f"http://127.0.0.1:{port}/secret")
    without = HttpProbe(target)()
    assert (without.health, without.status) == (Health.DOWN, 401)
    assert "--health-token-env" in without.text
    assert HttpProbe(target, token="sesame")().health is Health.UP


def test_nobody_listens() -> None:
    seen = HttpProbe(Target(f"http://127.0.0.1:{free_port()}/health"))()
    assert (seen.health, seen.text) == (Health.DOWN, "connection refused")


def test_a_server_that_never_answers_is_only_not_ready() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/health"
        seen = HttpProbe(Target(url), timeout=0.05)()
    assert (seen.health, seen.text) == (Health.DOWN, "no answer in time")


def test_tls_to_a_plain_server_is_explained(port: int) -> None:
    seen = HttpProbe(Target(f"https://127.0.0.1:{port}/health"), timeout=1)()
    assert (seen.health, seen.text) == (Health.DOWN, "it does not speak TLS: is it http:// ?")


def test_a_unix_socket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Answer, "status", 200)
    path = str(tmp_path / "s.sock")
    probe = HttpProbe(target_of(f"unix:{path}:/health"))
    assert (probe().health, probe().text) == (Health.DOWN, "the socket does not exist yet")
    with serving(UnixServer(path, Answer)):
        assert probe().status == 200
        spelled = f"http+unix://{path.replace('/', '%2F')}/health"
        assert HttpProbe(target_of(spelled))().status == 200


@pytest.mark.parametrize(
    ("text", "target", "local"),
    [
        ("http://localhost/health", Target("http://localhost/health"), 80),
        ("https://127.0.0.1/v1/models", Target("https://127.0.0.1/v1/models"), 443),
        ("http://[::1]:8000/", Target("http://[::1]:8000/"), 8000),
        ("http://gpu-7:8000/health", Target("http://gpu-7:8000/health"), None),
        ("unix:/run/s.sock", Target("/health", "/run/s.sock"), None),
        ("unix:///run/s.sock:/ready", Target("/ready", "/run/s.sock"), None),
    ],
)
def test_urls(text: str, target: Target, local: int | None) -> None:
    assert target_of(text) == target
    assert target_of(text).local_port == local


@pytest.mark.parametrize(
    "text", ["", "localhost:8000", "8000", "ftp://host/x", "http://", "http://h:99999/", "unix:"]
)
def test_what_is_no_health_url(text: str) -> None:
    with pytest.raises(UsageProblem, match="no health URL"):
        target_of(text)


def test_an_unexpected_failure_is_named() -> None:
    assert explain(RuntimeError("odd")) == "no answer (RuntimeError)"


# -- processes


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(
        [sys.executable, "-c", "input()"], stdin=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        yield process
        process.kill()


def test_a_process_that_lives_and_one_that_does_not(sleeper: subprocess.Popen[bytes]) -> None:
    probe = PidProbe(sleeper.pid)
    assert probe().process is Process.ALIVE
    sleeper.kill()
    # Not waited for yet: a zombie does not live.
    os.waitid(os.P_PID, sleeper.pid, os.WEXITED | os.WNOWAIT)
    assert probe().process is Process.GONE
    sleeper.wait()
    assert probe().process is Process.GONE
    assert PidProbe(sleeper.pid)().text == f"there is no process {sleeper.pid}"


def test_a_pid_that_another_process_got_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_probe, "created_at", lambda pid: 100.0)
    probe = PidProbe(7)
    assert probe().process is Process.ALIVE
    monkeypatch.setattr(process_probe, "created_at", lambda pid: 170.0)
    seen = probe()
    assert (seen.process, "belongs to another" in seen.text) == (Process.GONE, True)


def test_a_pid_file_may_come_late_and_change(
    tmp_path: Path, sleeper: subprocess.Popen[bytes]
) -> None:
    path = tmp_path / "server.pid"
    probe = PidFileProbe(str(path))
    assert probe().process is Process.UNKNOWN
    path.write_text("not a pid\n")
    assert probe().process is Process.UNKNOWN
    path.write_text(f"{2**22 + 5}\n")
    assert probe().process is Process.UNKNOWN  # left over from an earlier life
    path.write_text(f"{sleeper.pid}\n")
    assert (probe().process, probe().pid) == (Process.ALIVE, sleeper.pid)
    path.write_text(str(os.getpid()))
    assert probe().pid == os.getpid()
    path.write_text(f"{sleeper.pid}")
    assert probe().process is Process.ALIVE
    sleeper.kill()
    sleeper.wait()
    seen = probe()
    assert (seen.process, seen.final) == (Process.GONE, False)


def test_whose_port_it_is(port: int, sleeper: subprocess.Popen[bytes]) -> None:
    assert owner_of(port, PidProbe(os.getpid()))[0] is Port.OURS
    assert owner_of(port, PidProbe(sleeper.pid))[0] is Port.FOREIGN
    assert owner_of(port, None) == (Port.UNKNOWN, f"process {os.getpid()}")
    assert owner_of(free_port(), PidProbe(os.getpid()))[0] is Port.UNKNOWN


def test_who_has_the_log_open(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_text("ready\n")
    os.utime(log, (1_000_000_000, 1_000_000_000))
    assert writer_of(str(log), 1_000_000_000) is Writer.UNKNOWN
    with (
        log.open("ab") as out,
        subprocess.Popen(
            [sys.executable, "-c", "input()"],
            stdin=subprocess.PIPE,
            stdout=out,
            stderr=subprocess.DEVNULL,
        ) as process,
    ):
        started = started_at(process.pid)
        assert started is not None
        assert abs(time.time() - started) < 60
        assert writer_of(str(log), 1_000_000_000) is Writer.NEWER
        assert writer_of(str(log), started + 1) is Writer.SAME
        process.kill()
    assert writer_of(str(log), started + 1) is Writer.UNKNOWN
    assert started_at(process.pid) is None


# ActiveState, SubState, Result -> what it means for a unit that ran before, and one that did not.
UNITS = {
    ("active", "running", "success"): (Process.ALIVE, Process.ALIVE),
    ("activating", "start", "success"): (Process.ALIVE, Process.ALIVE),
    ("activating", "auto-restart", "exit-code"): (Process.RESTARTING, Process.RESTARTING),
    ("failed", "failed", "exit-code"): (Process.GONE, Process.GONE),
    ("failed", "failed", "start-limit-hit"): (Process.GAVE_UP, Process.GAVE_UP),
    ("inactive", "dead", "success"): (Process.STOPPED, Process.UNKNOWN),
    ("", "", ""): (Process.UNKNOWN, Process.UNKNOWN),
}


@pytest.mark.parametrize("told", UNITS, ids=lambda told: "-".join(told) or "silence")
def test_what_systemd_says(told: tuple[str, str, str]) -> None:
    answer = {"LoadState": "loaded"}

    def ask(unit: str, manager: tuple[str, ...]) -> Mapping[str, str]:
        return answer if manager == () else {}

    def say(active: str, sub: str, result: str) -> None:
        answer.update(ActiveState=active, SubState=sub, Result=result, MainPID="0")

    after, before = UNITS[told]
    probe = UnitProbe("vllm.service", ask)
    say(*told)
    assert probe().process is before
    ran = UnitProbe("vllm.service", ask)
    say("active", "running", "success")
    ran()
    say(*told)
    assert ran().process is after


def test_a_unit_that_nobody_knows_is_a_usage_problem() -> None:
    with pytest.raises(UsageProblem, match="knows no unit"):
        UnitProbe("nope", lambda unit, manager: {"LoadState": "not-found"})
    with pytest.raises(UsageProblem, match="does not answer"):
        UnitProbe("nope", lambda unit, manager: {})


def test_the_users_own_manager_is_asked_too() -> None:
    def ask(unit: str, manager: tuple[str, ...]) -> Mapping[str, str]:
        known = manager == ("--user",)
        return {
            "LoadState": "loaded" if known else "not-found",
            "ActiveState": "active",
            "SubState": "running",
            "MainPID": "41",
        }

    assert UnitProbe("vllm", ask)().pid == 41
