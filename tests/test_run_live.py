"""`loopdetect run` with real servers, real signals and a real log."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from fake_server import DEATH, ENGINE_DEATH
from test_wait_live import DEADLINE_S, HERE, SERVER, SOON_S, port, until, url

__all__ = ["port"]

MARK = "GROUND_OF_THE_TEST"
RUN = (sys.executable, "-m", "loopdetect", "run")


def server(*words: str) -> tuple[str, ...]:
    return ("--", sys.executable, SERVER, *words)


def shell(script: str) -> tuple[str, ...]:
    return ("--", "sh", "-c", script.replace("SERVER", f"{sys.executable} {SERVER}"))


@dataclass
class Result:
    """What a run came to."""

    code: int
    out: str
    err: str
    at: float

    @property
    def document(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.out)
        return found


@dataclass
class Ground:
    """Where a test runs servers; what was started in it is gone when it is over."""

    folder: Path
    started: list[subprocess.Popen[str]] = field(default_factory=list)

    @property
    def log(self) -> Path:
        return self.folder / "server.log"

    def begin(self, *words: str, **options: Any) -> subprocess.Popen[str]:
        own = {"TMPDIR": str(self.folder), "PYTHONPATH": str(HERE.parent), MARK: str(self.folder)}
        process = subprocess.Popen(
            [*RUN, *words],
            cwd=self.folder,
            env={**os.environ, **own},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            **options,
        )
        self.started.append(process)
        return process

    def end(self, process: subprocess.Popen[str]) -> Result:
        out, err = process.communicate(timeout=DEADLINE_S)
        return Result(process.returncode, out, err, time.time())

    def run(self, *words: str) -> Result:
        return self.end(self.begin(*words))

    def logged(self, *words: str) -> Result:
        """Run with the log file and a JSON document."""
        return self.run("--log", "server.log", "--format", "json", "--timeout", "15s", *words)

    def living(self) -> list[int]:
        """Return the processes that descend from what this test started."""
        mark = f"{MARK}={self.folder}".encode()
        return [pid for pid in pids() if mark in environment(pid)]

    def clear(self) -> None:
        for process in self.started:
            if process.poll() is None:
                process.kill()
            process.communicate(timeout=DEADLINE_S)
        for pid in self.living():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def environment(pid: int) -> list[bytes]:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return []


def state_of(pid: int) -> str:
    """Return the letter that the kernel has for a process, Z for none."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "Z"


@pytest.fixture
def ground(tmp_path: Path) -> Iterator[Ground]:
    place = Ground(tmp_path)
    yield place
    place.clear()


# -- ready


def test_a_ready_server_is_left_running_and_its_log_grows_on(ground: Ground) -> None:
    done = ground.logged(*shell("SERVER ready & while :; do echo more; sleep 0.05; done"))
    child = done.document["child"]
    assert (done.code, done.document["wait"]["ending"]) == (0, "reached")
    assert done.document["wait"]["decided_by"] == ["log", "process"]
    assert (child["running"], child["exit_code"], child["log"]) == (True, None, "server.log")
    assert done.at - ground.log.stat().st_mtime < SOON_S
    size = ground.log.stat().st_size
    until(lambda: ground.log.stat().st_size > size)
    assert state_of(child["pid"]) != "Z"
    assert os.getsid(child["pid"]) == child["pid"]


def test_both_outputs_are_appended_in_order(ground: Ground) -> None:
    ground.log.write_text("earlier\n")
    done = ground.logged(*shell("echo one; echo two >&2; echo three; SERVER ready"))
    assert done.code == 0
    assert ground.log.read_text().startswith("earlier\none\ntwo\nthree\n(APIServer")


def test_the_answer_comes_soon_after_ready(ground: Ground) -> None:
    done = ground.logged(*server("ready"))
    assert done.code == 0
    assert done.at - ground.log.stat().st_mtime < SOON_S


def test_health_is_asked_and_its_owner_known(ground: Ground, port: int) -> None:
    done = ground.logged("--health", url(port), "--interval", "50ms", *server("ready", str(port)))
    wait = done.document["wait"]
    assert (done.code, wait["decided_by"], wait["health_status"]) == (0, ["log", "health"], 200)


def test_without_a_log_the_output_is_passed_on_and_goes_on_in_a_file_that_is_named(
    ground: Ground,
) -> None:
    done = ground.run(*server("ready"))
    assert done.code == 0
    [path] = ground.folder.glob("loopdetect-python*.log")
    assert f"its output goes to {path}" in done.out
    assert path.stat().st_mode & 0o777 == 0o600
    own = [line for line in done.err.splitlines() if not line.startswith("loopdetect: ")]
    assert "\n".join(own) + "\n" == path.read_text()
    [pid] = ground.living()
    os.kill(pid, signal.SIGTERM)
    until(lambda: "Finished server process" in path.read_text())


# -- not ready


def test_a_crash_gives_its_cause_and_its_exit_code(ground: Ground) -> None:
    done = ground.logged(*server("crash"))
    report = done.document["reports"][0]
    assert (done.code, done.document["wait"]["ending"]) == (1, "crashed")
    assert report["verdict"]["cause"]["text"].endswith(DEATH)
    assert report["runs"][-1]["exit"]["code"] == done.document["child"]["exit_code"] == 1
    assert done.at - ground.log.stat().st_mtime < SOON_S


def test_a_signal_that_kills_it_is_a_fact(ground: Ground) -> None:
    done = ground.logged(*shell("SERVER hang & sleep 0.3; kill -9 $! $$"))
    assert (done.code, done.document["wait"]["ending"]) == (1, "crashed")
    assert done.document["child"]["signal"] == "SIGKILL"
    assert "was killed by signal 9 (SIGKILL)" in done.document["wait"]["process"]


def test_an_end_without_a_word_shows_the_last_lines(ground: Ground) -> None:
    done = ground.run("--log", "server.log", *shell("echo boom; printf '\\033[2Jbang'; exit 7"))
    assert done.code == 1
    assert "(exit 7)" in done.out
    assert "    boom\n    \\x1b[2Jbang\n" in done.out


def test_an_end_with_code_0_is_a_stop_unless_the_log_tells_of_a_death(ground: Ground) -> None:
    done = ground.logged(*shell("SERVER stop"))
    assert (done.code, done.document["wait"]["ending"]) == (1, "stopped")
    assert done.document["wait"]["decided_by"] == ["log", "process"]
    ground.log.unlink()
    done = ground.logged(*shell("SERVER crash; exit 0"))
    assert (done.code, done.document["wait"]["ending"]) == (1, "crashed")
    assert DEATH in done.document["reports"][0]["verdict"]["cause"]["text"]


@pytest.mark.parametrize("end", ["kill -TERM $$", "exit 143", "exit 0"])
def test_who_was_asked_to_stop_is_stopped(ground: Ground, end: str) -> None:
    done = ground.logged(*shell(f"echo up; {end}"))
    assert (done.code, done.document["wait"]["ending"]) == (1, "stopped")
    assert done.document["wait"]["decided_by"] == ["process"]


def test_what_an_earlier_server_left_in_the_log_is_not_its_own(ground: Ground) -> None:
    assert ground.logged(*server("crash")).code == 1
    done = ground.logged(*shell("exit 3"))
    assert (done.code, done.document["wait"]["ending"]) == (1, "crashed")
    assert done.document["reports"][0]["verdict"]["cause"] is None
    assert "load-weights" not in done.document["wait"]["summary"]
    # Its own first failure is told though it died before it told of its start.
    done = ground.logged(*shell(f"echo '{DEATH}'; exit 3"))
    assert done.code == 1
    lines = ground.log.read_text().count("\n")
    assert done.document["reports"][0]["verdict"]["cause"]["line"] == lines
    assert ground.logged(*server("ready")).code == 0


def test_what_the_log_holds_may_be_left_out(ground: Ground) -> None:
    assert ground.logged(*server("crash")).code == 1
    assert ground.logged("--since-now", *server("crash")).code == 1


def test_the_second_death_of_the_same_kind_is_a_loop(ground: Ground) -> None:
    assert [ground.logged(*server("crash")).code for _ in range(2)] == [1, 5]


@pytest.mark.parametrize(
    ("options", "plot", "code"),
    [
        (("--timeout", "400ms"), "hang", 124),
        (("--stall", "400ms"), "hang", 6),
        (("--fail-on-line", "capacitor is warm"), "unknown", 1),
    ],
)
def test_a_server_that_is_given_up_is_stopped(
    ground: Ground, options: tuple[str, ...], plot: str, code: int
) -> None:
    done = ground.logged(*options, *server(plot))
    assert (done.code, done.document["child"]["running"]) == (code, False)
    assert ground.living() == []
    assert "Finished server process" in ground.log.read_text()


def test_leave_lets_it_go_on(ground: Ground) -> None:
    done = ground.logged("--timeout", "400ms", "--leave", *server("hang"))
    assert (done.code, done.document["child"]["running"]) == (124, True)
    assert ground.living() == [done.document["child"]["pid"]]


def test_workers_do_not_outlive_their_server(ground: Ground) -> None:
    done = ground.logged(*shell("sleep 60 & SERVER crash; exit 1"))
    assert done.code == 1
    assert ground.living() == []


def test_a_server_that_will_not_stop_is_killed(ground: Ground) -> None:
    script = "trap '' TERM; echo deaf; while :; do sleep 0.05; done"
    done = ground.run(
        "--log", "server.log", "--timeout", "300ms", "--grace", "200ms", *shell(script)
    )
    assert done.code == 124
    assert "got SIGTERM and SIGKILL and was killed by signal 9" in done.out
    assert ground.living() == []


def test_a_report_that_cannot_be_written_leaves_nothing_behind(ground: Ground) -> None:
    done = ground.run("--log", "server.log", "-o", "nowhere/x", *server("ready"))
    assert (done.code, done.out) == (2, "")
    assert done.err.splitlines()[-1].startswith("loopdetect: error: nowhere/x: cannot write it")
    assert ground.living() == []


# -- signals


SAYING = "trap 'echo got INT; exit 0' INT; trap 'echo got TERM; exit 0' TERM; echo up; "
LOOP = "while :; do sleep 0.05; done"


@pytest.mark.parametrize(
    ("number", "word", "code"), [(signal.SIGINT, "INT", 130), (signal.SIGTERM, "TERM", 143)]
)
@pytest.mark.parametrize("options", [(), ("--stay",)], ids=["before", "stay"])
def test_a_signal_is_passed_on(
    ground: Ground, number: signal.Signals, word: str, code: int, options: tuple[str, ...]
) -> None:
    goal = ("--ready-on-line", "^up") if options else ()
    running = ground.begin("--log", "server.log", "-q", *options, *goal, *shell(SAYING + LOOP))
    until(lambda: ground.log.exists() and "up" in ground.log.read_text())
    running.send_signal(number)
    done = ground.end(running)
    assert (done.code, done.out, done.err) == (code, "", "")
    assert ground.log.read_text().endswith(f"got {word}\n")
    assert ground.living() == []


def test_the_second_signal_does_not_wait_for_the_grace_time(ground: Ground) -> None:
    script = "trap 'echo got INT' INT; echo up; " + LOOP
    running = ground.begin("--log", "server.log", "-q", "--grace", "1h", *shell(script))
    until(lambda: ground.log.exists() and "up" in ground.log.read_text())
    running.send_signal(signal.SIGINT)
    until(lambda: "got INT" in ground.log.read_text())
    running.send_signal(signal.SIGINT)
    assert ground.end(running).code == 130
    assert ground.living() == []


def test_a_closed_terminal_takes_a_server_along_only_from_who_stays(ground: Ground) -> None:
    for options, code, left in (((), -signal.SIGHUP, 1), (("--stay",), 143, 0)):
        ground.log.unlink(missing_ok=True)
        running = ground.begin("--log", "server.log", *options, *server("hang"))
        until(lambda: ground.log.exists() and "3/12" in ground.log.read_text())
        running.send_signal(signal.SIGHUP)
        assert ground.end(running).code == code
        assert len(ground.living()) == left
        for pid in ground.living():
            os.kill(pid, signal.SIGKILL)
            until(lambda pid=pid: state_of(pid) == "Z")  # type: ignore[misc]


# -- staying


def test_who_stays_passes_the_output_on_and_ends_as_the_server_does(ground: Ground) -> None:
    done = ground.run("--stay", *server("crash-after-ready"))
    assert done.code == 1
    assert "staying with process" in done.out or "crashed while serving" in done.out
    assert ENGINE_DEATH in done.out.rpartition("crashed")[2]
    assert "Application startup complete." in done.err
    assert list(ground.folder.iterdir()) == []


def test_who_stays_quietly_says_nothing_of_its_own(ground: Ground) -> None:
    script = "echo one; echo two >&2; printf three; exit 5"
    done = ground.run("--stay", "-q", *shell(script))
    assert (done.code, done.out, done.err) == (1, "", "one\ntwo\nthree")


def test_a_stop_after_ready_is_a_good_end(ground: Ground) -> None:
    running = ground.begin("--stay", "--log", "server.log", "-o", "a.json", "--format", "json",
                           *server("ready"))  # fmt: skip
    report = ground.folder / "a.json"
    until(report.exists)
    child = json.loads(report.read_text())["child"]
    assert child["running"] is True
    os.kill(child["pid"], signal.SIGTERM)
    assert ground.end(running).code == 0
    document = json.loads(report.read_text())
    assert (document["wait"]["ending"], document["child"]["running"]) == ("stopped", False)
    assert document["wait"]["served_s"] is not None


def test_what_is_passed_on_does_not_hold_the_server_up(ground: Ground) -> None:
    script = "yes 'a line of some length, as servers print them' | head -c 9000000; echo end"
    done = ground.run("--stay", "-q", *shell(script))
    assert (done.code, len(done.err), done.err[-4:]) == (1, 9_000_004, "end\n")


# -- wrong calls


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((), "Missing argument 'CMD...'. See loopdetect run --help"),
        (("--", "no-such-server"), "no-such-server: no such command. Check its name and PATH"),
        (("--", "./plain"), "./plain: it is not executable. Run chmod +x ./plain"),
        (("--", "./folder"), "./folder: this is a folder, not a command"),
        (("--", "./lost"), "./lost: the interpreter that its first line names is not there"),
        (("--", "./broken"), "./broken: cannot be started: Exec format error"),
        (("--log", "folder", "--", "true"), "--log: folder: this is a folder"),
        (("--log", "no/where", "--", "true"), "--log: no/where: its folder does not exist"),
        (("--log", "/dev/null", "--", "true"), "--log: /dev/null: this is not a file"),
        (("--log", "pipe", "--", "true"), "--log: pipe: this is not a file"),
        (("--log", "-", "--", "true"), "--log: - is not a file"),
        (("--log", "packed", "--", "true"), "packed: this is gzip data"),
        (("-q", "--", "true"), "--quiet without --log"),
        (("--stay", "--leave", "--", "true"), "Give --log FILE too"),
        (("--health", "x", "--log", "a", "--", "true"), "'x' is no health URL"),
        (("--grace", "soon", "--", "true"), "not a duration"),
    ],
)
def test_a_wrong_call_is_one_line_and_code_2(
    ground: Ground, words: tuple[str, ...], told: str
) -> None:
    there = ("plain", "folder", "pipe", "packed", "lost", "broken")
    (ground.folder / "plain").write_text("echo\n")
    (ground.folder / "folder").mkdir()
    os.mkfifo(ground.folder / "pipe")
    (ground.folder / "packed").write_bytes(b"\x1f\x8b\x08\x00" + bytes(60))
    for name, text in (("lost", "#!/no/such/shell\n"), ("broken", "\x7fELF")):
        (ground.folder / name).write_text(text)
        (ground.folder / name).chmod(0o755)
    done = ground.run(*words)
    assert (done.code, done.out) == (2, "")
    assert told in done.err
    assert done.err.count("\n") == 1
    assert {path.name for path in ground.folder.iterdir()} == set(there)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_log_that_may_not_be_written(ground: Ground) -> None:
    ground.log.touch(0o444)
    done = ground.run("--log", "server.log", "--", "true")
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert "no permission to write it" in done.err


def test_the_options_end_where_the_command_begins(ground: Ground) -> None:
    done = ground.run("--log", "server.log", "sh", "-c", 'echo "$@"', "x", "--", "--log", "y", "-h")
    assert done.code == 1
    assert ground.log.read_text() == "-- --log y -h\n"
