"""The written pages say what the program does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from loopdetect.cli.main import COMMANDS, main
from loopdetect.profiles import load_library

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text("utf-8")


def test_the_page_of_reasons_is_fresh(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "--format", "markdown"]) == 0
    assert capsys.readouterr().out == (ROOT / "docs/reasons.md").read_text("utf-8")


def test_the_readme_names_each_command() -> None:
    assert [name for name in COMMANDS if f"loopdetect {name}" not in README] == []


def test_the_readme_names_each_server() -> None:
    titles = {
        p.title for n, p in load_library().profiles.items() if n not in ("generic", "supervisors")
    }
    known = README.lower()
    short = {
        "Python web server": "uvicorn",
        "Text Generation Inference": "TGI",
        "Text Embeddings Inference": "text-embeddings-inference",
    }
    assert [t for t in titles if short.get(t, t).lower() not in known] == []


@pytest.mark.parametrize(
    "page", sorted(p for p in [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")]), ids=lambda p: p.name
)
def test_links_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text("utf-8"))
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_the_modules_that_the_architecture_page_names_are_there() -> None:
    page = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
    table = page.split("## The core, one line a module")[1].split("##")[0]
    named = set(re.findall(r"`(\w+\.py)`", table))
    there = {p.name for p in (ROOT / "loopdetect/core").glob("*.py")} - {"__init__.py"}
    assert named == there
