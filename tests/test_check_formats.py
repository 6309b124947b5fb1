from __future__ import annotations

import io
import json
import re
import xml.etree.ElementTree as ET
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft4Validator

from loopdetect.finding import Acceptance, CheckedLog, Finding
from loopdetect.render import RenderOptions
from loopdetect.render.findings import FINDING_FORMATS, finding_renderer
from loopdetect.render.to_github import MOST

SCHEMAS = Path(__file__).parent / "schemas"
NASTY = (
    "\x1b[31m%0A::error::x\r\n::stop-commands::y <b> & \"q\" 'a' | `c` \ufffe\udcff \u202e@all ]]>"
)


def finding(path: str = "a.log", line: int = 3, **changes: Any) -> Finding:
    fields: dict[str, Any] = {
        "reason": "gpu-out-of-memory",
        "message": "crash-looping: vLLM was started 3 times.",
        "fingerprint": "0f0f0f0f0f0f",
        "title": "vLLM is crash-looping",
        "hint": "Use a smaller batch.",
    }
    return Finding(path, line, **(fields | changes))


ACCEPTED = finding("known.log", accepted=Acceptance("a known bug", "2026-12-31"))
SAMPLES: dict[str, list[CheckedLog]] = {
    "nothing": [],
    "passed": [CheckedLog("a.log", ("ready",))],
    "found": [
        CheckedLog("b.log", ("crashed",), (finding("b.log", 9), finding("b.log", 2, reason="x-y"))),
        CheckedLog("a.log", ("crashed",), (finding("a.log", 7, stream="web-1"),)),
    ],
    "accepted": [CheckedLog("known.log", ("crashed",), (ACCEPTED,))],
    "unreadable": [CheckedLog("gone.log", problem="gone.log: no such file", hint="check the path")],
    "hostile": [
        CheckedLog(
            f"dir/{NASTY}.log",
            ("crashed",),
            (
                finding(
                    f"dir/{NASTY}.log",
                    reason="r",
                    message=NASTY,
                    title=NASTY,
                    hint=NASTY,
                    stream=NASTY,
                ),
            ),
            problem=NASTY,
            hint=NASTY,
        ),
        CheckedLog(NASTY, (), (finding(NASTY, message=NASTY, hint=NASTY, stream=NASTY),)),
    ],
    "standard-input": [CheckedLog("-", ("crashed",), (finding("-"),))],
    "outside": [CheckedLog("/logs/a b#1%.log", (), (finding("/logs/a b#1%.log"),))],
}
EACH = pytest.mark.parametrize("logs", SAMPLES.values(), ids=SAMPLES)


def shown(form: str, logs: list[CheckedLog], **options: Any) -> str:
    return finding_renderer(form)(logs, RenderOptions(**options))


@cache
def sarif_schema() -> Draft4Validator:
    schema = json.loads((SCHEMAS / "sarif-2.1.0-rtm.5.json").read_text("utf-8"))
    Draft4Validator.check_schema(schema)
    return Draft4Validator(schema, format_checker=Draft4Validator.FORMAT_CHECKER)


@cache
def junit_schema() -> Any:
    import xmlschema

    return xmlschema.XMLSchema(SCHEMAS / "junit-10.xsd")


@EACH
@pytest.mark.parametrize("form", FINDING_FORMATS)
def test_no_format_lets_a_control_character_through(form: str, logs: list[CheckedLog]) -> None:
    text = shown(form, logs, detail=1)
    assert re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e\udcff]", text) is None
    assert text == "" or text.endswith("\n")
    text.encode("utf-8")


# -- SARIF


@EACH
def test_sarif_is_valid(logs: list[CheckedLog]) -> None:
    document = json.loads(shown("sarif", logs))
    errors = [error.message for error in sarif_schema().iter_errors(document)]
    assert errors == []


def test_the_sarif_schema_refuses_what_is_wrong() -> None:
    document = json.loads(shown("sarif", SAMPLES["found"]))
    document["runs"][0]["results"][0]["level"] = "fatal"
    document["runs"][0]["results"][0]["surprise"] = 1
    assert len(list(sarif_schema().iter_errors(document))) == 2


def test_sarif_results_carry_fingerprints_places_and_rules() -> None:
    run = json.loads(shown("sarif", SAMPLES["found"]))["runs"][0]
    rules = run["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == ["gpu-out-of-memory", "x-y"]
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        assert result["partialFingerprints"] == {"loopdetectFailure/v1": "0f0f0f0f0f0f"}
    places = [result["locations"][0]["physicalLocation"] for result in run["results"]]
    assert [(p["artifactLocation"]["uri"], p["region"]["startLine"]) for p in places] == [
        ("a.log", 7),
        ("b.log", 2),
        ("b.log", 9),
    ]
    assert run["results"][0]["locations"][0]["logicalLocations"][0]["name"] == "web-1"


def test_sarif_tells_accepted_findings_as_suppressed_and_problems_as_notifications() -> None:
    run = json.loads(shown("sarif", SAMPLES["accepted"] + SAMPLES["unreadable"]))["runs"][0]
    assert run["results"][0]["suppressions"] == [
        {"kind": "external", "justification": "a known bug"}
    ]
    assert run["invocations"][0]["executionSuccessful"] is False
    assert len(run["invocations"][0]["toolExecutionNotifications"]) == 1


def test_sarif_paths_are_uris() -> None:
    run = json.loads(shown("sarif", SAMPLES["outside"]))["runs"][0]
    artifact = run["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]
    assert artifact == {"uri": "file:///logs/a%20b%231%25.log"}


# -- JUnit


@EACH
def test_junit_is_valid(logs: list[CheckedLog]) -> None:
    junit_schema().validate(io.StringIO(shown("junit", logs).partition("\n")[2]))


def test_the_junit_schema_refuses_what_is_wrong() -> None:
    text = shown("junit", SAMPLES["found"]).partition("\n")[2].replace("<failure ", "<broken ")
    assert not junit_schema().is_valid(io.StringIO(text.replace("</failure>", "</broken>")))


def test_junit_has_a_case_for_each_log_and_counts_that_agree() -> None:
    names = ("passed", "found", "accepted", "unreadable")
    logs = [log for name in names for log in SAMPLES[name]]
    root = ET.fromstring(shown("junit", logs))
    cases = list(root.iter("testcase"))
    assert [case.get("name") for case in cases] == [log.path for log in logs]
    suite = root[0]
    for attribute, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        assert int(suite.get(attribute, "")) == len(list(root.iter(tag)))
    assert suite.get("tests") == "5"
    failure = next(root.iter("failure"))
    assert failure.get("type") == "x-y"
    assert "b.log:9: [gpu-out-of-memory]" in (failure.text or "")


# -- GitHub


def annotations(text: str) -> list[tuple[str, dict[str, str], str]]:
    """Read workflow commands as the runner does."""
    found = []
    for line in text.splitlines():
        command = re.fullmatch(r"::(\w+) ([^:]*?)::(.*)", line)
        assert command, line
        properties = dict(part.split("=", 1) for part in command[2].split(","))
        found.append((command[1], properties, command[3]))
    return found


@EACH
def test_every_line_is_one_command_that_ends_where_it_should(logs: list[CheckedLog]) -> None:
    for kind, properties, message in annotations(shown("github", logs)):
        assert kind == "error"
        assert set(properties) <= {"file", "line", "title"}
        assert message


def test_annotations_point_to_the_line_and_escape_what_github_reads() -> None:
    one = CheckedLog("a,b:c%.log", (), (finding("a,b:c%.log", 5, message="50% : done"),))
    [(_, properties, message)] = annotations(shown("github", [one]))
    assert properties["file"] == "a%2Cb%3Ac%25.log"
    assert properties["line"] == "5"
    assert message.startswith("[gpu-out-of-memory] 50%25 : done%0AUse a smaller batch.")


def test_the_same_failure_in_many_logs_is_one_annotation() -> None:
    logs = [CheckedLog(f"{n}.log", (), (finding(f"{n}.log"),)) for n in range(9)]
    [(_, properties, message)] = annotations(shown("github", logs))
    assert properties["file"] == "0.log"
    assert message.endswith("Also: 1.log:3, 2.log:3, 3.log:3, 4.log:3, 5.log:3 and 3 more")


def test_no_more_annotations_than_github_shows_and_the_last_tells_the_rest() -> None:
    logs = [
        CheckedLog("a.log", (), tuple(finding(line=n, fingerprint=f"f{n}") for n in range(1, 31)))
    ]
    lines = shown("github", logs).splitlines()
    assert len(lines) == MOST
    assert lines[-1] == "::error title=loopdetect::21 more findings in the job's log"


# -- Markdown, JSON, text


def test_a_row_of_the_markdown_table_stays_a_row() -> None:
    text = shown("markdown", SAMPLES["hostile"])
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert len(rows) == 4
    for row in rows:
        assert len(re.findall(r"(?<!\\)\|", row)) == 4
    assert "@all" not in re.sub(r"(`+).*?\1", "", text)


def test_the_markdown_tells_what_was_accepted_and_until_when() -> None:
    text = shown("markdown", SAMPLES["accepted"])
    assert text.startswith("## loopdetect: nothing found in 1 log\n")
    assert "- `known.log:3` `gpu-out-of-memory`: a known bug (until 2026-12-31)" in text


def test_the_json_has_open_and_accepted_findings_apart() -> None:
    document = json.loads(shown("json", SAMPLES["found"] + SAMPLES["accepted"]))
    assert document["schema_version"] == 1
    assert [(f["path"], f["line"]) for f in document["findings"]] == [
        ("a.log", 7),
        ("b.log", 2),
        ("b.log", 9),
    ]
    assert document["accepted"][0]["because"] == "a known bug"
    assert [log["path"] for log in document["logs"]] == ["b.log", "a.log", "known.log"]


def test_text_is_one_line_a_finding_and_nothing_when_all_is_well() -> None:
    assert shown("text", SAMPLES["passed"] + SAMPLES["accepted"]) == ""
    assert shown("text", SAMPLES["found"]) == (
        "a.log:7: [gpu-out-of-memory] crash-looping: vLLM was started 3 times.\n"
        "b.log:2: [x-y] crash-looping: vLLM was started 3 times.\n"
        "b.log:9: [gpu-out-of-memory] crash-looping: vLLM was started 3 times.\n"
    )
    assert shown("text", SAMPLES["hostile"]).count("\n") == 2
