"""Findings for a job summary or a pull request."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from loopdetect.finding import CheckedLog
from loopdetect.render.escape import code_span, markdown
from loopdetect.render.figures import counted
from loopdetect.render.findings import accepted_findings, open_findings, place
from loopdetect.render.options import RenderOptions
from loopdetect.render.width import cut

MESSAGE_CUT: Final = 400
# A job summary may be 1 MiB large.
MOST_ROWS: Final = 500


def to_markdown(logs: Sequence[CheckedLog], options: RenderOptions) -> str:
    """Return a heading and one row a finding."""
    return "\n".join(_lines(logs)) + "\n"


def _lines(logs: Sequence[CheckedLog]) -> Iterator[str]:
    findings, accepted = open_findings(logs), accepted_findings(logs)
    problems = [log for log in logs if log.problem]
    what = counted(len(findings), "finding") if findings else "nothing found"
    yield f"## loopdetect: {what} in {counted(len(logs), 'log')}"
    if findings:
        yield ""
        yield "| log | reason | what |"
        yield "| --- | --- | --- |"
    for finding in findings[:MOST_ROWS]:
        message = markdown(cut(" ".join(finding.message.split()), MESSAGE_CUT))
        hint = f" *{markdown(finding.hint)}*" if finding.hint else ""
        yield f"| {_cell(place(finding))} | {_cell(finding.reason)} | {message}{hint} |"
    if len(findings) > MOST_ROWS:
        yield f"| | | {len(findings) - MOST_ROWS} more |"
    for log in problems:
        yield ""
        yield f"> {code_span(log.path)} could not be checked: {markdown(log.problem or '')}"
    if accepted:
        yield ""
        yield f"{counted(len(accepted), 'known failure')} accepted:"
        yield ""
    for finding in accepted[:MOST_ROWS]:
        because = markdown(finding.accepted.because if finding.accepted else "")
        until = finding.accepted.expires if finding.accepted else None
        last = f" (until {markdown(until)})" if until else ""
        yield f"- {code_span(place(finding))} {code_span(finding.reason)}: {because}{last}"


def _cell(text: str) -> str:
    # A pipe ends a cell even inside a code span.
    return code_span(text).replace("|", "\\|")
