"""The hooks in the hands of the real pre-commit and the real git."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from test_check_command import LOOP, READY

from loopdetect.cli.main import COMMANDS

ROOT = Path(__file__).parent.parent
PACKAGE = (
    "loopdetect",
    "setup.cfg",
    "pyproject.toml",
    "LICENSE",
    "README.md",
    ".pre-commit-hooks.yaml",
)
PROFILE = """\
name = "acme"
title = "Acme server"
[[ready]]
id = "listening"
literal = "acme listens"
samples = ["acme listens on 8000"]
"""
IDENTITY = {
    "GIT_AUTHOR_NAME": "a",
    "GIT_AUTHOR_EMAIL": "a@example.com",
    "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@example.com",
}


class Repository:
    """A git repository in a folder, with pre-commit's store apart from the user's."""

    def __init__(self, folder: Path, store: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        inherited = {
            k: v for k, v in os.environ.items() if not k.startswith(("GIT_", "PYTHONPATH"))
        }
        self.environment = inherited | IDENTITY | {
            "PRE_COMMIT_HOME": str(store),
            "HOME": str(store),
            "GIT_CONFIG_NOSYSTEM": "1",
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        }  # fmt: skip
        self.git("init", "--quiet", "--initial-branch=main")

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command,
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )

    def git(self, *arguments: str) -> str:
        done = self.run("git", *arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def write(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def commits(self) -> int:
        done = self.run("git", "rev-list", "--count", "HEAD")
        return int(done.stdout) if done.returncode == 0 else 0


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    """The package as somebody else's pre-commit would clone it."""
    top = tmp_path_factory.mktemp("pre-commit")
    repository = Repository(top / "product", top / "store")
    ignored = shutil.ignore_patterns("__pycache__")
    for name in PACKAGE:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, repository.folder / name, ignore=ignored)
        elif source.exists():
            shutil.copy(source, repository.folder / name)
    repository.git("add", ".")
    repository.git("commit", "--quiet", "-m", "release")
    repository.git("tag", "v1")
    return repository


@pytest.fixture
def team(product: Repository, tmp_path: Path) -> Repository:
    """The repository of a team that has put the hooks in."""
    repository = Repository(tmp_path / "team", Path(product.environment["PRE_COMMIT_HOME"]))
    hooks = [{"id": "loopdetect-check"}, {"id": "loopdetect-profiles"}]
    config = {"repos": [{"repo": str(product.folder), "rev": "v1", "hooks": hooks}]}
    repository.write(".pre-commit-config.yaml", yaml.safe_dump(config))
    done = repository.run(sys.executable, "-m", "pre_commit", "install", "--install-hooks")
    assert done.returncode == 0, done.stdout + done.stderr
    repository.git("add", ".pre-commit-config.yaml")
    repository.git("commit", "--quiet", "-m", "hooks")
    return repository


def test_a_commit_with_a_crash_loop_is_blocked_and_a_healthy_one_passes(team: Repository) -> None:
    before = team.commits()
    team.write("logs/run.log", LOOP)
    team.git("add", ".")
    done = team.run("git", "commit", "-m", "a benchmark")
    assert done.returncode != 0
    assert "logs/run.log:" in done.stderr + done.stdout
    assert "[gpu-out-of-memory] crash-looping" in done.stderr + done.stdout
    assert team.commits() == before

    team.write("logs/run.log", READY)
    team.git("add", ".")
    done = team.run("git", "commit", "-m", "a benchmark")
    assert done.returncode == 0, done.stdout + done.stderr
    assert team.commits() == before + 1


def test_a_failure_that_is_expected_passes_and_a_changed_expectation_is_checked(
    team: Repository,
) -> None:
    team.write("repro.log", LOOP)
    team.write("repro.expect.toml", 'state = "crash-looping"\n')
    team.git("add", ".")
    assert team.run("git", "commit", "-m", "a reproduction").returncode == 0
    team.write("repro.expect.toml", 'state = "ready"\n')
    team.git("add", ".")
    done = team.run("git", "commit", "-m", "now it is said to be ready")
    assert done.returncode != 0
    assert "repro.log:" in done.stdout + done.stderr


def test_a_wrong_profile_is_blocked_and_a_sound_one_passes(team: Repository) -> None:
    team.write("profiles/acme.toml", PROFILE.replace("literal", "litteral"))
    team.git("add", ".")
    done = team.run("git", "commit", "-m", "a profile")
    assert done.returncode != 0
    assert "Did you mean 'literal'?" in done.stdout + done.stderr
    team.write("profiles/acme.toml", PROFILE)
    team.git("add", ".")
    done = team.run("git", "commit", "-m", "a profile")
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_hook_can_be_tried_from_the_repository(product: Repository, tmp_path: Path) -> None:
    team = Repository(tmp_path / "team", Path(product.environment["PRE_COMMIT_HOME"]))
    team.write("loop.log", LOOP)
    team.write("ready.log", READY)
    team.git("add", ".")
    done = team.run(
        *(sys.executable, "-m", "pre_commit", "try-repo", str(product.folder)),
        *("loopdetect-check", "--ref", "v1", "--all-files"),
    )
    assert done.returncode == 1, done.stdout + done.stderr
    assert "loop.log:" in done.stdout
    assert "ready.log:" not in done.stdout


# -- what the files say


def load(name: str) -> Any:
    return yaml.safe_load((ROOT / name).read_text("utf-8"))


def test_each_hook_calls_a_command_that_there_is_and_is_documented() -> None:
    documented = (ROOT / "docs" / "ci.md").read_text("utf-8")
    for hook in load(".pre-commit-hooks.yaml"):
        program, command, *_ = hook["entry"].split()
        assert program == "loopdetect"
        assert command in COMMANDS
        assert hook["id"] in documented


def test_this_repository_runs_the_hooks_that_it_offers() -> None:
    [local] = load(".pre-commit-config.yaml")["repos"]
    offered = {hook["id"]: hook["entry"] for hook in load(".pre-commit-hooks.yaml")}
    used = {hook["id"]: hook["entry"] for hook in local["hooks"]}
    assert used == {name: f"python -m {entry}" for name, entry in offered.items()}


def test_pre_commit_accepts_both_files() -> None:
    for command, name in (
        ("validate-manifest", ".pre-commit-hooks.yaml"),
        ("validate-config", ".pre-commit-config.yaml"),
    ):
        done = subprocess.run(
            [sys.executable, "-m", "pre_commit", command, str(ROOT / name)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, "")


# -- the GitHub Action


@pytest.mark.parametrize(
    ("text", "code", "annotations"), [(LOOP, 1, 1), (READY, 0, 0)], ids=["blocked", "passes"]
)
def test_the_action_annotates_and_writes_a_summary(
    text: str, code: int, annotations: int, tmp_path: Path
) -> None:
    action = load("action.yml")
    install, check = action["runs"]["steps"]
    assert "${{" not in install["run"] + check["run"]
    wrapper = tmp_path / "temp" / "loopdetect" / "bin" / "loopdetect"
    wrapper.parent.mkdir(parents=True)
    wrapper.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m loopdetect "$@"\n')
    wrapper.chmod(0o755)
    (tmp_path / "work" / "logs").mkdir(parents=True)
    (tmp_path / "work" / "logs" / "a run.log").write_text(text)
    given = {"logs": "logs/*.log\n", "sarif": "out.sarif", "junit": "", "secrets": "false"}
    inputs = {name: spec.get("default", "") for name, spec in action["inputs"].items()} | given
    variables = {
        name: inputs[value.removeprefix("${{ inputs.").removesuffix(" }}")]
        for name, value in check["env"].items()
    }
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", check["run"]],
        cwd=tmp_path / "work",
        env=os.environ
        | variables
        | {
            "RUNNER_TEMP": str(tmp_path / "temp"),
            "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"),
            "GITHUB_WORKSPACE": str(tmp_path / "work"),
            "PYTHONPATH": str(ROOT),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stderr
    assert done.stdout.count("::error file=logs/a run.log,line=") == annotations
    assert (tmp_path / "summary.md").read_text().startswith("## loopdetect: ")
    assert '"version": "2.1.0"' in (tmp_path / "work" / "out.sarif").read_text()
