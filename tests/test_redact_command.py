from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest
from test_check_command import LOOP, READY

from loopdetect.cli.main import main
from loopdetect.core.detector import Detector
from loopdetect.model import Report
from loopdetect.profiles import Library, load_library
from loopdetect.redact.excerpt import excerpt, wanted_lines
from loopdetect.redact.redaction import Redaction
from loopdetect.redact.same import FACTS, changed
from loopdetect.redact.search import Search
from loopdetect.redact.words import telling_words

ROOT = Path(__file__).parent.parent
FIXTURES = sorted(path for path in (ROOT / "fixtures").rglob("*") if path.suffix == ".log")
SECRET = "hf_" + "aB3dE5gH7j" * 3
LEAKY = LOOP.replace(
    "Tried to", f"on http://gpu-box.acme.io for alice in /home/alice with {SECRET}; Tried to"
)


@cache
def library() -> Library:
    return load_library()


def judged(data: bytes) -> Sequence[Report]:
    detector = Detector(library())
    detector.feed(data)
    return detector.finish()


def copy_of(data: bytes) -> bytes:
    search = Search((), telling_words(library()))
    return b"".join(Redaction(lambda: [data], search).copy())


@pytest.mark.parametrize("folder", sorted({path.parent for path in FIXTURES}), ids=lambda p: p.name)
def test_a_redacted_fixture_has_its_lines_and_its_verdict(folder: Path) -> None:
    different = {}
    for path in FIXTURES:
        if path.parent != folder:
            continue
        data = path.read_bytes()
        copy = copy_of(data)
        facts = changed(judged(data), judged(copy)) if copy != data else []
        if copy.count(b"\n") != data.count(b"\n"):
            facts.append("line count")
        if facts:
            different[path.name] = facts
    assert different == {}


def test_every_fact_that_differs_is_named() -> None:
    before, after = judged(LOOP.encode()), judged(READY.encode())
    assert {"state", "restarts", "crashes", "cause", "runs", "lines"} <= set(changed(before, after))
    assert changed(before, before) == []
    assert changed(before, ()) == ["streams"]
    assert all(callable(fact) for fact in FACTS.values())


def test_an_excerpt_is_judged_like_the_log_and_is_short() -> None:
    noise = "INFO 03-01 10:00:05 [loader.py:1] nothing to see here\n" * 500
    data = LOOP.replace("ERROR", noise + "ERROR").encode()
    reports = judged(data)
    kept = "".join(excerpt([data.decode()], wanted_lines(reports)))
    assert kept.count("\n") < 40
    assert "lines left out]" in kept
    [before], [after] = reports, judged(kept.encode())
    assert before.verdict.state is after.verdict.state
    texts = [report.verdict.cause and report.verdict.cause.text for report in (before, after)]
    assert texts[0]
    assert texts[0] == texts[1]


def test_an_excerpt_counts_lines_as_reports_do() -> None:
    text = "a\rb\nc\x0bd\u2028e\r\nlast"
    assert "".join(excerpt([text], frozenset({1, 3}))) == "a\rb\n[... 1 line left out]\nlast"


# -- the command


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "server.log"
    path.write_text(LEAKY)
    return path


def test_the_copy_goes_to_standard_output_byte_for_byte(
    log: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    log.write_bytes(LEAKY.encode() + b"\xff\xfe not text\r\n")
    assert main(["redact", "server.log"]) == 0
    out, err = capsysbinary.readouterr()
    assert out == copy_of(log.read_bytes())
    assert out.endswith(b"\xff\xfe not text\r\n")
    for gone in (b"alice", b"acme", SECRET.encode()):
        assert gone not in out
    assert err == (
        b"loopdetect: note: replaced 1 host name, 1 token, 1 user name; "
        b"read it through before you share it\n"
    )


def test_the_copy_goes_to_a_file_and_may_replace_the_log(
    log: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = copy_of(log.read_bytes())
    assert main(["redact", "-q", "server.log", "-o", "shared.log"]) == 0
    assert Path("shared.log").read_bytes() == copy
    assert main(["redact", "-q", "server.log", "-o", "server.log"]) == 0
    assert log.read_bytes() == copy
    assert capsys.readouterr() == ("", "")
    assert sorted(os.listdir()) == ["server.log", "shared.log"]


def test_the_excerpt_holds_the_cause_and_no_secret(
    log: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["redact", "--excerpt", "server.log"]) == 0
    out = capsys.readouterr().out
    assert "CUDA out of memory" in out
    assert SECRET not in out


def test_an_excerpt_that_tells_less_than_the_log_says_so(
    log: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    told = "the log is crash-looping; read alone, the excerpt is loading"
    assert main(["redact", "--excerpt", "server.log"]) == 0
    assert told not in capsys.readouterr().err
    monkeypatch.setattr("loopdetect.redact.excerpt.wanted_lines", lambda reports: {1})
    assert main(["redact", "--excerpt", "server.log"]) == 0
    assert told in capsys.readouterr().err


def test_what_is_to_be_kept_is_kept(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["redact", "-q", "--keep", "*.acme.io", "--keep", "alice", "server.log"]) == 0
    out = capsys.readouterr().out
    assert "http://gpu-box.acme.io for alice in /home/alice" in out


def test_a_copy_that_is_judged_differently_is_told(
    log: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("loopdetect.redact.same.changed", lambda old, new: ["state"])
    assert main(["redact", "server.log"]) == 1
    assert "warning: the copy is judged differently: state." in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["gone.log"], "gone.log: no such file"),
        (["server.log", "-o", "no/such/folder.log"], "no/such/folder.log: cannot write it"),
        (["server.log", "--profile", "vlm"], "did you mean vllm?"),
    ],
    ids=["no-log", "no-folder", "no-profile"],
)
def test_what_can_not_be_done_is_one_line(
    arguments: list[str], words: str, log: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["redact", *arguments]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert words.lower() in err.lower()


def test_standard_input_is_read_once_and_copied(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "loopdetect", "redact", "-q", "-"],
        input=LEAKY.encode(),
        capture_output=True,
        check=False,
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout == copy_of(LEAKY.encode())
