"""Logs judged on a Ray cluster: a real one of this machine, and one that fails in every way."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from loopdetect import __version__
from loopdetect.cli.main import main
from loopdetect.errors import LoopdetectError
from loopdetect.model import Policy
from loopdetect.profiles import load_library
from loopdetect.scan import cluster
from loopdetect.scan.work import Job, Judge, parcel
from loopdetect.source.histories import History

ROOT = Path(__file__).parent.parent
LOGS = sorted((ROOT / "fixtures/vllm").glob("*.log"))[::25]
LIMIT_S = 240

Capture = pytest.CaptureFixture[str]


class FakeRay:
    """Runs each task when it is asked for, in this process, the newest first."""

    class exceptions:  # noqa: N801
        class RayError(Exception):
            """Whatever Ray says."""

        class RayTaskError(RayError):
            """The task raised `cause`."""

            def __init__(self, cause: BaseException) -> None:
                super().__init__(f"traceback\n{cause}")
                self.cause = cause

        class WorkerCrashedError(RayError):
            """The worker is gone."""

    def __init__(self) -> None:
        self.most_at_once = self.puts = 0
        self.connected: list[object] = []
        self.dies: str | None = None
        self.raises: Exception | None = None
        self.signal: signal.Signals | None = None
        self._objects: dict[int, Any] = {}

    def init(self, address: str, **_: object) -> None:
        if address == "nowhere":
            raise ConnectionError("Could not find any running Ray instance.\nmore")
        self.connected.append(address)

    def shutdown(self) -> None:
        print("what was held back")
        self.connected.append(None)

    def cluster_resources(self) -> dict[str, float]:
        return {"CPU": 2.0}

    def put(self, value: object) -> int:
        self.puts += 1
        return self._keep(value)

    def _keep(self, value: object) -> int:
        self._objects[len(self._objects)] = value
        return len(self._objects) - 1

    def remote(self, **_: object) -> Any:
        return lambda task: SimpleNamespace(remote=lambda *words: self._keep((task, words)))

    def wait(self, references: list[int], num_returns: int) -> tuple[list[int], list[int]]:
        self.most_at_once = max(self.most_at_once, len(references))
        if self.signal is not None:
            # As Ray waits: an interrupt comes through as a new one, anything else is lost.
            with suppress(Exception):
                try:
                    os.kill(os.getpid(), self.signal)
                except KeyboardInterrupt:
                    raise KeyboardInterrupt from None
        return references[-num_returns:], references[:-num_returns]

    def get(self, reference: int) -> object:
        value = self._objects[reference]
        if not isinstance(value, tuple):
            return value
        task, words = value
        if self.dies and words[-1].name.endswith(self.dies):
            raise self.exceptions.WorkerCrashedError("The worker died.\nmore")
        try:
            if self.raises:
                raise self.raises
            return task(*words)
        except Exception as problem:
            raise self.exceptions.RayTaskError(problem) from problem


@pytest.fixture
def ray(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeRay]:
    fake = FakeRay()
    monkeypatch.setattr(cluster, "_ray", lambda: fake)
    monkeypatch.setattr(cluster, "_judges", {})
    return fake


def judge() -> Judge:
    return Judge(load_library(), Job(None, Policy(), None, lines=True))


def tasks() -> Iterator[tuple[int, History]]:
    return ((number, History((str(path),))) for number, path in enumerate(LOGS))


def test_the_cluster_judges_as_this_process_does(ray: FakeRay) -> None:
    here = judge()
    done = dict(cluster.judged(tasks(), here, "auto", None))
    assert done == {number: here(history) for number, history in tasks()}
    assert ray.connected == ["auto", None]
    assert ray.puts == 1


def test_the_library_is_loaded_once_a_worker(ray: FakeRay, monkeypatch: pytest.MonkeyPatch) -> None:
    loads: list[object] = []
    true_judge = type(parcel(judge())).judge
    monkeypatch.setattr(
        "loopdetect.scan.work.Parcel.judge", lambda self: loads.append(1) or true_judge(self)
    )
    assert len(list(cluster.judged(tasks(), judge(), "auto", None))) == len(LOGS) > 5
    assert loads == [1]


@pytest.mark.parametrize(("at_once", "expected"), [(3, 3), (None, len(LOGS))])
def test_only_so_many_tasks_wait_at_a_time(
    at_once: int | None, expected: int, ray: FakeRay
) -> None:
    assert len(list(cluster.judged(tasks(), judge(), "auto", at_once))) == len(LOGS)
    assert ray.most_at_once == expected


def test_a_worker_of_the_cluster_that_dies_is_one_unreadable_log(
    ray: FakeRay, capsys: Capture
) -> None:
    ray.dies = LOGS[1].name
    names = [str(path) for path in LOGS[:4]]
    assert main(["scan", "--cluster", "auto", "--format", "json", *names]) == 0
    out, err = capsys.readouterr()
    document = json.loads(out)
    assert (document["logs"], document["unreadable"]) == (3, 1)
    assert [report["source"] for report in document["reports"]] == [names[0], *names[2:]]
    assert err.count("\n") == 1
    assert f"{LOGS[1].name}: the worker that read it is gone: The worker died." in err


@pytest.mark.parametrize(
    ("problem", "line"),
    [
        (ModuleNotFoundError("No module named 'loopdetect'"), "cannot run loopdetect: No module"),
        (LoopdetectError("there is loopdetect 0.0.1 on a node"), "there is loopdetect 0.0.1"),
    ],
)
def test_a_cluster_without_loopdetect_is_one_line(
    problem: Exception, line: str, ray: FakeRay, capsys: Capture
) -> None:
    ray.raises = problem
    assert main(["scan", "--cluster", "auto", str(LOGS[0])]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert line in err
    assert f"Install loopdetect-llm {__version__} on every node" in err
    assert ray.connected == ["auto", None]


def test_relative_paths_are_those_of_whoever_asks(
    ray: FakeRay, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.log").write_bytes(LOGS[0].read_bytes())
    shared = ray.put(parcel(judge()))
    (tmp_path / "node").mkdir()
    monkeypatch.chdir(tmp_path / "node")
    outcome = cluster.judge_there([shared], __version__, History(("a.log",)))
    assert outcome.log is not None
    assert outcome.log.source == "a.log"


def test_what_the_threads_of_ray_print_is_no_output(ray: FakeRay, capsys: Capture) -> None:
    def done() -> None:
        thread = threading.Thread(target=print, args=["(raylet) A worker died"])
        thread.start()
        thread.join()
        print("ours")

    for _ in cluster.judged(islice(tasks(), 1), judge(), "auto", None):
        done()
    assert capsys.readouterr().out == "ours\n"
    done()
    assert capsys.readouterr().out == "(raylet) A worker died\nours\n"


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_leaves_the_cluster(
    number: signal.Signals, code: int, ray: FakeRay, capsys: Capture
) -> None:
    ray.signal = number
    assert main(["scan", "--cluster", "auto", str(LOGS[0])]) == code
    assert ray.connected == ["auto", None]
    assert capsys.readouterr() == ("", "")


def test_another_version_on_a_node_is_refused() -> None:
    with pytest.raises(LoopdetectError, match="on a node, not 99"):
        cluster.judge_there([0], "99", History(("x",)))


def test_a_cluster_that_is_not_there_is_one_line(ray: FakeRay, capsys: Capture) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
        for address, said in {
            "nowhere": "Could not find any running Ray instance.",
            f"127.0.0.1:{port}": "Connection refused",
            f"ray://127.0.0.1:{port}": "Connection refused",
        }.items():
            assert main(["scan", "--cluster", address, str(LOGS[0])]) == 2
            out, err = capsys.readouterr()
            assert (out, err.count("\n")) == ("", 1)
            assert f"cannot reach the cluster {address}: {said}" in err
    assert ray.connected == []


def test_without_ray_it_is_said_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    assert main(["scan", "--cluster", "auto", str(LOGS[0])]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert "--cluster needs the package ray" in err
    assert "Install it: pip install 'loopdetect-llm[cluster]'" in err


@pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="ray is not installed")
def test_a_real_cluster_tells_what_this_process_tells(tmp_path: Path) -> None:
    names = [str(path) for path in LOGS[:8]]
    told = []
    for who in (["--jobs", "1"], ["--cluster", "local"]):
        command = [
            sys.executable,
            "-m",
            "loopdetect",
            "scan",
            "--format",
            "json",
            *who,
            *names,
            "-",
        ]
        done = subprocess.run(
            command, input=LOGS[9].read_text("utf-8"), capture_output=True, text=True, check=False,
            timeout=LIMIT_S, env=os.environ | {"PYTHONPATH": str(ROOT), "RAY_TMPDIR": "/tmp"},
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        told.append((done.stdout, done.stderr))
    assert len(json.loads(told[0][0])["reports"]) >= 9
    assert told[1] == told[0]
