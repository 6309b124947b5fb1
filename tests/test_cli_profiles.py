from __future__ import annotations

import json
from pathlib import Path

import pytest

from loopdetect.cli.main import main

GOOD = """
name = "mine"
title = "My server"

[[ready]]
id = "up"
literal = "my server is up now"
samples = ["my server is up now"]
"""


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    path = tmp_path / "mine.toml"
    path.write_text(GOOD)
    return path


def test_list_names_every_profile(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["profiles", "list"]) == 0
    text = capsys.readouterr().out
    assert main(["profiles", "list", "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)["profiles"]
    assert {"name", "title", "rules"} == set(found[0])
    assert [line.split()[0] for line in text.splitlines()] == [entry["name"] for entry in found]
    assert "vllm" in [entry["name"] for entry in found]


def test_list_includes_a_profile_of_ones_own(
    mine: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["profiles", "list", "--profile", str(mine)]) == 0
    assert "My server (1 rule)" in capsys.readouterr().out


def test_show_prints_the_rules_with_a_sample(
    mine: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["profiles", "show", "mine", "--profile", str(mine)]) == 0
    assert capsys.readouterr().out == (
        "mine: My server\n\nready (1)\n  mine/up\n      my server is up now\n"
    )


def test_show_as_json(mine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["profiles", "show", "mine", "--format", "json", "--profile", str(mine)]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "name": "mine",
        "title": "My server",
        "rules": [
            {
                "id": "mine/up",
                "kind": "ready",
                "phase": None,
                "reason": None,
                "samples": ["my server is up now"],
            }
        ],
    }


def test_show_suggests_the_nearest_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["profiles", "show", "vlm"]) == 2
    assert "no profile 'vlm'. Did you mean vllm?" in capsys.readouterr().err


def test_a_sound_profile_passes(mine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["profiles", "test", str(mine)]) == 0
    assert capsys.readouterr().out == f"{mine}: ok\n"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('title = "My', 'tilte = "My'),
        ('samples = ["my server is up now"]', 'samples = ["something else"]'),
        ("[[ready]]", "[[redy]]"),
        ("name =", "name"),
    ],
    ids=["key", "sample", "table", "syntax"],
)
def test_a_faulty_profile_is_a_finding_that_names_the_file(
    old: str, new: str, mine: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert old in GOOD
    mine.write_text(GOOD.replace(old, new))
    assert main(["profiles", "test", str(mine)]) == 1
    out, err = capsys.readouterr()
    assert out.startswith(f"{mine}: ")
    assert err == ""


def test_a_missing_profile_file_is_exit_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["profiles", "test", "/no/such.toml"]) == 2
    assert "/no/such.toml: no such profile file" in capsys.readouterr().err


def test_the_shipped_profiles_are_sound(capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["profiles", "test"])
    out = capsys.readouterr().out
    assert [line for line in out.splitlines() if not line.endswith(": ok")] == []
    assert code == 0
    assert "reasons.toml" not in out


def test_explain_tells_one_reason(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "port-in-use"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("port-in-use (transient): ")
    assert "What to do: " in out


def test_explain_lists_all_reasons_in_order(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain"]) == 0
    codes = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert codes == sorted(codes)
    assert {"gpu-out-of-memory", "port-in-use"} <= set(codes)


def test_explain_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "--format", "json", "port-in-use"]) == 0
    (reason,) = json.loads(capsys.readouterr().out)["reasons"]
    assert set(reason) == {"code", "kind", "title", "explanation", "hint"}


def test_explain_suggests_the_nearest_reason(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "port-in-us"]) == 2
    assert capsys.readouterr().err == (
        "loopdetect: error: no reason 'port-in-us'. Did you mean port-in-use?\n"
    )
