"""`loopdetect wait --ssh`: a log, a process and a health URL as another machine sees them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from fake_server import DEATH
from ssh_host import DEADLINE_S, NAME, SSHD, Host, Reader, until
from test_wait_live import Ground, ground, port, url  # noqa: F401
from wait_stage import DOWN, Audience, Stage, StageClock, StageTail, death, ready, shards, start

from loopdetect.core.fusion import Health, Writer
from loopdetect.errors import SourceError, UsageProblem
from loopdetect.live.judge import Decision, Ending, Terms
from loopdetect.live.loop import Wait
from loopdetect.live.tail import Turn
from loopdetect.probe.seen import HealthSeen
from loopdetect.remote.health import Forward, RemoteHealth
from loopdetect.remote.place import place_of, shell_word
from loopdetect.remote.program import program

needs_sshd = pytest.mark.skipif(
    SSHD is None and not os.environ.get("CI"), reason="there is no sshd here: openssh-server"
)


@pytest.fixture(scope="module")
def lasting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    host = Host(tmp_path_factory.mktemp("ssh") / "host")
    yield host
    host.clear()


@pytest.fixture
def host(lasting: Host) -> Iterator[Host]:
    """A host that is in reach, whatever the test before did to it."""
    if lasting.sshd is None:
        lasting.rise()
    yield lasting
    for link in lasting.links:
        link.close()
    lasting.links.clear()


def ssh(host: Host, *options: str) -> tuple[str, ...]:
    return ("--ssh", NAME, "--ssh-command", host.command, *options)


# -- the whole command


@needs_sshd
def test_ready_with_an_empty_200_through_the_forwarded_port(
    ground: Ground,  # noqa: F811
    port: int,  # noqa: F811
    host: Host,
) -> None:
    waiting = ground.waiting(*ssh(host, "--health", url(port), "--interval", "50ms"))
    ground.server("ready", port)
    answer = ground.answer(waiting)
    assert (answer.code, answer.wait["ending"]) == (0, "reached")
    assert answer.wait["decided_by"] == ["log", "health"]
    assert answer.wait["health_status"] == 200
    assert answer.report["verdict"]["state"] == "ready"
    # What happened on the way: nothing listened, then 503.
    assert "connection refused" in answer.lines
    assert "HTTP 503" in answer.lines


@needs_sshd
def test_a_shell_loop_that_truncates_its_log_is_called_at_the_third_start(
    ground: Ground,  # noqa: F811
    host: Host,
) -> None:
    waiting = ground.waiting(*ssh(host, "--tolerate", "2"))
    ground.shell('for i in 1 2 3; do "$PYTHON" "$SERVER" crash > "$LOG" 2>&1; sleep 1; done')
    answer = ground.answer(waiting)
    assert answer.code in (1, 5)
    assert answer.wait["bad_ends"] == 3
    assert answer.wait["log_began_anew"] == 2
    assert DEATH in answer.report["runs"][-1]["cause"]["text"]


@needs_sshd
def test_a_pid_of_the_host_that_is_gone(ground: Ground, host: Host) -> None:  # noqa: F811
    server = ground.server("quiet-death")
    answer = ground.answer(ground.wait(*ssh(host, "--pid", str(server.pid)))) if (
        server.wait(0.001) if False else True
    ) else None
    assert answer is not None
    assert answer.wait["decided_by"] == ["process"]


@needs_sshd
def test_the_closing_words_name_the_place(ground: Ground, host: Host) -> None:  # noqa: F811
    ground.server("ready")
    command = [sys.executable, "-m", "loopdetect", "wait", *ssh(host), str(ground.log)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S)
    assert done.returncode == 0
    assert done.stdout.startswith(f"{NAME}:{ground.log}: vLLM")
