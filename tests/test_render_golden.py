from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from report_samples import SAMPLES

from loopdetect.render import FORMATS, RenderOptions, renderer

Golden = Callable[[str, str], None]
ENDINGS = {"text": "txt", "json": "json", "jsonl": "jsonl", "markdown": "md", "html": "html"}


def render(form: str, name: str, **options: object) -> str:
    return renderer(form)([SAMPLES[name]], RenderOptions(**options))  # type: ignore[arg-type]


def test_every_format_has_golden_files() -> None:
    assert set(ENDINGS) == set(FORMATS)


@pytest.mark.parametrize("name", sorted(SAMPLES))
@pytest.mark.parametrize("form", ["text", "markdown"])
def test_golden_of_each_sample(form: str, name: str, golden: Golden) -> None:
    golden(f"{form}/{name}.{ENDINGS[form]}", render(form, name))


@pytest.mark.parametrize("name", ["crash-loop", "unknown", "hostile"])
@pytest.mark.parametrize("form", ["json", "jsonl"])
def test_golden_of_json(form: str, name: str, golden: Golden) -> None:
    text = render(form, name).replace('"tool_version": "0.1.0"', '"tool_version": "X"')
    golden(f"{form}/{name}.{ENDINGS[form]}", text)


def test_golden_on_a_narrow_coloured_terminal(golden: Golden) -> None:
    golden("text/narrow-coloured.txt", render("text", "long-loop", color=True, width=80))


def test_golden_quiet(golden: Golden) -> None:
    reports = [SAMPLES[name] for name in sorted(SAMPLES)]
    golden("text/quiet.txt", renderer("text")(reports, RenderOptions(detail=-1)))


def test_golden_verbose(golden: Golden) -> None:
    golden("text/verbose.txt", render("text", "ready", detail=1))


def test_jsonl_prints_each_report_on_its_own_line() -> None:
    reports = list(SAMPLES.values())
    lines = renderer("jsonl")(reports, RenderOptions()).splitlines()
    assert [json.loads(line)["source"] for line in lines] == [r.source for r in reports]
