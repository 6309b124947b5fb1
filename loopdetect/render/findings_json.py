"""Findings as JSON, for scripts: keys are only ever added."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

from loopdetect import __version__
from loopdetect.finding import CheckedLog, Finding
from loopdetect.render.escape import json_safe
from loopdetect.render.findings import accepted_findings, open_findings
from loopdetect.render.options import RenderOptions

SCHEMA_VERSION: Final = 1


def to_json(logs: Sequence[CheckedLog], options: RenderOptions) -> str:
    """Return one document with every finding, the accepted ones apart."""
    document = {
        "schema_version": SCHEMA_VERSION,
        "tool_version": __version__,
        "logs": [
            {"path": log.path, "states": list(log.states), "problem": log.problem} for log in logs
        ],
        "findings": [_finding(finding) for finding in open_findings(logs)],
        "accepted": [_finding(finding) for finding in accepted_findings(logs)],
    }
    return json_safe(json.dumps(document, ensure_ascii=False, indent=2)) + "\n"


def _finding(finding: Finding) -> dict[str, object]:
    shown: dict[str, object] = {
        "path": finding.path,
        "line": finding.line,
        "stream": finding.stream,
        "level": finding.level.value,
        "reason": finding.reason,
        "message": finding.message,
        "hint": finding.hint,
        "fingerprint": finding.fingerprint,
    }
    if finding.accepted:
        shown["because"] = finding.accepted.because
        shown["expires"] = finding.accepted.expires
    return shown
