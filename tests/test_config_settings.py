from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from test_check_command import LOOP, READY

from loopdetect.cli.configured import NESTED, default_map
from loopdetect.cli.main import COMMANDS, cli, main
from loopdetect.settings import SETTINGS, SettingsError, effective, find_file

Run = Callable[..., tuple[int, str, str]]
DOCUMENT = Path(__file__).parent.parent / "docs" / "ci.md"


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run loopdetect in a folder of its own, without settings from outside."""
    for name in [name for name in os.environ if name.startswith("LOOPDETECT_")]:
        monkeypatch.delenv(name)
    (tmp_path / ".git").mkdir()
    (tmp_path / "ready.log").write_text(READY)
    (tmp_path / "loop.log").write_text(LOOP)
    monkeypatch.chdir(tmp_path)

    def call(*arguments: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = main(list(arguments))
        return code, *capsys.readouterr()

    return call


def origins(run: Run) -> dict[str, tuple[object, str]]:
    code, out, err = run("config", "--format", "json")
    assert (code, err) == (0, "")
    return {row["key"]: (row["value"], row["origin"]) for row in json.loads(out)["settings"]}


def test_without_anything_all_values_are_defaults(run: Run) -> None:
    found = origins(run)
    assert set(found) == {setting.key for setting in SETTINGS}
    assert {origin for _, origin in found.values()} == {"default"}


def test_each_place_outdoes_the_one_below_it(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.loopdetect]\nstall_after = "1m"\n')
    assert origins(run)["stall_after"] == ("1m", "pyproject.toml [tool.loopdetect]")
    (tmp_path / "loopdetect.toml").write_text('stall_after = "2m"\n')
    assert origins(run)["stall_after"] == ("2m", "loopdetect.toml")
    monkeypatch.setenv("LOOPDETECT_STALL_AFTER", "3m")
    assert origins(run)["stall_after"] == ("3m", "environment LOOPDETECT_STALL_AFTER")


def test_the_text_shows_key_value_and_origin(run: Run, tmp_path: Path) -> None:
    (tmp_path / "loopdetect.toml").write_text('[check]\nexpect = ["ready", "stopped"]\n')
    code, out, _ = run("config")
    assert code == 0
    [line] = [line for line in out.splitlines() if line.startswith("check.expect")]
    assert line.split() == ["check.expect", "ready,stopped", "loopdetect.toml"]


def test_a_setting_changes_what_a_command_does_and_the_option_outdoes_it(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run("check", "loop.log")[0] == 1
    (tmp_path / "loopdetect.toml").write_text('[check]\nexpect = "crash-looping"\n')
    assert run("check", "loop.log") == (0, "", "")
    monkeypatch.setenv("LOOPDETECT_CHECK_EXPECT", "ready")
    assert run("check", "loop.log")[0] == 1
    assert run("check", "--expect", "crash-looping,ready", "loop.log") == (0, "", "")


@pytest.mark.parametrize(
    ("toml", "arguments", "words"),
    [
        ('[inspect]\nformat = "json"', ["inspect", "ready.log"], '"schema_version"'),
        ('[check]\nformat = "github"', ["check", "loop.log"], "::error file=loop.log"),
        ('[inspect]\nfail_on = ["crash-looping"]', ["inspect", "-q", "loop.log"], "crash-looping"),
        ("loop_after = 9", ["inspect", "-q", "loop.log"], ": crashed ("),
        ('color = "always"', ["inspect", "-q", "ready.log"], "\x1b["),
        ('color = "always"', ["profiles", "list"], "\x1b["),
        ('profile = "sglang"', ["inspect", "-q", "ready.log"], "SGLang"),
        ("[check]\nsecrets = true", ["check", "ready.log", "home.log"], "[secret-user-name]"),
        ('[check]\nbaseline = "known.toml"', ["check", "ready.log"], "known.toml: cannot be read"),
    ],
)
def test_every_setting_reaches_its_command(
    toml: str, arguments: list[str], words: str, run: Run, tmp_path: Path
) -> None:
    (tmp_path / "home.log").write_text(READY + "INFO in /home/alice\n")
    _, before, err = run(*arguments)
    assert words not in before + err or "fail_on" in toml
    (tmp_path / "loopdetect.toml").write_text(toml + "\n")
    code, out, err = run(*arguments)
    assert words in out + err
    if "fail_on" in toml:
        assert code == 1


@pytest.mark.parametrize(
    ("file", "toml", "words"),
    [
        ("loopdetect.toml", "stall_aftr = 1", "stall_aftr: unknown setting. Did you mean stall_after?"),
        ("loopdetect.toml", "[check]\nexpct = 1", "check.expct: unknown setting. Did you mean check.expect?"),
        ("loopdetect.toml", "[chek]\nexpect = 1", "chek: unknown setting"),
        ("loopdetect.toml", "check = 1", "check: must be a table"),
        ("loopdetect.toml", 'stall_after = "soon"', "stall_after: 'soon' is not a duration"),
        ("loopdetect.toml", "loop_after = 1", "loop_after: must be a whole number, 2 or more"),
        ("loopdetect.toml", "loop_after = true", "loop_after: must be a whole number"),
        ("loopdetect.toml", 'color = "red"', "color: 'red' is not one of auto, always, never"),
        ("loopdetect.toml", '[check]\nexpect = "redy"', "check.expect: 'redy' is not a state"),
        ("loopdetect.toml", '[check]\nsecrets = "maybe"', "check.secrets: must be true or false"),
        ("loopdetect.toml", "profile = 1", "profile: must be a text or a list of texts"),
        ("loopdetect.toml", "stall_after = ", "not valid TOML"),
        (
            "pyproject.toml",
            "[tool.loopdetect]\nkep = []",
            "pyproject.toml: tool.loopdetect.kep: unknown setting. Did you mean keep?",
        ),
    ],
)  # fmt: skip
def test_a_wrong_file_is_one_line_with_its_key(
    file: str, toml: str, words: str, run: Run, tmp_path: Path
) -> None:
    (tmp_path / file).write_text(toml + "\n")
    for command in (["config"], ["check", "ready.log"], ["inspect", "ready.log"]):
        code, out, err = run(*command)
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert words in err
        assert f" {file}: " in err


def test_a_wrong_variable_is_an_error_and_the_products_own_are_not(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("LOOPDETECT_PROFILES", str(tmp_path))
    monkeypatch.setenv("LOOPDETECT_DEBUG", "")
    monkeypatch.setenv("LOOPDETECT_KEEP", "")
    assert run("config")[0] == 0
    monkeypatch.setenv("LOOPDETECT_STALLAFTER", "1m")
    code, _, err = run("config")
    assert code == 2
    assert "environment: LOOPDETECT_STALLAFTER: unknown setting" in err
    assert "Did you mean LOOPDETECT_STALL_AFTER?" in err


def test_help_that_a_started_program_is_asked_for_is_not_ours(tmp_path: Path) -> None:
    file = tmp_path / "bad.toml"
    file.write_text("nonsense = 1\n")
    assert default_map(COMMANDS, ["run", "-h", "--", "serve"], str(file)) == {}
    with pytest.raises(SettingsError):
        default_map(COMMANDS, ["run", "--", "serve", "-h"], str(file))


def test_help_and_version_work_whatever_the_file_says(run: Run, tmp_path: Path) -> None:
    (tmp_path / "loopdetect.toml").write_text("nonsense")
    assert run("check", "--help")[0] == 0
    assert run("--help")[0] == 0
    assert run("--version")[0] == 0


def test_the_nearest_file_within_the_repository_is_taken(tmp_path: Path) -> None:
    inner = tmp_path / "repo" / "a" / "b"
    inner.mkdir(parents=True)
    (tmp_path / "loopdetect.toml").touch()
    (tmp_path / "repo" / "pyproject.toml").write_text("[tool.loopdetect]\n")
    (tmp_path / "repo" / "a" / "pyproject.toml").write_text("[tool.other]\n")
    assert find_file(inner) == tmp_path / "repo" / "pyproject.toml"
    (tmp_path / "repo" / "pyproject.toml").unlink()
    assert find_file(inner) == tmp_path / "loopdetect.toml"
    (tmp_path / "repo" / ".git").mkdir()
    assert find_file(inner) is None


def test_a_named_file_is_read_and_its_paths_are_relative_to_it(run: Run, tmp_path: Path) -> None:
    (tmp_path / "conf").mkdir()
    (tmp_path / "loopdetect.toml").write_text("nonsense")
    (tmp_path / "conf" / "mine.toml").write_text(
        'profile = ["vllm", "more/acme.toml"]\n[check]\nbaseline = "known.toml"\n'
    )
    code, out, _ = run("--config", "conf/mine.toml", "config", "--format", "json")
    assert code == 0
    found = {row["key"]: row["value"] for row in json.loads(out)["settings"]}
    assert found["check.baseline"] == "conf/known.toml"
    assert found["profile"] == ["vllm", "conf/more/acme.toml"]
    code, _, err = run("--config", "gone.toml", "config")
    assert (code, err.count("\n")) == (2, 1)
    assert "gone.toml: no such settings file" in err
    assert effective({"LOOPDETECT_CONFIG": "conf/mine.toml"}, tmp_path)
    with pytest.raises(SettingsError):
        effective({}, tmp_path)


def test_every_setting_is_a_parameter_of_the_commands_that_it_is_for() -> None:
    with cli.make_context("loopdetect", ["config"]) as context:
        for setting in SETTINGS:
            commands = [setting.command] if setting.command else list(COMMANDS)
            parameter = setting.parameter or setting.name
            found = [
                name
                for name in commands
                if (command := cli.get_command(context, name))
                and parameter in {item.name for item in command.params}
            ]
            assert found, setting.key


def test_commands_that_hold_commands_are_known() -> None:
    with cli.make_context("loopdetect", ["config"]) as context:
        nested = {
            name: tuple(command.list_commands(context))
            for name in COMMANDS
            if hasattr(command := cli.get_command(context, name), "list_commands")
        }
    assert nested == {name: tuple(inner) for name, inner in NESTED.items()}


def test_the_documentation_has_a_row_for_each_setting() -> None:
    rows = [line for line in DOCUMENT.read_text("utf-8").splitlines() if line.startswith("| `")]
    for setting in SETTINGS:
        default = "-" if setting.default in (None, []) else str(setting.default).lower()
        row = f"| `{setting.key}` | `{setting.variable}` | {default} | {setting.help} |"
        assert row in rows
