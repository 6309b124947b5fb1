"""`loopdetect inspect` around a detector that only reads what it is told to find."""

from __future__ import annotations

import gzip
import io
import json
import os
import stat
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import pytest
from report_samples import CRASH_LOOP, READY, UNKNOWN

from loopdetect.cli.main import main
from loopdetect.model import Phase, Policy, Report

LOGS = {b"LOOP": CRASH_LOOP, b"READY": READY}


class StubDetector:
    """Finds what the word in the log says."""

    made: ClassVar[list[StubDetector]] = []

    def __init__(
        self,
        library: object,
        policy: Policy | None = None,
        *,
        source: str,
        profile: str | None,
        transcript: bool | None = None,
    ) -> None:
        self.policy, self.source, self.profile = policy, source, profile
        self.data, self.now = b"", -1.0
        self.made.append(self)

    def next_file(self, name: str, *, restarted: bool = False) -> None:
        self.files = (*getattr(self, "files", ()), (name, restarted))

    def feed(self, data: bytes, *, now: float | None = None) -> None:
        self.data += data

    def finish(self, *, now: float | None = None) -> tuple[Report, ...]:
        self.now = now if now is not None else 0.0
        if b"BUG" in self.data:
            raise KeyError("not\x1bfound")
        if b"INTERRUPT" in self.data:
            raise KeyboardInterrupt
        found = next((LOGS[word] for word in LOGS if word in self.data), UNKNOWN)
        return (replace(found, source=self.source),)


@pytest.fixture(autouse=True)
def detector(monkeypatch: pytest.MonkeyPatch) -> type[StubDetector]:
    module = ModuleType("loopdetect.core.detector")
    module.Detector = StubDetector  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "loopdetect.core.detector", module)
    StubDetector.made = []
    return StubDetector


@pytest.fixture
def log(tmp_path: Path) -> Callable[..., str]:
    def make(data: bytes = b"LOOP\n", name: str = "server.log") -> str:
        path = tmp_path / name
        path.write_bytes(data)
        return str(path)

    return make


def states(out: str) -> list[str]:
    return [report["verdict"]["state"] for report in json.loads(out)["reports"]]


def test_a_report_is_no_failure_whatever_it_says(
    log: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["inspect", log()]) == 0
    out, err = capsys.readouterr()
    assert "crash-looping (certain)" in out
    assert err == ""


@pytest.mark.parametrize("data", [b"", b"hello\n", b"\xff\xfe"], ids=["empty", "other", "mark"])
def test_a_log_of_nothing_known_is_unknown_and_no_error(
    data: bytes, log: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["inspect", "--format", "json", log(data)]) == 0
    assert states(capsys.readouterr().out) == ["unknown"]


@pytest.mark.parametrize(
    ("wanted", "data", "code"),
    [
        ("crash-looping", b"LOOP", 1),
        ("crashed,crash-looping", b"LOOP", 1),
        ("crashed, crash_looping", b"LOOP", 1),
        ("crashed", b"LOOP", 0),
        ("crashed,crash-looping", b"READY", 0),
        ("ready", b"READY", 1),
    ],
)
def test_fail_on_makes_a_state_a_finding(wanted: str, data: bytes, code: int, log: Any) -> None:
    assert main(["inspect", "--fail-on", wanted, log(data)]) == code


def test_one_bad_input_is_one_line_and_the_others_are_reported(
    log: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    missing = str(tmp_path / "missing.log")
    arguments = [log(name="a.log"), missing, str(tmp_path), log(b"READY", "b.log")]
    assert main(["inspect", "--format", "json", "--fail-on", "ready", *arguments]) == 2
    out, err = capsys.readouterr()
    assert states(out) == ["crash-looping", "ready"]
    assert err.splitlines() == [
        f"loopdetect: error: {missing}: no such file. Check the path",
        f"loopdetect: error: {tmp_path}: this is a folder. "
        "Give its files: loopdetect inspect 'FOLDER/*.log'",
    ]


def test_json_is_a_document_even_if_nothing_could_be_read(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["inspect", "--format", "json", "/no/such.log"]) == 2
    assert json.loads(capsys.readouterr().out)["reports"] == []


def test_a_truncated_archive_is_reported_and_complained_of(
    log: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    packed = gzip.compress(b"LOOP\n" + os.urandom(9000).hex().encode())
    name = log(packed[:-600], "server.log.gz")
    assert main(["inspect", "--format", "json", name]) == 2
    out, err = capsys.readouterr()
    assert states(out) == ["crash-looping"]
    assert err.count("\n") == 1
    assert "the gzip data ends too soon" in err


def test_a_quoted_glob_is_expanded_in_order(
    log: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log(name="b.log")
    log(name="a.log")
    log(name="c.txt")
    (tmp_path / "d.log").mkdir()
    assert main(["inspect", "-q", str(tmp_path / "*.log")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [Path(line.split(": ")[0]).name for line in lines] == ["a.log", "b.log"]


def test_a_name_that_looks_like_a_glob_is_taken_as_it_is(log: Any) -> None:
    assert main(["inspect", log(name="[1].log")]) == 0
    assert [made.data for made in StubDetector.made] == [b"LOOP\n"]


def test_a_glob_without_a_match_is_an_error(
    log: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["inspect", str(tmp_path / "*.nothing"), log()]) == 2
    out, err = capsys.readouterr()
    assert "no file matches" in err
    assert "crash-looping" in out


def test_a_fifo_is_read_to_its_end(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    writer = threading.Thread(target=fifo.write_bytes, args=(b"READY\n",))
    writer.start()
    assert main(["inspect", "--format", "json", str(fifo)]) == 0
    writer.join(timeout=10)
    assert states(capsys.readouterr().out) == ["ready"]


def test_standard_input_can_be_read_only_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", "-", "-"]) == 2
    assert "only once" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "policy"),
    [
        ([], Policy()),
        (["--stable-after", "10m"], Policy(stable_after=600.0)),
        (["--loop-after", "2"], Policy()),
        (
            ["--loop-after", "5"],
            Policy(loop_after=5, loop_after_mixed=5, loop_after_transient=5),
        ),
    ],
)
def test_policy_options_reach_the_detector(arguments: list[str], policy: Policy, log: Any) -> None:
    assert main(["inspect", *arguments, log()]) == 0
    assert StubDetector.made[0].policy == policy


@pytest.mark.parametrize(
    ("given", "stall", "by_compile", "by_capture"),
    [("1m", 60.0, 2700.0, 900.0), ("20m", 1200.0, 2700.0, 1200.0)],
)
def test_stall_after_never_shortens_what_a_slow_phase_needs(
    given: str, stall: float, by_compile: float, by_capture: float, log: Any
) -> None:
    assert main(["inspect", "--stall-after", given, log()]) == 0
    policy = StubDetector.made[0].policy
    assert policy is not None
    assert policy.stall_after == stall
    assert policy.stall_after_by_phase[Phase.COMPILE] == by_compile
    assert policy.stall_after_by_phase[Phase.GRAPH_CAPTURE] == by_capture


def test_now_reaches_the_detector_on_the_logs_clock(log: Any) -> None:
    assert main(["inspect", "--now", "2026-03-01T10:00:00", log()]) == 0
    assert StubDetector.made[0].now == 1772359200.0


def test_a_named_profile_forces_the_server(log: Any) -> None:
    assert main(["inspect", "--profile", "vllm", log()]) == 0
    assert StubDetector.made[0].profile == "vllm"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--profile", "vlm"], "no profile 'vlm'. Did you mean vllm?"),
        (["--profile", "vllm", "--profile", "ollama"], "one server, not ollama and vllm"),
        (["--profile", "./missing.toml"], "missing.toml: no such profile file"),
        (["--fail-on", "crashd"], "did you mean crashed?"),
        (["--fail-on", ""], "is not a state"),
        (["--stall-after", "soon"], "is not a duration"),
        (["--now", "yesterday"], "is not a time"),
        (["--loop-after", "1"], "1 is not in the range"),
        (["--format", "yaml"], "'yaml' is not one of"),
        (["--no-such-option"], "--no-such-option"),
    ],
)
def test_words_that_do_not_fit_are_one_line_and_exit_2(
    arguments: list[str], words: str, log: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["inspect", *arguments, log()]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert words in err
    assert err.startswith("loopdetect: error: ")
    assert err.count("\n") == 1


def test_a_bad_profile_file_is_named(
    log: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = tmp_path / "mine.toml"
    bad.write_text('name = "mine"\ntitle = "Mine"\ncolour = "red"\n')
    assert main(["inspect", "--profile", str(bad), log()]) == 2
    err = capsys.readouterr().err
    assert str(bad) in err
    assert "colour" in err


def test_output_is_written_to_a_file_in_one_step(
    log: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "report.json"
    target.write_text("old")
    target.chmod(0o640)
    assert main(["inspect", "--format", "json", "-o", str(target), log()]) == 0
    assert capsys.readouterr().out == ""
    assert states(target.read_text()) == ["crash-looping"]
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    assert sorted(path.name for path in tmp_path.iterdir()) == ["report.json", "server.log"]


def test_a_link_stays_a_link_when_its_file_is_written(log: Any, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert main(["inspect", "-q", "-o", str(tmp_path / "link"), log()]) == 0
    assert (tmp_path / "link").is_symlink()
    assert "crash-looping" in (tmp_path / "real").read_text()


@pytest.mark.parametrize("target", ["missing/report.txt", "."])
def test_an_output_that_cannot_be_written_is_said(
    target: str, log: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["inspect", "-o", str(tmp_path / target), log()]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "cannot write it" in err
    assert err.count("\n") == 1


def test_an_output_to_a_device_does_not_replace_it(log: Any) -> None:
    assert main(["inspect", "-o", os.devnull, log()]) == 0
    assert not Path(os.devnull).is_file()


@pytest.mark.parametrize(
    ("arguments", "environment", "terminal", "coloured"),
    [
        ([], {}, False, False),
        ([], {}, True, True),
        ([], {"NO_COLOR": "1"}, True, False),
        ([], {"NO_COLOR": ""}, True, True),
        ([], {"TERM": "dumb"}, True, False),
        (["--color", "never"], {}, True, False),
        (["--color", "always"], {"NO_COLOR": "1"}, False, True),
        (["-o", "-"], {}, True, True),
    ],
)
def test_colour_is_for_those_who_want_it(
    arguments: list[str], environment: dict[str, str], terminal: bool, coloured: bool, log: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return terminal

    monkeypatch.setenv("TERM", "xterm")
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    out = Terminal()
    monkeypatch.setattr(sys, "stdout", out)
    assert main(["inspect", *arguments, log()]) == 0
    assert ("\x1b[" in out.getvalue()) is coloured


def test_a_file_gets_no_colour_from_the_terminal(
    log: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    assert main(["inspect", "-o", str(tmp_path / "report"), log()]) == 0
    assert "\x1b" not in (tmp_path / "report").read_text()


def test_a_bug_is_one_line_that_says_how_to_report_it(
    log: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["inspect", log(b"BUG")]) == 3
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert "internal error" in err
    assert "LOOPDETECT_DEBUG=1" in err
    assert "Traceback" not in err
    assert "\x1b" not in err


def test_debug_shows_the_traceback_of_a_bug(
    log: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LOOPDETECT_DEBUG", "1")
    assert main(["inspect", log(b"BUG")]) == 3
    assert "Traceback" in capsys.readouterr().err


def test_ctrl_c_is_quiet(log: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", log(b"INTERRUPT")]) == 130
    assert "Traceback" not in capsys.readouterr().err


def test_a_hostile_file_name_is_shown_harmless(
    log: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["inspect", log() + "\x1b]2J\udcff", log(name="\x1b[31m.log")]) == 2
    out, err = capsys.readouterr()
    assert "\x1b" not in out + err
    assert "\\x1b]2J\\udcff: no such file" in err


def test_a_large_file_has_a_bar_on_a_terminal_only(
    log: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from loopdetect.cli import progress_bar

    monkeypatch.setattr(progress_bar, "LARGE", 3)
    name = log()
    with progress_bar.reading(name, quiet=False) as on_read:
        assert on_read is None
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    with progress_bar.reading(name, quiet=True) as on_read:
        assert on_read is None
    with progress_bar.reading("-", quiet=False) as on_read:
        assert on_read is None
    with progress_bar.reading(name, quiet=False) as on_read:
        assert on_read is not None
        on_read(5)


def test_rotated_logs_and_restart_files_are_one_history_oldest_first(tmp_path: Path) -> None:
    for name in ("server.log", "server.log.2", "server.log.1", "10.log", "9.log", "other.log"):
        (tmp_path / name).write_text("CRASHED\n")
    names = [
        str(tmp_path / n)
        for n in ("server.log", "server.log.1", "server.log.2", "10.log", "9.log", "other.log")
    ]
    assert main(["inspect", "--format", "json", *names]) == 0
    found = [
        [(Path(name).name, restarted) for name, restarted in d.files] for d in StubDetector.made
    ]
    assert found == [
        [("server.log.2", False), ("server.log.1", False), ("server.log", False)],
        [("9.log", True), ("10.log", True)],
        [("other.log", False)],
    ]


@pytest.mark.parametrize(("option", "histories"), [("--join", 1), ("--no-join", 2)])
def test_the_user_says_what_is_one_history(tmp_path: Path, option: str, histories: int) -> None:
    for name in ("a.log", "b.log"):
        (tmp_path / name).write_text("CRASHED\n")
    assert main(["inspect", option, str(tmp_path / "a.log"), str(tmp_path / "b.log")]) == 0
    assert len(StubDetector.made) == histories
