"""What is shipped for running it for good: checked by the programs that will read it."""

from __future__ import annotations

import configparser
import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from report_samples import CRASH_LOOP, READY

from loopdetect.cli.cmd_watch import watch
from loopdetect.metrics.board import Board
from loopdetect.metrics.families import Families, exposition

DEPLOY = Path(__file__).parent.parent / "deploy"
DASHBOARD = json.loads((DEPLOY / "grafana/loopdetect.json").read_text("utf-8"))
RULES = (DEPLOY / "prometheus/alerts.yml").read_text("utf-8")


@pytest.fixture
def promtool() -> str:
    """Prometheus' own checker; only a machine of a developer may lack it."""
    found = shutil.which("promtool")
    if found is None and not os.environ.get("CI"):
        pytest.skip("promtool (Debian: prometheus) is not installed")
    assert found, "CI needs promtool: the package prometheus"
    return found


def check(promtool: str, *arguments: str, data: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [promtool, *arguments],
        input=data,
        cwd=DEPLOY / "prometheus",
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def text_of_metrics() -> str:
    board = Board()
    board.put("a.log", (CRASH_LOOP,), 1.0)
    board.put("b.log", (READY,), 1.0)
    board.count_alerts(lambda: {("webhook", "sent"): 1})
    return exposition(Families(board, ["kv-cache-too-small"]))


@pytest.mark.parametrize(
    "arguments",
    [
        ("check", "rules", "alerts.yml"),
        ("test", "rules", "alerts.test.yml"),
        ("check", "config", "--syntax-only", "scrape.yml"),
    ],
    ids=["alert-rules", "alert-tests", "scrape"],
)
def test_promtool_finds_nothing_wrong(arguments: tuple[str, ...], promtool: str) -> None:
    done = check(promtool, *arguments)
    assert done.returncode == 0, done.stdout + done.stderr


def test_promtool_finds_nothing_wrong_with_the_metrics(promtool: str) -> None:
    done = check(promtool, "check", "metrics", data=text_of_metrics())
    assert done.returncode == 0, done.stdout + done.stderr


def test_promtool_would_find_what_is_wrong(promtool: str, tmp_path: Path) -> None:
    broken = tmp_path / "broken.yml"
    broken.write_text(RULES.replace('"crash-looping"}', '"crash-looping"'))
    assert check(promtool, "check", "rules", str(broken)).returncode != 0


def panel_queries() -> list[str]:
    return [t["expr"] for panel in DASHBOARD["panels"] for t in panel["targets"]]


def test_promtool_can_read_the_dashboards_queries(promtool: str, tmp_path: Path) -> None:
    rules = [
        {"record": f"panel:{number}", "expr": query.replace("$source", ".*")}
        for number, query in enumerate(panel_queries())
    ]
    file = tmp_path / "panels.yml"
    file.write_text(json.dumps({"groups": [{"name": "panels", "rules": rules}]}))
    done = check(promtool, "check", "rules", str(file))
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_metric_that_is_asked_for_exists() -> None:
    exposed = set(re.findall(r"^(loopdetect_\w+)", text_of_metrics(), re.MULTILINE))
    asked = set(re.findall(r"\bloopdetect_[a-z_]+", RULES + " ".join(panel_queries())))
    assert asked - exposed - {"loopdetect_events_total"} == set()
    assert asked


def test_every_panel_has_a_place_of_its_own() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        place = panel["gridPos"]
        cells = {
            (place["x"] + x, place["y"] + y) for x in range(place["w"]) for y in range(place["h"])
        }
        assert not cells & taken, panel["title"]
        assert max(x for x, _ in cells) < 24
        taken |= cells
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])


def unit() -> configparser.RawConfigParser:
    parser: Any = configparser.RawConfigParser(strict=True)
    parser.optionxform = str
    parser.read(DEPLOY / "systemd/loopdetect-watch.service", "utf-8")
    return parser  # type: ignore[no-any-return]


def test_the_unit_is_hardened_and_tells_systemd_when_it_is_ready() -> None:
    service = unit()["Service"]
    assert service["Type"] == "notify"
    assert service["Restart"] == "on-failure"
    assert service["SuccessExitStatus"] == "143"
    for key in ("NoNewPrivileges", "PrivateTmp", "ProtectKernelModules", "RestrictNamespaces"):
        assert service[key] == "yes"


@pytest.mark.parametrize("file", ["systemd/loopdetect-watch.service", "Containerfile"])
def test_the_options_in_shipped_files_exist(file: str) -> None:
    known = {option for parameter in watch.params for option in parameter.opts}
    text = (DEPLOY / file).read_text("utf-8")
    start = text.index("ENTRYPOINT" if file == "Containerfile" else "ExecStart=")
    line = text[start : text.index("\n", start)]
    assert set(re.findall(r"--[a-z-]+", line)) <= known
    assert "--state-dir" in line


def test_systemd_finds_nothing_wrong_with_the_unit(tmp_path: Path) -> None:
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("systemd-analyze is not installed")
    done = subprocess.run(
        [analyze, "verify", str(DEPLOY / "systemd/loopdetect-watch.service")],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert "Unknown" not in done.stderr


def test_help_names_every_option_once() -> None:
    told = CliRunner().invoke(watch, ["--help"]).output
    for parameter in watch.params:
        for option in parameter.opts:
            if option.startswith("--"):
                assert len(re.findall(rf"^ +(?:-\w, )?{option}\b(?!-)", told, re.MULTILINE)) == 1
