"""Several files that are one history: grouped by name, read in the order of time, told as one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from loopdetect.cli.main import main
from loopdetect.source.histories import History, apart, histories, joined

FIXTURES = Path(__file__).parent.parent / "fixtures"


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (["a.log", "b.log"], [History(("a.log",)), History(("b.log",))]),
        (
            ["x/s.log", "x/s.log.1", "x/s.log.2.gz"],
            [History(("x/s.log.2.gz", "x/s.log.1", "x/s.log"))],
        ),
        (
            ["s.log-20260102", "s.log", "s.log-20260101"],
            [History(("s.log-20260101", "s.log-20260102", "s.log"))],
        ),
        (["s.log", "s.log.old"], [History(("s.log.old", "s.log"))]),
        (
            ["p/10.log", "p/9.log", "q/0.log"],
            [History(("p/9.log", "p/10.log"), True), History(("q/0.log",))],
        ),
        (["pod-previous.log", "pod.log"], [History(("pod-previous.log", "pod.log"))]),
        (["current.log", "previous.log"], [History(("previous.log", "current.log"))]),
        (["-", "s.log"], [History(("-",)), History(("s.log",))]),
        (["x/s.log.1", "y/s.log"], [History(("x/s.log.1",)), History(("y/s.log",))]),
        (["s.log", "s.log"], [History(("s.log",))]),
    ],
)
def test_files_are_grouped_by_their_names(files: list[str], expected: list[History]) -> None:
    assert histories(files) == expected


def test_the_user_can_join_all_or_none() -> None:
    assert joined(["b.log", "s.log", "s.log.1"]) == History(("b.log", "s.log.1", "s.log"))
    assert apart(["s.log", "s.log.1"]) == [History(("s.log",)), History(("s.log.1",))]


def inspected(capsys: pytest.CaptureFixture[str], *arguments: object) -> list[dict[str, Any]]:
    assert main(["inspect", "--format", "json", *map(str, arguments)]) == 0
    reports: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["reports"]
    return reports


def test_a_loop_that_each_file_hides_is_seen(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = (FIXTURES / "vllm/cri-restarts-maxlen-0.log").read_bytes()
    two = (FIXTURES / "vllm/cri-restarts-maxlen-2.log").read_bytes()
    (tmp_path / "0.log").write_bytes(one)
    (tmp_path / "1.log").write_bytes(two)
    apart_reports = inspected(capsys, "--no-join", tmp_path / "0.log", tmp_path / "1.log")
    assert [r["verdict"]["state"] for r in apart_reports] == ["crashed", "crashed"]
    (report,) = inspected(capsys, tmp_path / "0.log", tmp_path / "1.log")
    assert report["verdict"]["state"] == "crash-looping"
    assert report["verdict"]["restarts"] == 1
    second = one.count(b"\n") + 1
    assert [file["first_line"] for file in report["files"]] == [1, second]
    assert report["verdict"]["cause"]["line"] > second


@pytest.mark.parametrize("cut", [0.1, 0.33, 0.5, 0.77])
def test_a_rotated_log_is_told_as_if_it_were_whole(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], cut: float
) -> None:
    whole = FIXTURES / "vllm/crash-loop-truncated-shard.log"
    lines = whole.read_bytes().splitlines(keepends=True)
    place = int(len(lines) * cut)
    (tmp_path / "server.log.1").write_bytes(b"".join(lines[:place]))
    (tmp_path / "server.log").write_bytes(b"".join(lines[place:]))
    (report,) = inspected(capsys, tmp_path / "server.log", tmp_path / "server.log.1")
    (expected,) = inspected(capsys, whole)
    assert report["verdict"] == expected["verdict"]
    assert report["runs"] == expected["runs"]
