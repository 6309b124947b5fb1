"""Findings as JUnit XML: one test case a log, so that a CI system shows each."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from html import escape
from typing import Final

from loopdetect.finding import CheckedLog
from loopdetect.render.escape import visible
from loopdetect.render.findings import one_line, place
from loopdetect.render.options import RenderOptions

SUITE: Final = "loopdetect check"
# What XML 1.0 has no place for; `visible` has shown all other controls already.
_FORBIDDEN: Final = re.compile("[\ufffe\uffff]")


def to_junit(logs: Sequence[CheckedLog], options: RenderOptions) -> str:
    """Return one suite; a log with findings is a failure, one that could not be read an error."""
    failures = sum(1 for log in logs if log.open and not log.problem)
    errors = sum(1 for log in logs if log.problem)
    skipped = sum(1 for log in logs if log.findings and not log.open and not log.problem)
    counts = f'tests="{len(logs)}" failures="{failures}" errors="{errors}"'
    lines = [
        '<?xml version="1.0" encoding="utf-8"?>',
        f'<testsuites name="{SUITE}" {counts}>',
        f'  <testsuite name="{SUITE}" {counts} skipped="{skipped}">',
        *(line for log in logs for line in _case(log)),
        "  </testsuite>",
        "</testsuites>",
    ]
    return "\n".join(lines) + "\n"


def _case(log: CheckedLog) -> Iterator[str]:
    name = "standard input" if log.path == "-" else log.path
    head = f"    <testcase classname={_attribute(SUITE)} name={_attribute(name)}"
    inner = list(_inside(log))
    if not inner:
        yield f"{head}/>"
        return
    yield f"{head}>"
    yield from inner
    yield "    </testcase>"


def _inside(log: CheckedLog) -> Iterator[str]:
    if log.problem:
        message = _attribute(log.problem)
        yield f'      <error type="unreadable" message={message}>{_text(log.hint or "")}</error>'
    elif log.open:
        findings = sorted(log.open, key=lambda finding: finding.order)
        first = findings[0]
        body = "\n".join(f"{place(f)}: [{f.reason}] {one_line(f.message)}" for f in findings)
        hints = dict.fromkeys(f.hint for f in findings if f.hint)
        body += "".join(f"\n{one_line(hint)}" for hint in hints)
        kind, message = _attribute(first.reason), _attribute(first.message)
        yield f"      <failure type={kind} message={message}>{_text(body)}</failure>"
    elif log.findings:
        known = log.findings[0]
        because = known.accepted.because if known.accepted else ""
        yield f"      <skipped type={_attribute(known.reason)} message={_attribute(because)}/>"


def _attribute(text: str) -> str:
    shown = escape(_FORBIDDEN.sub("\ufffd", one_line(text)))
    return f'"{shown}"'


def _text(text: str) -> str:
    shown = "\n".join(visible(line) for line in text.split("\n"))
    return escape(_FORBIDDEN.sub("\ufffd", shown), quote=False)
