from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from loopdetect import __version__
from loopdetect.cli.exit_codes import MEANINGS, ExitCode
from loopdetect.cli.main import COMMANDS, main
from loopdetect.errors import LoopdetectError

HEAVY = ("tabulate", "rich", "regex", "tomllib", "watchdog", "jinja2", "urllib3", "psutil", "json")


def run(*arguments: str, **options: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "loopdetect", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)  # type: ignore[call-overload, no-any-return]


def test_the_version_is_printed() -> None:
    done = run("--version")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"loopdetect {__version__}\n", "")


@pytest.mark.parametrize("arguments", [["--version"], ["--help"], ["inspect", "--help"]])
def test_help_and_version_import_nothing_heavy(arguments: list[str]) -> None:
    code = (
        "import sys; from loopdetect.cli.main import main; main(sys.argv[1:]);"
        f"print([name for name in {HEAVY} if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True
    )
    assert done.stderr == "[]\n"


def test_help_lists_every_command_and_every_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    out = capsys.readouterr().out
    assert [name for name in COMMANDS if f"\n  {name} " not in out] == []
    words = " ".join(out.split())
    for code, meaning in MEANINGS.items():
        assert f" {code.value} {meaning}" in words
    assert "_LOOPDETECT_COMPLETE=bash_source" in out


def test_every_exit_code_has_a_meaning() -> None:
    assert set(MEANINGS) == set(ExitCode)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_of_the_table_has_help(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([command, "--help"]) == 0
    assert capsys.readouterr().out.startswith(f"Usage: loopdetect {command}")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["inspct"], "no command 'inspct'; did you mean inspect? See loopdetect --help"),
        (["xyzzy"], "no command 'xyzzy'; there are inspect, watch"),
        (["inspect"], "Missing argument 'LOG...'. See loopdetect inspect --help"),
        (["profiles", "lst"], "did you mean list?"),
        (["--nothing"], "--nothing"),
    ],
)
def test_a_wrong_call_is_one_line_and_exit_2(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert err.startswith("loopdetect: error: ")
    assert words in err


def test_a_call_without_a_command_shows_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("Usage: loopdetect")


@pytest.mark.parametrize(
    ("problem", "code", "line"),
    [
        (LoopdetectError("it broke", "mend it"), 2, "loopdetect: error: it broke. Mend it\n"),
        (LoopdetectError("it broke.", "Mend it."), 2, "loopdetect: error: it broke. Mend it.\n"),
        (LoopdetectError("it\nbroke"), 2, "loopdetect: error: it broke\n"),
        (BrokenPipeError(), 141, ""),
        (KeyboardInterrupt(), 130, ""),
    ],
    ids=["hint", "stops", "lines", "pipe", "interrupt"],
)
def test_errors_become_exit_codes_in_one_place(
    problem: BaseException, code: int, line: str, monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    def fail(*_: object) -> None:
        raise problem

    monkeypatch.setattr("loopdetect.cli.library.load", fail)
    monkeypatch.setattr("os.dup2", lambda *_: None)
    assert main(["explain"]) == code
    assert capfd.readouterr().err.strip() == line.strip()


@pytest.mark.parametrize("arguments", [["--help"], ["explain"], ["profiles", "show", "vllm"]])
def test_a_reader_that_goes_away_ends_it_quietly(arguments: list[str]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as gone:
        done = subprocess.run(
            [sys.executable, "-m", "loopdetect", *arguments],
            stdout=gone,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert (done.returncode, done.stderr) == (141, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("arguments", [["--help"], ["explain"]])
def test_a_full_disk_is_said_and_exit_2(arguments: list[str]) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "loopdetect", *arguments],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "No space left" in done.stderr


@pytest.mark.parametrize(
    ("words", "at", "offered"),
    [("loopdetect ins", "1", "inspect"), ("loopdetect profiles s", "2", "show")],
)
def test_the_shell_completes_commands(words: str, at: str, offered: str) -> None:
    environment = os.environ | {
        "_LOOPDETECT_COMPLETE": "bash_complete",
        "COMP_WORDS": words,
        "COMP_CWORD": at,
    }
    assert run(env=environment).stdout == f"plain,{offered}\n"


def test_an_encoding_without_the_signs_is_no_crash() -> None:
    done = run("explain", env=os.environ | {"PYTHONIOENCODING": "ascii"})
    assert done.returncode == 0
    assert done.stdout.isascii()
