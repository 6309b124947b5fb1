"""Findings as text: one line each, and the table of all their formats."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from types import MappingProxyType
from typing import Final, Protocol, cast

from loopdetect.finding import CheckedLog, Finding
from loopdetect.render.escape import visible
from loopdetect.render.options import RenderOptions
from loopdetect.render.paint import BOLD, CYAN, RED, painter


class FindingRenderer(Protocol):
    """Turns checked logs into one text that is empty or ends with a newline."""

    def __call__(self, logs: Sequence[CheckedLog], options: RenderOptions) -> str:
        """Return the text."""


FINDING_FORMATS: Final = MappingProxyType(
    {
        "text": ("loopdetect.render.findings", "to_lines"),
        "json": ("loopdetect.render.findings_json", "to_json"),
        "markdown": ("loopdetect.render.findings_markdown", "to_markdown"),
        "github": ("loopdetect.render.to_github", "to_github"),
        "sarif": ("loopdetect.render.to_sarif", "to_sarif"),
        "junit": ("loopdetect.render.to_junit", "to_junit"),
    }
)


def finding_renderer(name: str) -> FindingRenderer:
    """Return the renderer of a format in `FINDING_FORMATS`."""
    module, function = FINDING_FORMATS[name]
    return cast(FindingRenderer, getattr(importlib.import_module(module), function))


def open_findings(logs: Sequence[CheckedLog]) -> list[Finding]:
    """Return the findings that nobody has accepted, in their order."""
    return sorted((f for log in logs for f in log.open), key=lambda finding: finding.order)


def accepted_findings(logs: Sequence[CheckedLog]) -> list[Finding]:
    """Return the findings that a baseline lets through, in their order."""
    found = (f for log in logs for f in log.findings if f.accepted)
    return sorted(found, key=lambda finding: finding.order)


def place(finding: Finding) -> str:
    """Return `path:line`; standard input has a name too."""
    path = "standard input" if finding.path == "-" else visible(finding.path)
    return f"{path}:{finding.line}"


def one_line(text: str) -> str:
    """Return a text of several lines as one that is safe to print."""
    return visible(" ".join(text.split()))


def to_lines(logs: Sequence[CheckedLog], options: RenderOptions) -> str:
    """Return `path:line: [reason] message` for each finding; detail 1 adds fingerprints."""
    paint = painter(options.color)
    lines: list[str] = []
    for finding in open_findings(logs):
        reason = paint(f"[{visible(finding.reason)}]", RED)
        told = f" (fingerprint {paint(finding.fingerprint, CYAN)})" if options.detail > 0 else ""
        lines.append(f"{paint(place(finding), BOLD)}: {reason} {one_line(finding.message)}{told}\n")
    return "".join(lines)
