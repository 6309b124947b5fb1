"""Findings as SARIF 2.1.0, for code scanning and other collectors."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final
from urllib.parse import quote

from loopdetect import __version__
from loopdetect.finding import CheckedLog, Finding
from loopdetect.render.escape import json_safe
from loopdetect.render.findings import accepted_findings, one_line, open_findings
from loopdetect.render.options import RenderOptions

SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"
FINGERPRINT: Final = "loopdetectFailure/v1"
ROOT: Final = "%SRCROOT%"

Json = dict[str, object]


def to_sarif(logs: Sequence[CheckedLog], options: RenderOptions) -> str:
    """Return one document with one run; accepted findings are in it as suppressed."""
    findings = [*open_findings(logs), *accepted_findings(logs)]
    rules: dict[str, Finding] = {}
    for finding in findings:
        rules.setdefault(finding.reason, finding)
    places = {reason: place for place, reason in enumerate(rules)}
    run: Json = {
        "tool": {
            "driver": {
                "name": "loopdetect",
                "version": __version__,
                "semanticVersion": __version__,
                "rules": [_rule(finding) for finding in rules.values()],
            }
        },
        "invocations": [_invocation(logs)],
        "columnKind": "unicodeCodePoints",
        "results": [_result(finding, places[finding.reason]) for finding in findings],
    }
    document = {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}
    return json_safe(json.dumps(document, ensure_ascii=False, indent=2)) + "\n"


def _rule(finding: Finding) -> Json:
    words = finding.reason.replace("-", " ")
    rule: Json = {
        "id": finding.reason,
        "name": "".join(word.capitalize() for word in words.split()),
        "shortDescription": {"text": one_line(words)},
        "defaultConfiguration": {"level": finding.level.value},
    }
    if finding.hint:
        rule["help"] = {"text": one_line(finding.hint)}
    return rule


def _result(finding: Finding, rule: int) -> Json:
    location: Json = {
        "physicalLocation": {
            "artifactLocation": _artifact(finding.path),
            "region": {"startLine": max(finding.line, 1)},
        }
    }
    if finding.stream:
        location["logicalLocations"] = [{"name": one_line(finding.stream), "kind": "resource"}]
    result: Json = {
        "ruleId": finding.reason,
        "ruleIndex": rule,
        "level": finding.level.value,
        "message": {"text": one_line(finding.message)},
        "locations": [location],
        "partialFingerprints": {FINGERPRINT: finding.fingerprint},
    }
    if finding.accepted:
        result["suppressions"] = [
            {"kind": "external", "justification": one_line(finding.accepted.because)}
        ]
    return result


def _artifact(path: str) -> Json:
    uri = quote(path.replace("\\", "/").encode("utf-8", "surrogateescape"), safe="/-._~")
    if path.startswith("/"):
        return {"uri": f"file://{uri}"}
    return {"uri": uri.removeprefix("./"), "uriBaseId": ROOT}


def _invocation(logs: Sequence[CheckedLog]) -> Json:
    problems = [log for log in logs if log.problem]
    invocation: Json = {"executionSuccessful": not problems}
    if problems:
        invocation["toolExecutionNotifications"] = [
            {
                "level": "error",
                "message": {"text": one_line(log.problem or "")},
                "locations": [{"physicalLocation": {"artifactLocation": _artifact(log.path)}}],
            }
            for log in problems
        ]
    return invocation
