"""Findings as annotations of a GitHub Actions run.

GitHub shows ten errors of a step and drops the rest without a word, so findings that are the same
failure are put together, and the last annotation says how many are not shown.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from loopdetect.finding import CheckedLog, Finding
from loopdetect.render.escape import visible
from loopdetect.render.figures import counted
from loopdetect.render.findings import one_line, open_findings, place
from loopdetect.render.options import RenderOptions
from loopdetect.render.width import cut

MOST: Final = 10
OTHER_PLACES: Final = 5
MESSAGE_CUT: Final = 1000
_MESSAGE: Final = {"%": "%25", "\r": "%0D", "\n": "%0A"}
_PROPERTY: Final = {**_MESSAGE, ":": "%3A", ",": "%2C"}


def to_github(logs: Sequence[CheckedLog], options: RenderOptions) -> str:
    """Return workflow commands, one for each different failure and at most ten."""
    groups = _groups(open_findings(logs))
    lines = [_annotation(group) for group in groups[:MOST]]
    if len(groups) > MOST:
        shown = groups[: MOST - 1]
        rest = sum(len(group) for group in groups[MOST - 1 :])
        lines = [_annotation(group) for group in shown]
        lines.append(f"::error title=loopdetect::{counted(rest, 'more finding')} in the job's log")
    return "".join(f"{line}\n" for line in lines)


def _groups(findings: Iterable[Finding]) -> list[list[Finding]]:
    groups: dict[tuple[str, str], list[Finding]] = {}
    for finding in findings:
        groups.setdefault((finding.reason, finding.fingerprint), []).append(finding)
    return list(groups.values())


def _annotation(group: Sequence[Finding]) -> str:
    first, others = group[0], group[1:]
    text = cut(f"[{first.reason}] {one_line(first.message)}", MESSAGE_CUT)
    if first.hint:
        text += f"\n{one_line(first.hint)}"
    if others:
        places = ", ".join(place(other) for other in others[:OTHER_PLACES])
        more = len(others) - OTHER_PLACES
        text += f"\nAlso: {places}" + (f" and {more} more" if more > 0 else "")
    properties = {
        "file": "" if first.path == "-" else visible(first.path),
        "line": str(first.line),
        "title": one_line(f"loopdetect: {first.title or first.reason}"),
    }
    told = ",".join(
        f"{name}={_escaped(value, _PROPERTY)}" for name, value in properties.items() if value
    )
    return f"::{first.level.value} {told}::{_escaped(text, _MESSAGE)}"


def _escaped(text: str, table: dict[str, str]) -> str:
    return "".join(table.get(char, char) for char in text)
