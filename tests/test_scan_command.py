"""`loopdetect scan` from end to end: real logs, real workers, real signals."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import multiprocessing
import os
import pty
import re
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import psutil
import pytest

from loopdetect.cli.main import main
from loopdetect.scan import local, work
from loopdetect.scan.outcome import Outcome
from loopdetect.source.histories import History

ROOT = Path(__file__).parent.parent
FIXTURES = ROOT / "fixtures"
LOOP = FIXTURES / "vllm/crash-loop-truncated-shard.log"
READY = FIXTURES / "vllm/tp2-ready.log"
STOPPED = FIXTURES / "llama-cpp/clean-stop.log"
FLAPPING = FIXTURES / "sglang/gpu-flap-ready.log"
SOME = sorted(FIXTURES.rglob("*.log"))[::12]
FORMATS = ("text", "json", "jsonl", "markdown")
PATIENCE_S = 60.0
ENVIRONMENT = os.environ | {"PYTHONPATH": str(ROOT)}

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Three nodes: two crash-loop alike, one of them in a packed log; the rest is well."""
    monkeypatch.chdir(tmp_path)
    for name, source in {
        "n1/a.log": LOOP, "n1/b.log": READY, "n2/c.log": STOPPED, "n3/d.log": FLAPPING,
    }.items():  # fmt: skip
        put(tmp_path / "logs" / name, source.read_bytes())
    put(tmp_path / "logs/n2/e.log.gz", gzip.compress(LOOP.read_bytes()))
    return tmp_path / "logs"


def put(path: Path, data: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def scanned(capsys: Capture, *arguments: object, code: int = 0) -> dict[str, Any]:
    assert main(["scan", "--format", "json", *map(str, arguments)]) == code
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    return document


def scan(*arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "loopdetect", "scan", *map(str, arguments)]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, env=ENVIRONMENT, **options
    )


# -- what it says


def test_logs_that_failed_alike_are_one_group(fleet: Path, capsys: Capture) -> None:
    document = scanned(capsys, "logs")
    assert (document["schema_version"], document["logs"], document["unreadable"]) == (1, 5, 0)
    assert document["states"] == {
        "loading": 0, "ready": 1, "stalled": 0, "stopped": 1, "crashed": 0, "crash-looping": 3,
        "unknown": 0,
    }  # fmt: skip
    first, second = document["groups"]
    assert (first["server"], first["phase"], first["reason"]) == (
        "vllm", "load-weights", "corrupt-weights",
    )  # fmt: skip
    assert (first["logs"], first["runs"], first["crashes"]) == (2, 8, 8)
    assert first["states"] == {"crash-looping": 2}
    assert first["first_seen"] == "--11-29T22:42:51"
    assert first["hint"].startswith("Delete the named file")
    assert [(e["file"], e["line"]) for e in first["examples"]] == [
        ("logs/n1/a.log", 983), ("logs/n2/e.log.gz", 983),
    ]  # fmt: skip
    assert (second["server"], second["logs"], second["phase"]) == ("sglang", 1, "serving")


def test_the_fingerprint_of_a_group_is_that_of_the_runs(fleet: Path, capsys: Capture) -> None:
    document = scanned(capsys, "logs")
    runs = {
        run["fingerprint"]
        for report in document["reports"]
        for run in report["runs"]
        if run["outcome"] == "crashed"
    }
    assert {group["fingerprint"] for group in document["groups"]} == runs - {None}


def test_the_text_is_a_table_with_an_example_and_a_hint_each(fleet: Path, capsys: Capture) -> None:
    assert main(["scan", "logs"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    lines = out.splitlines()
    assert lines[0] == "Failures, by the logs that they hit"
    assert lines[1].split()[:6] == ["logs", "runs", "crashes", "server", "phase", "reason"]
    assert re.split(r"  +", lines[2].strip())[:6] == [
        "2", "8", "8", "vLLM", "load-weights", "corrupt-weights",
    ]  # fmt: skip
    assert lines[3].startswith("    logs/n1/a.log:983: safetensors._safetensors_rust.Safetensor")
    assert lines[4].startswith("    Hint: Delete the named file")
    assert lines[-1] == "5 logs: 3 crash-looping, 1 stopped, 1 ready"
    assert "logs/n2/e.log.gz" not in out


def test_more_and_less_can_be_told(fleet: Path, capsys: Capture) -> None:
    assert main(["scan", "-v", "logs"]) == 0
    out = capsys.readouterr().out
    assert "logs/n2/e.log.gz:983: " in out
    assert re.search(r"^    Fingerprint: [0-9a-f]{12}$", out, re.M)
    assert main(["scan", "-q", "logs"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 6
    assert main(["scan", "-q", "--top", "1", "logs"]) == 0
    assert "  … 1 more group (--top 0 shows all)\n" in capsys.readouterr().out


def test_markdown_has_the_table_and_the_examples(fleet: Path, capsys: Capture) -> None:
    assert main(["scan", "--format", "markdown", "logs"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "## 5 logs: 3 crash-looping, 1 stopped, 1 ready"
    assert lines[4].startswith("| 1 | 2 | 8 | 8 | vLLM | load-weights | corrupt-weights |")
    assert lines[7].startswith("1. `logs/n1/a.log:983`: `safetensors")


def test_json_lines_are_the_reports_in_the_order_of_the_paths(fleet: Path, capsys: Capture) -> None:
    assert main(["scan", "--format", "jsonl", "logs"]) == 0
    reports = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [report["source"] for report in reports] == [
        "logs/n1/a.log", "logs/n1/b.log", "logs/n2/c.log", "logs/n2/e.log.gz", "logs/n3/d.log",
    ]  # fmt: skip


@pytest.mark.parametrize("form", FORMATS)
def test_a_file_gets_what_the_screen_would(form: str, fleet: Path, capsys: Capture) -> None:
    assert main(["scan", "--format", form, "logs"]) == 0
    printed = capsys.readouterr().out
    assert main(["scan", "--format", form, "-o", "logs/report", "logs"]) == 0
    assert capsys.readouterr() == ("", "")
    assert (fleet / "report").read_text("utf-8") == printed
    assert main(["scan", "--format", form, "-o", "logs/report", "logs"]) == 0
    assert (fleet / "report").read_text("utf-8") == printed


def test_only_some_states_can_be_wanted(fleet: Path, capsys: Capture) -> None:
    document = scanned(capsys, "--state", "ready,stopped", "logs")
    assert [r["verdict"]["state"] for r in document["reports"]] == ["ready", "stopped"]
    assert document["groups"] == []
    assert document["states"]["crash-looping"] == 3


@pytest.mark.parametrize(
    ("wanted", "code"), [("crash-looping", 1), ("crashed,stalled", 0), ("ready", 1)]
)
def test_fail_on_makes_a_state_a_finding(wanted: str, code: int, fleet: Path) -> None:
    assert main(["scan", "--fail-on", wanted, "--state", "unknown", "logs"]) == code


def test_only_recent_logs_can_be_wanted(fleet: Path, capsys: Capture) -> None:
    for name in ("n1/a.log", "n3/d.log"):
        os.utime(fleet / name, (1_700_000_000, 1_700_000_000))
    assert scanned(capsys, "--since", "2h", "logs")["logs"] == 3
    assert scanned(capsys, "--since", "2023-11-14T22:13:20Z", "logs")["logs"] == 5
    assert main(["scan", "--since", "2999-01-01", "logs"]) == 0
    assert capsys.readouterr().out == "0 logs\n"
    assert main(["scan", "--since", "soon", "logs"]) == 2
    assert "or how long ago: 2h, 7d" in capsys.readouterr().err


def test_the_clock_can_be_given(tmp_path: Path, capsys: Capture) -> None:
    lines = LOOP.read_text("utf-8").splitlines(keepends=True)[:60]
    log = put(tmp_path / "a.log", "".join(lines).encode())
    assert scanned(capsys, log)["states"]["stalled"] == 0
    assert scanned(capsys, "--now", "2026-11-30T12:00:00", log)["states"]["stalled"] == 1


# -- the same as inspect, whoever reads


@pytest.mark.parametrize("join", ["--join", "--no-join"])
def test_the_reports_are_those_of_inspect(join: str, capsys: Capture) -> None:
    names = [str(path) for path in SOME]
    own = [join] if join == "--no-join" else []
    assert main(["inspect", "--format", "json", *own, *names]) == 0
    inspected = json.loads(capsys.readouterr().out)["reports"]
    assert len(inspected) >= 90
    assert scanned(capsys, "--jobs", 2, join, *names)["reports"] == inspected


@pytest.mark.parametrize("form", FORMATS)
def test_any_number_of_jobs_tells_the_same(form: str, capsys: Capture) -> None:
    names = [*map(str, SOME[::4]), "gone.log"]
    told = []
    for jobs in ("1", "3", "40"):
        assert main(["scan", "--format", form, "--jobs", jobs, *names]) == 2
        told.append(capsys.readouterr())
    assert told[0].out
    assert told[1] == told[0]
    assert told[2] == told[0]


def test_the_groups_do_not_depend_on_the_order_of_the_paths(capsys: Capture) -> None:
    names = [str(path) for path in SOME]
    counts = []
    for paths in (names, names[::-1], names[1::2] + names[::2]):
        groups = scanned(capsys, "--jobs", 2, *paths)["groups"]
        counts.append(
            [{k: v for k, v in g.items() if k not in ("examples", "text", "hint")} for g in groups]
        )
    assert len(counts[0]) > 10
    assert counts[1] == counts[0]
    assert counts[2] == counts[0]


def judge(*, profile: str | None = None, library: Any = None) -> work.Judge:
    from loopdetect.model import Policy
    from loopdetect.profiles import load_library

    job = work.Job(profile, Policy(loop_after=5), 1e9, None, lines=True)
    return work.Judge(library or load_library(), job)


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_workers_of_either_kind_judge_alike(method: str) -> None:
    here = judge()
    tasks = [(n, History((str(path),))) for n, path in enumerate(SOME[:6])]
    done = dict(local.judged(iter(tasks), here, 2, method))
    assert done == {n: here(history) for n, history in tasks}
    assert all(outcome.lines for outcome in done.values())


PROFILE = """
name = "acme"
title = "Acme"
[[identify]]
id = "hello"
pattern = '''^acme says hello'''
literal = "acme says hello"
samples = ["acme says hello"]
[[ready]]
id = "up"
pattern = '''^acme is up'''
literal = "acme is up"
samples = ["acme is up"]
"""


def test_a_profile_of_ones_own_reaches_other_interpreters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from loopdetect.profiles import load_library

    profile = put(tmp_path / "acme.toml", PROFILE.encode())
    monkeypatch.setenv("LOOPDETECT_PROFILES", str(tmp_path / "nothing"))
    parcel = work.parcel(judge(profile="acme", library=load_library([profile])))
    assert [name for name, _ in parcel.profiles] == ["acme.toml"]
    profile.unlink()
    log = put(tmp_path / "x.log", b"acme says hello\nacme is up\n")
    outcome = parcel.judge()(History((str(log),)))
    assert outcome.log is not None
    report = json.loads(outcome.lines)
    assert (report["server"]["name"], report["verdict"]["state"]) == ("acme", "ready")
    assert os.environ["LOOPDETECT_PROFILES"] == str(tmp_path / "nothing")


# -- what is no log


PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "gz": gzip.compress, "xz": lzma.compress, "bz2": bz2.compress, "txt": bytes,
}  # fmt: skip


@pytest.mark.parametrize("packer", PACKERS)
def test_packed_logs_are_told_by_their_bytes(packer: str, tmp_path: Path, capsys: Capture) -> None:
    log = put(tmp_path / "server.log", PACKERS[packer](LOOP.read_bytes()))
    assert scanned(capsys, log)["groups"][0]["reason"] == "corrupt-weights"


def test_what_is_no_log_is_one_line_each_and_the_rest_goes_on(fleet: Path, capsys: Capture) -> None:
    put(fleet / "n1/model.gguf", b"GGUF" + bytes(2000))
    put(fleet / "n1/half.log.gz", gzip.compress(os.urandom(90_000))[:9000])
    put(fleet / "n1/noise.bin", bytes(range(256)) * 20)
    for jobs in ("1", "2"):
        assert main(["scan", "--jobs", jobs, "logs"]) == 0
        out, err = capsys.readouterr()
        assert [line.split(": ")[2] for line in err.splitlines()] == [
            "logs/n1/half.log.gz", "logs/n1/model.gguf", "logs/n1/noise.bin",
        ]  # fmt: skip
        assert "5 logs; 3 could not be read: 3 crash-looping" in out
    assert main(["scan", "-q", "logs"]) == 0
    out, err = capsys.readouterr()
    assert (err, "3 could not be read" in out) == ("", True)


def test_a_log_that_is_cut_short_is_judged_and_complained_of(
    tmp_path: Path, capsys: Capture
) -> None:
    log = put(tmp_path / "a.log.gz", gzip.compress(LOOP.read_bytes(), 1)[:-9])
    assert main(["scan", "--format", "json", str(log)]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["states"]["crash-looping"] == 1
    assert err.count("\n") == 1
    assert "the gzip data ends too soon" in err


@pytest.mark.parametrize(
    ("paths", "line"),
    [
        (["gone.log"], "gone.log: no such file. Check the path"),
        (["*.gone"], "*.gone: no file matches. Check the pattern"),
        (["empty"], "empty: there is no log in it. Give the folder that holds the logs"),
        (["model.gguf"], "model.gguf: this is model weights, not a log. "),
    ],
)
def test_where_nothing_can_be_read_it_is_exit_2(
    paths: list[str], line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    put(tmp_path / "model.gguf", b"GGUF" + bytes(2000))
    assert main(["scan", *paths]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith(f"loopdetect: error: {line}")
    assert main(["scan", "--format", "json", *paths]) == 2
    assert json.loads(capsys.readouterr().out)["reports"] == []


def test_one_path_that_is_missing_is_exit_2_with_the_report(fleet: Path, capsys: Capture) -> None:
    assert main(["scan", "--fail-on", "ready", "logs", "gone.log"]) == 2
    out, err = capsys.readouterr()
    assert "5 logs: " in out
    assert err == "loopdetect: error: gone.log: no such file. Check the path\n"
    (fleet / "empty").mkdir()
    assert main(["scan", "logs/empty", "logs/n1"]) == 0


def test_a_bug_in_one_log_is_exit_3_and_the_rest_goes_on(
    fleet: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    true_open = work.open_log

    def broken(name: str) -> Iterator[bytes]:
        if name.endswith("b.log"):
            raise KeyError("not\x1bfound")
        return true_open(name)

    monkeypatch.setattr(work, "open_log", broken)
    for jobs in ("1", "2"):
        assert main(["scan", "-q", "--jobs", jobs, "logs"]) == 3
        out, err = capsys.readouterr()
        assert "4 logs; 1 could not be read" in out
        assert err.count("\n") == 1
        assert "logs/n1/b.log: a bug in loopdetect" in err
        assert "\x1b" not in err


def test_too_little_memory_for_one_log_is_said_of_it(
    fleet: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    def large(name: str) -> Iterator[bytes]:
        raise MemoryError

    monkeypatch.setattr(work, "open_log", large)
    assert main(["scan", "logs/n1/a.log"]) == 2
    assert "a.log: not enough memory to read it" in capsys.readouterr().err


def test_nothing_hostile_reaches_the_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.chdir(tmp_path)
    evil = "\x1b]0;owned\x07\u202e"
    data = LOOP.read_bytes().replace(b"incomplete metadata", f"incomplete {evil}".encode())
    name = os.fsdecode(f"a{evil}|`x`".encode() + b"\xff.log")
    put(tmp_path / "logs" / name, data)
    put(tmp_path / "logs" / f"{evil}.bin", b"GGUF" + bytes(2000))
    for form in FORMATS:
        for jobs in ("1", "2"):
            assert main(["scan", "-v", "--format", form, "--jobs", jobs, "logs"]) == 0
            out, err = capsys.readouterr()
            assert err.count("\n") == 1
            for text in (out, err):
                assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e\ud800-\udfff]", text)
            assert "owned" in out


# -- where the bytes are


def test_standard_input_is_one_of_the_logs(monkeypatch: pytest.MonkeyPatch, fleet: Path) -> None:
    done = scan("--jobs", 2, "logs/n1", "-", input=LOOP.read_text("utf-8"))
    assert done.returncode == 0
    assert done.stdout.splitlines()[-1] == "3 logs: 2 crash-looping, 1 ready"


def test_a_pipe_of_the_shell_is_read_too(fleet: Path) -> None:
    reader, writer = os.pipe()
    feeder = threading.Thread(
        target=lambda: (os.write(writer, LOOP.read_bytes()[:60_000]), os.close(writer))
    )
    feeder.start()
    done = scan("--jobs", 2, "logs/n1", f"/dev/fd/{reader}", pass_fds=[reader])
    feeder.join()
    os.close(reader)
    assert "3 logs: " in done.stdout


def test_objects_are_logs_like_files(fleet: Path, capsys: Capture) -> None:
    fsspec = pytest.importorskip("fsspec", reason="addresses need fsspec")
    system = fsspec.filesystem("memory")
    top = f"/fleet-{uuid.uuid4().hex}"
    for path in fleet.rglob("*.*"):
        if path.is_file():
            system.pipe(f"{top}/{path.relative_to(fleet)}", path.read_bytes())
    try:
        local_document = scanned(capsys, "logs")
        document = scanned(capsys, "--jobs", 2, f"memory:/{top}")
    finally:
        system.rm(top, recursive=True)
    text = json.dumps(document).replace(f"memory:/{top}/", "logs/")
    assert json.loads(text) == local_document


def test_an_object_store_that_is_not_there_is_one_line(capsys: Capture) -> None:
    pytest.importorskip("fsspec", reason="addresses need fsspec")
    assert main(["scan", "memory://gone/logs"]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert "memory://gone/logs: no such object" in err


# -- workers that die, signals, readers that go


def test_a_worker_that_dies_is_one_unreadable_log(
    fleet: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    true_open = work.open_log

    def deadly(name: str) -> Iterator[bytes]:
        if name.endswith(("a.log", "d.log")):
            os.kill(os.getpid(), signal.SIGKILL)
        return true_open(name)

    monkeypatch.setattr(work, "open_log", deadly)
    assert main(["scan", "--jobs", "2", "logs"]) == 0
    out, err = capsys.readouterr()
    assert "3 logs; 2 could not be read: 1 crash-looping, 1 stopped, 1 ready" in out
    assert [line.split(" the process")[0] for line in err.splitlines()] == [
        "loopdetect: error: logs/n1/a.log:", "loopdetect: error: logs/n3/d.log:",
    ]  # fmt: skip
    assert "(SIGKILL)" in err


@pytest.mark.parametrize(
    ("problem", "line"),
    [
        (ValueError("no\nluck"), "a worker cannot begin: no luck"),
        (SystemExit(7), "a worker ended before it began (exit code 7)."),
    ],
)
def test_workers_that_cannot_begin_end_the_scan(
    problem: BaseException, line: str, fleet: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    def fail(self: object) -> None:
        raise problem

    monkeypatch.setattr(local, "start_method", lambda remote: "fork")
    begin = local._Pool.__init__

    def broken(self: Any, *arguments: Any) -> None:
        begin(self, *arguments)
        self._begin = lambda: fail(self)

    monkeypatch.setattr(local._Pool, "__init__", broken)
    assert main(["scan", "--jobs", "2", "logs"]) == 2
    err = capsys.readouterr().err
    assert err.startswith(f"loopdetect: error: {line}")
    assert err.count("\n") == 1
    assert multiprocessing.active_children() == []


@pytest.fixture
def endless(tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """A scan whose workers have much to read."""
    for number in range(4):
        put(tmp_path / f"{number}/big.log", b"hello\n" * 400_000)
        os.truncate(tmp_path / f"{number}/big.log", 1 << 40)
    started: list[subprocess.Popen[str]] = []

    def start(*arguments: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "loopdetect", "scan", *arguments, str(tmp_path)]
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            start_new_session=True, env=ENVIRONMENT,
        )  # fmt: skip
        started.append(process)
        return process

    yield start
    for process in started:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def until(true: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not true():
        assert time.monotonic() < deadline
        threading.Event().wait(0.01)


def workers_of(process: subprocess.Popen[str], count: int) -> list[psutil.Process]:
    """Wait until so many workers read, and return them."""
    found: list[psutil.Process] = []

    def reading() -> bool:
        assert process.poll() is None
        found[:] = psutil.Process(process.pid).children()
        return len(found) == count and all(
            any(f.path.endswith("big.log") for f in worker.open_files()) for worker in found
        )

    until(reading)
    return found


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
@pytest.mark.parametrize(
    ("number", "group", "code"),
    [(signal.SIGINT, True, 130), (signal.SIGINT, False, 130), (signal.SIGTERM, False, 143)],
    ids=["ctrl-c", "interrupt", "terminate"],
)
def test_a_signal_ends_the_workers_too(
    number: signal.Signals, group: bool, code: int, endless: Any
) -> None:
    process = endless("--jobs", "2")
    workers = workers_of(process, 2)
    (os.killpg if group else os.kill)(process.pid, number)
    out, err = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, out, err) == (code, "", "")
    assert [worker for worker in workers if worker.is_running()] == []


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_workers_do_not_outlive_a_scan_that_is_killed(endless: Any) -> None:
    process = endless("--jobs", "2")
    workers = workers_of(process, 2)
    process.kill()
    for worker in workers:
        worker.resume()
    process.wait()
    # They read on to the end of a log at most: it is taken from them.
    for worker in workers:
        for file in worker.open_files():
            if file.path.endswith("big.log"):
                os.truncate(file.path, 0)
    until(lambda: not [worker for worker in workers if worker.is_running()])


def test_a_reader_that_goes_away_ends_it_quietly(fleet: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as gone:
        command = [sys.executable, "-m", "loopdetect", "scan", "--format", "jsonl", "--jobs", "2"]
        done = subprocess.run(
            [*command, str(fleet)], stdout=gone, stderr=subprocess.PIPE, text=True, check=False,
            env=ENVIRONMENT,
        )  # fmt: skip
    assert (done.returncode, done.stderr) == (141, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("form", FORMATS)
def test_a_full_disk_is_one_line_and_exit_2(form: str, fleet: Path) -> None:
    done = scan("--format", form, "-o", "/dev/full", fleet)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "/dev/full: cannot write it: No space left" in done.stderr


# -- on a terminal


def on_terminal(*arguments: str, cwd: Path, **environment: str) -> tuple[str, str]:
    """Run with standard error on a terminal; return what was written there, and the output."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "loopdetect", "scan", *arguments],
        stdout=subprocess.PIPE, stderr=theirs, cwd=cwd,
        env=ENVIRONMENT | {"TERM": "xterm", "COLUMNS": "120"} | environment,
    )  # fmt: skip
    os.close(theirs)
    written = io.BytesIO()

    def drain() -> None:
        try:
            while data := os.read(ours, 65536):
                written.write(data)
        except OSError:
            return

    reader = threading.Thread(target=drain)
    reader.start()
    out, _ = process.communicate(timeout=PATIENCE_S)
    reader.join()
    os.close(ours)
    assert process.returncode == 0
    return written.getvalue().decode(), out.decode()


class TestOnATerminal:
    """Only there is it shown how far the scan is."""

    ARGUMENTS: ClassVar = ("--jobs", "2", "logs")

    def test_the_logs_that_are_done_are_counted(self, fleet: Path) -> None:
        shown, out = on_terminal(*self.ARGUMENTS, cwd=fleet.parent)
        assert "5/5 logs, 3 failed" in shown
        assert out.splitlines()[-1] == "5 logs: 3 crash-looping, 1 stopped, 1 ready"

    def test_unreadable_logs_are_said_between(self, fleet: Path) -> None:
        put(fleet / "n1/\x1b[31mmodel[red].gguf", b"GGUF" + bytes(2000))
        shown, _ = on_terminal(*self.ARGUMENTS, cwd=fleet.parent)
        assert r"n1/\x1b[31mmodel[red].gguf: this is model weights" in shown

    @pytest.mark.parametrize("words", [("-q",), ("-q", "--format", "json")])
    def test_quiet_shows_nothing(self, words: tuple[str, ...], fleet: Path) -> None:
        assert on_terminal(*words, *self.ARGUMENTS, cwd=fleet.parent)[0] == ""

    def test_a_dumb_terminal_gets_nothing(self, fleet: Path) -> None:
        assert on_terminal(*self.ARGUMENTS, cwd=fleet.parent, TERM="dumb")[0] == ""


def test_no_terminal_gets_nothing(fleet: Path) -> None:
    assert scan("--jobs", 2, fleet).stderr == ""


def test_an_outcome_holds_no_more_than_is_told() -> None:
    quiet = work.Judge(judge().library, work.Job(None, judge().job.policy, None))
    outcome = quiet(History((str(LOOP),)))
    assert isinstance(outcome, Outcome)
    assert outcome.lines == ""
