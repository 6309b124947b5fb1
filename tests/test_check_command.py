from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from loopdetect.check.examine import Job, check_logs
from loopdetect.cli.main import main
from loopdetect.model import Policy
from loopdetect.profiles import load_library

ROOT = Path(__file__).parent.parent
START = "INFO 03-01 10:0{n}:00 [api_server.py:1339] vLLM API server version 0.10.1\n"
FAIL = (
    "INFO 03-01 10:0{n}:30 [core.py:526] Waiting for init message from front-end.\n"
    "ERROR 03-01 10:0{n}:31 [core.py:586] torch.OutOfMemoryError: CUDA out of memory. "
    "Tried to allocate 2.00 GiB.\n"
    "RuntimeError: Engine core initialization failed. See root cause above.\n"
)
READY = START.format(n=0) + (
    "INFO:     Started server process [7]\nINFO:     Application startup complete.\n"
    'INFO:     127.0.0.1:40000 - "GET /v1/models HTTP/1.1" 200 OK\n'
)
LOOP = "".join(START.format(n=n) + FAIL.format(n=n) for n in range(3))
STOPPED = READY + "INFO:     Shutting down\nINFO:     Finished server process [7]\n"
OTHER = "hello\nworld\n"
LOOP_LINE = 3

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run the command in a folder with logs of several states."""
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith(("LOOPDETECT_", "GITHUB_"))]:
        monkeypatch.delenv(name)
    for name, text in {
        "ready.log": READY,
        "loop.log": LOOP,
        "stopped.log": STOPPED,
        "other.log": OTHER,
    }.items():
        (tmp_path / name).write_text(text)

    def call(*arguments: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = main(["check", *arguments])
        return code, *capsys.readouterr()

    return call


def test_a_healthy_log_passes_in_silence(run: Run) -> None:
    assert run("ready.log", "stopped.log") == (0, "", "")


def test_a_crash_loop_is_one_line_with_the_place_of_its_cause(run: Run) -> None:
    code, out, err = run("ready.log", "loop.log")
    assert code == 1
    assert out.count("\n") == 1
    assert out.startswith("loop.log:")
    assert ": [gpu-out-of-memory] crash-looping: vLLM was started 3 times" in out
    line = int(out.split(":")[1])
    assert "CUDA out of memory" in LOOP.splitlines()[line - 1]
    assert err == "loopdetect: 1 finding in 1 of 2 logs\n"


def test_findings_are_sorted_whatever_the_order_of_the_logs(run: Run) -> None:
    _, out, _ = run("--expect", "stopped", "ready.log", "loop.log")
    assert [line.split(":")[0] for line in out.splitlines()] == ["loop.log", "ready.log"]


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--expect", "ready", "ready.log"], 0, ""),
        (["--expect", "ready,stopped", "ready.log", "stopped.log"], 0, ""),
        (["--expect", "ready", "stopped.log"], 1, "[stopped] stopped, expected ready: "),
        (["--expect", "crash-looping", "loop.log"], 0, ""),
        (["other.log"], 4, "other.log:1: [unknown] unknown: "),
        (["--expect", "unknown", "other.log"], 0, ""),
        (["other.log", "loop.log"], 1, "[gpu-out-of-memory]"),
        (["gone.log"], 2, ""),
        (["gone.log", "loop.log"], 2, "[gpu-out-of-memory]"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_the_exit_code_tells_what_was_found(
    arguments: list[str], code: int, words: str, run: Run
) -> None:
    got, out, err = run(*arguments)
    assert got == code
    assert words in out
    assert (out == "") == (words == "")
    assert (err == "") == (code == 0)
    assert "Traceback" not in err


def test_the_expectation_beside_a_log_decides_before_the_option(run: Run, tmp_path: Path) -> None:
    (tmp_path / "loop.expect.toml").write_text('state = "crash-looping"\nrestarts = 2\n')
    assert run("--expect", "ready", "loop.log") == (0, "", "")
    (tmp_path / "loop.expect.toml").write_text('state = "crash-looping"\nrestarts = 7\n')
    code, out, _ = run("loop.log")
    assert (code, out.count("\n")) == (1, 1)
    assert "[unexpected-restarts] restarts: 2, expected 7" in out


def test_a_wrong_state_is_told_once_not_once_a_key(run: Run, tmp_path: Path) -> None:
    (tmp_path / "loop.expect.toml").write_text('state = "ready"\nrestarts = 0\nphase = "serving"\n')
    code, out, _ = run("loop.log")
    assert (code, out.count("\n")) == (1, 1)
    assert "[gpu-out-of-memory] crash-looping, expected ready: " in out


def test_an_expectation_file_stands_for_its_log(run: Run, tmp_path: Path) -> None:
    (tmp_path / "loop.expect.toml").write_text('state = "ready"\n')
    code, out, _ = run("loop.expect.toml", "loop.log")
    assert (code, out.count("loop.log:")) == (1, 1)
    (tmp_path / "lonely.expect.toml").write_text('state = "ready"\n')
    code, out, err = run("lonely.expect.toml")
    assert (code, out) == (2, "")
    assert "there is no log beside it" in err


def test_a_wrong_expectation_file_is_exit_2_and_the_rest_is_still_checked(
    run: Run, tmp_path: Path
) -> None:
    (tmp_path / "ready.expect.toml").write_text('state = "redy"\n')
    code, out, err = run("ready.log", "loop.log")
    assert code == 2
    assert out.startswith("loop.log:")
    assert "ready.expect.toml: state: 'redy' is not one of its words; did you mean ready?" in err


def test_update_writes_what_the_logs_show_and_then_they_pass(run: Run, tmp_path: Path) -> None:
    code, out, err = run("--update", "ready.log", "loop.log")
    assert (code, out) == (0, "")
    assert err.splitlines() == [
        "loopdetect: wrote: ready.expect.toml",
        "loopdetect: wrote: loop.expect.toml",
    ]
    assert 'reason = "gpu-out-of-memory"' in (tmp_path / "loop.expect.toml").read_text()
    assert run("ready.log", "loop.log") == (0, "", "")
    assert run("--update", "ready.log", "loop.log") == (0, "", "")


def test_an_update_remembers_the_time_that_it_was_made_for(run: Run, tmp_path: Path) -> None:
    (tmp_path / "still.log").write_text(START.format(n=0) + START.format(n=0))
    assert run("--update", "--now", "2026-03-01T11:00:00", "still.log")[0] == 0
    text = (tmp_path / "still.expect.toml").read_text()
    assert 'state = "stalled"' in text
    assert run("still.log") == (0, "", "")


def test_update_of_a_broken_expectation_touches_nothing(run: Run, tmp_path: Path) -> None:
    (tmp_path / "ready.expect.toml").write_text("state = ready\n")
    code, _, err = run("--update", "ready.log")
    assert code == 2
    assert "not valid TOML" in err
    assert (tmp_path / "ready.expect.toml").read_text() == "state = ready\n"


def test_an_accepted_failure_passes_until_its_day(run: Run, tmp_path: Path) -> None:
    known = tmp_path / "known.toml"
    code, out, err = run("--baseline", "known.toml", "--accept", "a known bug", "loop.log")
    assert (code, out) == (0, "")
    assert err == "loopdetect: note: 1 finding added to known.toml\n"
    assert 'because = "a known bug"' in known.read_text()
    assert run("--baseline", "known.toml", "loop.log") == (0, "", "")
    text = known.read_text()
    known.write_text(text + "expires = 2026-03-01\n")
    assert run("--now", "2026-03-01", "--baseline", "known.toml", "loop.log")[0] == 0
    code, out, _ = run("--now", "2026-03-02", "--baseline", "known.toml", "loop.log")
    assert code == 1
    assert out.endswith("(was accepted until 2026-03-01)\n")


def test_a_baseline_entry_holds_for_its_files_only(run: Run, tmp_path: Path) -> None:
    run("--baseline", "known.toml", "--accept", "a known bug", "loop.log")
    (tmp_path / "loop2.log").write_text(LOOP)
    code, out, err = run("--baseline", "known.toml", "loop.log", "loop2.log")
    assert (code, out.count("\n")) == (1, 1)
    assert out.startswith("loop2.log:")
    assert err == "loopdetect: 1 finding in 1 of 2 logs, 1 known failure accepted\n"
    known = tmp_path / "known.toml"
    known.write_text(known.read_text().replace('"loop.log"', '"loop*.log"'))
    assert run("--baseline", "known.toml", "loop.log", "loop2.log") == (0, "", "")


@pytest.mark.parametrize(
    ("toml", "words"),
    [
        ("[[acepted]]", "acepted: unknown key. Did you mean accepted?"),
        ("[accepted]", "accepted: must be tables"),
        ('[[accepted]]\nfingerprint = "a"', "accepted[0].because: must be a text"),
        ('[[accepted]]\nbecause = "a"', "accepted[0].fingerprint: must be a text"),
        (
            '[[accepted]]\nfingerprint = "a"\nbecause = "b"\nexpires = "soon"',
            "accepted[0].expires: 'soon' is not a date",
        ),
        ("[[accepted", "not valid TOML"),
    ],
)
def test_a_wrong_baseline_is_told_with_its_key(
    toml: str, words: str, run: Run, tmp_path: Path
) -> None:
    (tmp_path / "known.toml").write_text(toml)
    code, out, err = run("--baseline", "known.toml", "ready.log")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert words in err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--baseline", "gone.toml", "ready.log"], "gone.toml: cannot be read"),
        (["--accept", "why", "ready.log"], "--accept needs a file"),
        (["--baseline", "b.toml", "--accept", " ", "loop.log"], "--accept needs to say why"),
        (["--report", "pdf=x", "ready.log"], "--report pdf=x: not a format and a file"),
        (["--expect", "redy", "ready.log"], "did you mean ready?"),
        (["--update", "-"], "standard input has no expectation file"),
        (["nothing-*.log"], "nothing-*.log: no file matches"),
        (["."], ".: this is a folder"),
        (["--secrets", "-"], "secrets can't be looked for in standard input"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else None,
)
def test_a_call_that_can_not_be_is_one_line(arguments: list[str], words: str, run: Run) -> None:
    code, out, err = run(*arguments)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert words in err


def test_hostile_text_reaches_no_terminal(run: Run, tmp_path: Path) -> None:
    bad = LOOP.replace("Tried to", "\x1b]0;owned\x07\x1b[2J\u202eTried to")
    (tmp_path / "bad\x1b[31m.log").write_text(bad)
    _, out, _ = run("-v", "bad\x1b[31m.log")
    assert out.isprintable() or set(out) - set(map(chr, range(32, 0x3000))) == {"\n"}
    assert "\x1b" not in out
    assert "\u202e" not in out


def test_verbose_tells_fingerprints_that_a_baseline_takes(run: Run, tmp_path: Path) -> None:
    _, out, _ = run("-v", "loop.log")
    fingerprint = out.rpartition("(fingerprint ")[2].rstrip(")\n")
    entry = f'[[accepted]]\nfingerprint = "{fingerprint}"\nbecause = "known"\n'
    (tmp_path / "known.toml").write_text(entry)
    assert run("--baseline", "known.toml", "loop.log")[0] == 0


def test_secrets_fail_the_check_without_being_shown(run: Run, tmp_path: Path) -> None:
    secret = "hf_" + "aB3dE5gH7j" * 3
    (tmp_path / "leak.log").write_text(READY + f"INFO token is {secret}\nINFO again {secret}\n")
    assert run("leak.log") == (0, "", "")
    code, out, _ = run("--secrets", "leak.log")
    assert code == 1
    assert out == (
        "leak.log:5: [secret-token] a token, key or password, 2 times; "
        "share a copy: loopdetect redact leak.log\n"
    )
    assert run("--secrets", "--keep", "hf_aB3*", "leak.log") == (0, "", "")
    assert run("--secrets", "ready.log") == (0, "", "")


def test_reports_in_other_formats_are_written_beside(run: Run, tmp_path: Path) -> None:
    code, out, _ = run("--report", "sarif=a.sarif", "--report", "junit=b.xml", "loop.log")
    assert (code, out.count("\n")) == (1, 1)
    assert '"version": "2.1.0"' in (tmp_path / "a.sarif").read_text()
    assert "<testsuites" in (tmp_path / "b.xml").read_text()


def test_workers_find_what_one_process_finds(run: Run, tmp_path: Path) -> None:
    names = []
    for number in range(6):
        names.append(f"n{number}.log")
        (tmp_path / names[-1]).write_text((READY, LOOP, OTHER)[number % 3])
    alone = run("--jobs", "1", *names, "gone.log")
    assert run("--jobs", "3", *names, "gone.log") == alone
    assert alone[0] == 2


def test_the_order_of_the_logs_is_kept_and_each_is_checked_once(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = Job(load_library(), None, Policy(), None, None, False, ())
    names = ["stopped.log", "loop.log", "ready.log"]
    for jobs in (1, 2):
        checked = check_logs(names, job, jobs)
        assert [log.path for log in checked] == names
        assert [log.states for log in checked] == [("stopped",), ("crash-looping",), ("ready",)]
    _, out, _ = run("loop.log", "loop.log", "./*op.log")
    assert out.count("loop.log:") == 2


def test_a_log_on_standard_input_is_checked(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "loopdetect", "check", "-"],
        input=LOOP,
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 1
    assert done.stdout.startswith("standard input:")


def test_an_interrupt_ends_the_workers_at_once_and_in_silence(tmp_path: Path) -> None:
    names = [tmp_path / "a.log", tmp_path / "b.log"]
    for name in names:
        os.mkfifo(name)
    process = subprocess.Popen(
        [sys.executable, "-m", "loopdetect", "check", "--jobs", "2", *map(str, names)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        start_new_session=True,
    )
    # A pipe can be opened for writing once a worker reads from it.
    with names[0].open("wb"), names[1].open("wb"):
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err) == (130, b"", b"")
