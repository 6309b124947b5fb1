"""`loopdetect wait --ssh`: a log, a process and a health URL as another machine sees them."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from fake_server import DEATH
from ssh_host import DEADLINE_S, NAME, SSHD, Host, Reader, until
from test_wait_live import Ground, ground, port, url  # noqa: F401
from wait_stage import DOWN, Audience, Stage, StageTail, death, ready, shards, start

from loopdetect.core.fusion import Health, Process, Writer
from loopdetect.errors import UsageProblem
from loopdetect.live.judge import Decision, Ending, Terms
from loopdetect.live.loop import Wait
from loopdetect.live.tail import Turn
from loopdetect.probe.seen import HealthSeen
from loopdetect.remote.health import Forward, RemoteHealth
from loopdetect.remote.place import place_of, shell_word
from loopdetect.remote.process import RemoteProcess
from loopdetect.remote.program import program
from loopdetect.remote.session import LinkLost

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


def said(waiting: subprocess.Popen[bytes], words: str) -> None:
    """Read what a wait says until it says this."""
    assert waiting.stderr is not None
    while words not in (line := waiting.stderr.readline().decode()):
        assert line, f"it never said {words}"


def over(host: Host, *options: str) -> tuple[str, ...]:
    return ("--ssh", NAME, "--ssh-command", host.command, *options)


# -- the whole command


@needs_sshd
def test_ready_with_an_empty_200_through_the_forwarded_port(
    ground: Ground,  # noqa: F811
    port: int,  # noqa: F811
    host: Host,
) -> None:
    waiting = ground.wait(*over(host, "--health", url(port), "--interval", "50ms"))
    said(waiting, "connection refused")
    ground.server("ready", port)
    answer = ground.answer(waiting)
    assert (answer.code, answer.wait["ending"]) == (0, "reached")
    assert answer.wait["decided_by"] == ["log", "health"]
    assert answer.wait["health_status"] == 200
    assert answer.report["verdict"]["state"] == "ready"


@needs_sshd
def test_a_shell_loop_that_truncates_its_log_is_called_at_the_third_start(
    ground: Ground,  # noqa: F811
    host: Host,
) -> None:
    waiting = ground.waiting(*over(host, "--tolerate", "2"))
    ground.shell('for i in 1 2 3; do "$PYTHON" "$SERVER" crash > "$LOG" 2>&1; sleep 1; done')
    answer = ground.answer(waiting)
    assert answer.code in (1, 5)
    assert answer.wait["bad_ends"] == 3
    assert answer.wait["log_began_anew"] == 2
    assert DEATH in answer.report["runs"][-1]["cause"]["text"]


@needs_sshd
def test_a_pid_of_the_host_that_is_gone(ground: Ground, host: Host) -> None:  # noqa: F811
    server = ground.server("quiet-death")
    waiting = ground.wait(*over(host, "--pid", str(server.pid)))
    server.wait(DEADLINE_S)
    answer = ground.answer(waiting)
    assert (answer.code, answer.wait["ending"]) == (1, "crashed")
    assert answer.wait["decided_by"] == ["process"]


@needs_sshd
def test_a_pid_file_of_the_host_that_comes_late(ground: Ground, host: Host) -> None:  # noqa: F811
    waiting = ground.wait(*over(host, "--pid-file", "~/server's pid"))
    said(waiting, "holds no pid yet")
    server = ground.server("ready")
    (host.home / "server's pid").write_text(f"{server.pid}\n")
    answer = ground.answer(waiting)
    assert answer.code == 0
    assert answer.wait["process"] == f"process {server.pid} lives"


@needs_sshd
def test_the_closing_words_name_the_place(ground: Ground, host: Host) -> None:  # noqa: F811
    ground.server("ready")
    command = [sys.executable, "-m", "loopdetect", "wait", *over(host), str(ground.log)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S)
    assert done.returncode == 0
    assert done.stdout.startswith(f"{NAME}:{ground.log}: vLLM")


@needs_sshd
def test_a_link_that_is_cut_once_is_taken_up_again(ground: Ground, host: Host) -> None:  # noqa: F811
    waiting = ground.waiting(*over(host))
    first = b"".join((start(), shards(3)))
    ground.log.write_bytes(first)
    said(waiting, "load-weights 3/64")
    host.cut()
    with ground.log.open("ab") as log:
        log.write(shards(64) + ready())
    answer = ground.answer(waiting)
    assert answer.code == 0
    assert (answer.wait["log_began_anew"], answer.wait["bad_ends"]) == (0, 0)
    assert answer.wait["unreachable"] is None
    assert answer.report["lines"] == ground.log.read_bytes().count(b"\n")
    assert answer.lines.count("cannot reach") == 1


@needs_sshd
def test_a_link_that_is_cut_for_good_is_no_crash(ground: Ground, host: Host) -> None:  # noqa: F811
    ground.log.write_bytes(start() + shards(3))
    waiting = ground.waiting(*over(host, "--timeout", "4s", "--stall", "1s", "--pid", "1"))
    host.fall()
    answer = ground.answer(waiting)
    assert (answer.code, answer.wait["ending"]) == (124, "time-limit")
    assert f"cannot reach {NAME}: " in answer.wait["summary"]
    assert answer.wait["state"] == "unknown"
    assert answer.wait["process"] is None
    assert "cannot reach" in answer.lines


def failing(*options: str, timeout: str = "10s") -> str:
    """Return the one line that a wait says that cannot even begin."""
    command = [sys.executable, "-m", "loopdetect", "wait", "--timeout", timeout, *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S)
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert done.stderr.count("\n") == 1
    assert "Traceback" not in done.stderr
    return done.stderr


@needs_sshd
@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("PubkeyAuthentication=no", "Permission denied"),
        ("UserKnownHostsFile=/dev/null", "Host key verification failed"),
        ("HostName=no-such-host.invalid", "Could not resolve hostname"),
        ("Port=1", "Connection refused"),
    ],
)
def test_a_host_that_cannot_be_reached_at_all(host: Host, change: str, words: str) -> None:
    told = failing("--ssh", NAME, "--ssh-command", f"{host.command} -o {change}", "server.log")
    assert f"cannot reach {NAME}: " in told
    assert words in told


def test_a_host_that_never_answers_is_given_up_at_the_time_limit(tmp_path: Path) -> None:
    script = tmp_path / "ssh"
    script.write_text("#!/bin/sh\nexec sleep 60\n")
    script.chmod(0o700)
    told = failing("--ssh", "x", "--ssh-command", str(script), "server.log", timeout="300ms")
    assert "no answer in time" in told


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--ssh", "x", "--unit", "vllm", "server.log"), "--unit"),
        (("--ssh", "x", "-"), "cannot go together"),
        (("--ssh", "-oProxyCommand=x", "server.log"), "is no host"),
        (("--ssh", "x", "ssh://y/server.log"), "both name a host"),
        (("ssh://x",), "names no file"),
        (("--ssh", "x", "--ssh-command", "'", "server.log"), "--ssh-command"),
        (("--ssh", "x", "--ssh-command", "no-such-ssh", "server.log"), "no-such-ssh"),
        (("--ssh", "x", "--health", "ftp://x/", "server.log"), "no health URL"),
        (("--ssh", "x", "--pid", "1", "--pid-file", "x", "server.log"), "cannot go together"),
    ],
)
def test_a_wrong_call(options: tuple[str, ...], words: str) -> None:
    assert words in failing(*options)


@needs_sshd
def test_what_is_no_log_is_refused(host: Host, tmp_path: Path) -> None:
    assert "this is a folder" in failing(*over(host), str(tmp_path))
    packed = tmp_path / "server.log"
    packed.write_bytes(b"\x1f\x8b\x08" + bytes(100))
    assert "gzip" in failing(*over(host), str(packed))


# -- the bytes

HOSTILE = b"records 7+0\nfile 1:1 5 1.0 2.0\nnone\n\x00\xff\x1b[2J gone\nbefore 00\n"


@needs_sshd
def test_bytes_that_look_like_notices_come_through_as_they_are(host: Host, tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_bytes(HOSTILE * 9000)
    reader = Reader(host.link(str(log)))
    until(lambda: reader.has(HOSTILE * 9000, [Turn.APPEARED]))
    with log.open("ab") as file:
        file.write(b"loopdetect-0123456789abcdef-begins\n")
    until(lambda: reader.has(log.read_bytes(), [Turn.APPEARED]))


@needs_sshd
@pytest.mark.parametrize(
    "name", ['a\'b $(touch owned) `touch owned` \n"c".log', "-n", "*", "@LOG@", "\udcff.log"]
)
def test_the_name_of_a_file_is_only_a_name(host: Host, name: str) -> None:
    for old in host.home.iterdir():
        old.unlink()
    (host.home / name).write_bytes(b"one\n")
    # The login begins in the home that the account has, not in the one that is set for it.
    reader = Reader(host.link(f"~/{name}"))
    until(lambda: reader.has(b"one\n"))
    assert [os.fsencode(path.name) for path in host.home.iterdir()] == [os.fsencode(name)]


@needs_sshd
def test_a_log_that_comes_late_is_truncated_and_replaced(host: Host, tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    reader = Reader(host.link(str(log)))
    told, turns = b"one\n", [Turn.APPEARED]
    log.write_bytes(told)
    until(lambda: reader.has(told, turns))
    # Longer than what was there; then of the same length and with the same last words.
    same = b" of a server that dies of the same cause each time" * 3
    for text in (b"life 1" + same, b"life 2" + same):
        log.write_bytes(text)
        told += text
        turns.append(Turn.TRUNCATED)
        until(partial(reader.has, told, turns))
    # Something is still written to the old file when a new one has its name.
    with log.open("ab") as file:
        log.rename(tmp_path / "server.log.1")
        log.write_bytes(b"new\n")
        file.write(b"last words\n")
    told += b"last words\nnew\n"
    turns.append(Turn.REPLACED)
    until(lambda: reader.has(told, turns))
    log.unlink()
    turns.append(Turn.VANISHED)
    until(lambda: reader.has(told, turns))


@needs_sshd
def test_since_now_leaves_out_what_is_there(host: Host, tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_bytes(b"of the past\n" * 50)
    reader = Reader(host.link(str(log), since_now=True))
    until(lambda: reader.has(b"", [Turn.APPEARED]))
    with log.open("ab") as file:
        file.write(b"of now\n")
    until(lambda: reader.has(b"of now\n", [Turn.APPEARED]))


@needs_sshd
def test_a_cut_loses_nothing_and_doubles_nothing(host: Host, tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    text = b"".join(b"line %d of many, so that it is long\n" % number for number in range(60_000))
    log.write_bytes(text)
    link = host.link(str(log))
    reader = Reader(link)
    until(lambda: reader.read() or reader.data)
    host.cut()
    with log.open("ab") as file:
        file.write(b"written in the dark\n")
    until(lambda: reader.has(text + b"written in the dark\n", [Turn.APPEARED]))
    host.cut()
    until(lambda: link.lost)
    # A restart in the dark is seen in the light.
    log.write_bytes(b"anew\n")
    until(
        lambda: reader.has(text + b"written in the dark\nanew\n", [Turn.APPEARED, Turn.TRUNCATED])
    )
    assert link.lost is None


@needs_sshd
def test_a_link_that_hangs_is_noticed_before_it_breaks(
    host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("loopdetect.remote.link.SILENT_S", 0.3)
    log = tmp_path / "server.log"
    log.write_bytes(b"one\n")
    link = host.link(str(log))
    reader = Reader(link)
    until(lambda: reader.has(b"one\n") and link.out_of_reach() is None)
    hung = host.sessions()
    for process in hung:
        process.suspend()
    until(lambda: link.out_of_reach() == f"cannot reach {NAME}: the link is silent")
    for process in hung:
        process.resume()
    log.write_bytes(b"one\ntwo\n")
    until(lambda: reader.has(b"one\ntwo\n") and link.out_of_reach() is None)


@needs_sshd
def test_nothing_is_left_on_the_host(host: Host, tmp_path: Path) -> None:
    link = host.link(str(tmp_path / "server.log"))
    there = host.sessions()
    assert there
    link.close()
    until(lambda: not any(process.is_running() for process in there))


@needs_sshd
def test_a_login_shell_that_talks_and_a_host_that_forwards_nothing(
    ground: Ground,  # noqa: F811
    port: int,  # noqa: F811
    tmp_path: Path,
) -> None:
    greeting = 'ForceCommand echo "Welcome"; printf "loopdetect-"; eval "$SSH_ORIGINAL_COMMAND"'
    host = Host(tmp_path / "host", (greeting, "AllowTcpForwarding no"))
    try:
        server = ground.server("ready", port)
        until(lambda: "startup complete" in ground.log.read_text())
        options = ("--health", url(port), "--timeout", "3s")
        answer = ground.answer(ground.wait(*over(host, *options)))
        assert server.poll() is None
        assert answer.code == 124
        assert answer.wait["health"] == "the ssh server does not allow forwarding"
    finally:
        host.clear()


@pytest.mark.parametrize(
    ("shell", "without"),
    [
        ("dash", ""),
        ("bash", ""),
        ("ksh", ""),
        ("mksh", ""),
        ("yash", ""),
        ("zsh", ""),
        ("busybox", ""),
        ("busybox", "stat"),
    ],
)
def test_the_program_runs_in_every_posix_shell(shell: str, without: str, tmp_path: Path) -> None:
    found = shutil.which(shell)
    if found is None:
        pytest.skip(f"there is no {shell} here")
    log = tmp_path / "server.log"
    log.write_bytes(b"one\0two\n")
    requests = "stat\nopen 0 0\nread 0 0 4 1 0\nread 0 4 9 1 2\nprocess 1\nprocess 99999999\npid\n"
    path = os.environ["PATH"]
    if shell == "busybox":
        # Then the other programs are its own too.
        path = str(tmp_path / "bin")
        os.mkdir(path)
        subprocess.run([found, "--install", "-s", path], check=True)
        if without:
            os.unlink(f"{path}/{without}")
    # As `sh`, every shell is a POSIX shell.
    done = subprocess.run(
        ["sh", "-c", program(str(log), "", "0").decode()],
        executable=found,
        input=requests.encode(),
        env={"PATH": path},
        capture_output=True,
        timeout=DEADLINE_S,
    )
    facts = rb"file (?:\d+:)?\d+ 8 (?:[\d.]+|-) [\d.]+[%N]*\n"
    wanted = (
        rb"\nloopdetect-0-begins\n" + facts + facts
        + rb"before \none\0records 1\+0\n" + facts
        + rb"before 6f6e6f6e6500\ntwo\n\0\0\0\0\0records 0\+1\n" + facts
        + rb"ticks S \d+ [\d.]+ \d+\ngone\nnone\n"
    )  # fmt: skip
    assert re.fullmatch(wanted, done.stdout), done.stdout
    assert done.stderr == b""


class Ps:
    """A host that says the same of every process."""

    def __init__(self, words: str) -> None:
        self.words = words

    def process(self, pid: int) -> list[str]:
        return self.words.split()


@pytest.mark.parametrize(
    ("first", "then", "process"),
    [
        ("ticks S 500 90.0 100", "ticks R 500 95.5 100", Process.ALIVE),
        ("ticks S 500 90.0 100", "ticks Z 500 90.0 100", Process.GONE),
        ("ticks S 500 90.0 100", "ticks S 9100 95.5 100", Process.GONE),
        ("ticks S 500 90.0 100", "gone", Process.GONE),
        ("alive", "alive", Process.ALIVE),
        ("stamp Ss Mon Nov 2 03:16:56 2026", "stamp Ss Mon Nov 2 03:16:56 2026", Process.ALIVE),
        ("stamp Ss Mon Nov 2 03:16:56 2026", "stamp Ss Mon Nov 2 03:16:58 2026", Process.GONE),
        ("stamp Ss Mon Nov 2 03:16:56 2026", "stamp Z Mon Nov 2 03:16:56 2026", Process.GONE),
        ("gone", "gone", Process.GONE),
    ],
)
def test_a_process_of_the_host_by_what_its_shell_says(
    first: str, then: str, process: Process
) -> None:
    watched = RemoteProcess(7, None)
    watched.look(Ps(first))  # type: ignore[arg-type]
    assert watched.look(Ps(then)).process is process  # type: ignore[arg-type]


def test_when_a_process_of_the_host_began_is_told_by_the_clock_here() -> None:
    seen = RemoteProcess(7, None).look(Ps("ticks S 500 90.0 100"))  # type: ignore[arg-type]
    assert seen.started == pytest.approx(time.time() - 85, abs=1)


@pytest.mark.parametrize("words", ["", "ticks S", "ticks S a b c", "stamp Ss yesterday", "x 1"])
def test_nonsense_is_no_death(words: str) -> None:
    with pytest.raises(LinkLost):
        RemoteProcess(7, None).look(Ps(words))  # type: ignore[arg-type]


# -- where, in words


@pytest.mark.parametrize(
    ("log", "host", "title", "port"),
    [
        ("/var/log/a.log", "me@box", "me@box:/var/log/a.log", None),
        ("ssh://box/var/a.log", None, "box:/var/a.log", None),
        ("ssh://me@Box:2222/~/a%20b.log", None, "me@Box:~/a b.log", 2222),
        ("ssh://[::1]:22/what?#.log", None, "::1:/what?#.log", 22),
    ],
)
def test_places(log: str, host: str | None, title: str, port: int | None) -> None:  # noqa: F811
    place = place_of(log, host)
    assert place is not None
    assert (place.title, place.port) == (title, port)


def test_a_path_without_a_host_is_a_file_here() -> None:
    assert place_of("/var/log/a.log", None) is None
    assert place_of("-", None) is None


@pytest.mark.parametrize(
    ("path", "word"),
    [
        ("/var/log/a.log", "/var/log/a.log"),
        ("~/a b", "~/'a b'"),
        ("~me/a;b", "~me/'a;b'"),
        ("~$(x)/a", "'~$(x)/a'"),
        ("-n", "./-n"),
    ],
)
def test_shell_words(path: str, word: str) -> None:
    assert shell_word(path) == word


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ("http://127.0.0.1:8000/health", "/s:[127.0.0.1]:8000"),
        ("https://[::1]/health", "/s:[::1]:443"),
        ("unix:/run/x.sock:/health", "/s:/run/x.sock"),
    ],
)
def test_forwarding(asked: str, words: str) -> None:
    assert Forward(asked, "/s").words == words


def test_what_cannot_be_forwarded() -> None:
    for asked in ("http+unix://%2Frun%2Fa%3Ab/health", "http://a%20b/"):
        with pytest.raises(UsageProblem):
            _ = Forward(asked, "/s").words


@pytest.mark.skipif(shutil.which("openssl") is None, reason="there is no openssl here")
def test_tls_through_a_forwarded_port_keeps_the_name_of_the_server(tmp_path: Path) -> None:
    key, certificate, door = (str(tmp_path / name) for name in ("key", "cert", "door"))
    names = ("-subj", "/CN=gpu.example", "-addext", "subjectAltName=DNS:gpu.example")
    made = ("openssl", "req", "-x509", "-newkey", "ed25519", "-nodes", "-days", "2", *names)
    subprocess.run([*made, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key)
    asked = []

    def serve(listening: socket.socket) -> None:
        for _ in range(3):
            connection, _ = listening.accept()
            with (
                contextlib.suppress(OSError),
                connection,
                context.wrap_socket(connection, server_side=True) as link,
            ):
                asked.append(link.recv(4096))
                link.sendall(b"HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n")

    def ask(name: str, *, verify: bool) -> HealthSeen:
        url = f"https://{name}:8443/health?deep=1"
        return Forward(url, door).probe(None, certificate if verify else None, verify, Cable())()

    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(door)
        listening.listen()
        threading.Thread(target=serve, args=(listening,), daemon=True).start()
        assert ask("gpu.example", verify=True).status == 204
        assert asked[0].startswith(b"GET /health?deep=1 HTTP/1.1\r\nHost: gpu.example:8443\r\n")
        assert "not trusted" in ask("other.example", verify=True).text
        assert ask("other.example", verify=False).status == 204


# -- out of reach is no evidence


class Cable:
    """A link whose state the test says."""

    def __init__(self, lost: str | None = None, refusal: str = "", silent: bool = False) -> None:
        self.lost, self.refusal, self.silent, self.asked = lost, refusal, silent, 0

    def refused(self) -> tuple[int, str]:
        self.asked += 1
        return self.asked if self.refusal else 0, self.refusal

    def answers(self, within: float) -> bool:
        return not self.silent


@pytest.mark.parametrize(
    ("cable", "health", "words"),
    [
        (Cable(lost="cut"), Health.UNKNOWN, "out of sight"),
        (Cable(silent=True), Health.UNKNOWN, "out of sight"),
        (Cable(refusal="connect failed: Connection refused"), Health.DOWN, "connection refused"),
        (Cable(refusal="administratively prohibited: x"), Health.UNKNOWN, "not allow"),
        (Cable(), Health.DOWN, "closed"),
    ],
)
def test_no_answer_is_unknown_unless_the_host_is_in_reach(
    cable: Cable, health: Health, words: str
) -> None:
    closed = HealthSeen(Health.DOWN, "the connection was closed without an answer")
    seen = RemoteHealth(lambda: closed, cable)()
    assert seen.health is health
    assert words in seen.text


def out_of_reach(
    plot: list[tuple[float, bytes | Turn]], dark: tuple[float, float], terms: Terms
) -> tuple[Decision, Audience]:
    """Wait on a stage where nothing can be seen between two moments."""
    stage = Stage(plot, terms=terms)
    clock = stage.clock

    def lost() -> str | None:
        return "cannot reach x: cut" if dark[0] <= clock.now() - 1000.0 < dark[1] else None

    wait = Wait(
        StageTail(clock, list(plot)), stage.log, terms, stage.audience, clock, clock.now(),
        None, None, True, lambda name, modified: Writer.UNKNOWN, out_of_reach=lost,
    )  # fmt: skip
    return wait.run(), stage.audience


@pytest.mark.parametrize("last", [death(), ready(), b""])
def test_in_the_dark_nothing_is_decided_but_the_time_limit(last: bytes) -> None:
    plot = [(1.0, start()), (5.0, shards(3) + last)]
    decision, audience = out_of_reach(plot, (5.0, 9e9), Terms(timeout=2000))
    assert decision.ending is Ending.TIME_LIMIT
    assert decision.waited_s >= 2000
    assert sum("cannot reach x" in shown.why for shown in audience.shown) > 1000


def test_time_in_the_dark_is_no_standing_still() -> None:
    plot = [(1.0, start()), (5.0, shards(3)), (2000.0, shards(64) + ready())]
    decision, _ = out_of_reach(plot, (10.0, 1800.0), Terms(timeout=5000))
    assert decision.ending is Ending.REACHED
    # The same silence in plain sight is one.
    decision, _ = out_of_reach(plot, (0.0, 0.0), Terms(timeout=5000))
    assert decision.ending is Ending.STALLED


def test_health_that_was_out_of_sight_did_not_rise() -> None:
    unseen = HealthSeen(Health.UNKNOWN, "health is out of sight")
    up = HealthSeen(Health.UP, "HTTP 200", 200)
    plot = [(1.0, start()), (5.0, shards(3))]
    stage = Stage(plot, health=[(0.0, unseen), (8.0, up)], terms=Terms(timeout=20))
    assert stage.run().ending is Ending.TIME_LIMIT
    stage = Stage(plot, health=[(0.0, DOWN), (8.0, up)], terms=Terms(timeout=20))
    assert stage.run().ending is Ending.REACHED
