"""The report as JSON, for scripts: keys are only ever added."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from json.encoder import encode_basestring
from typing import Final

from loopdetect import __version__
from loopdetect.model import Cause, Evidence, PhaseSpan, Progress, Report, Run, Verdict
from loopdetect.render.clock import iso
from loopdetect.render.escape import json_safe
from loopdetect.render.options import RenderOptions

SCHEMA_VERSION: Final = 1
# How deep in a document the list of runs is: document, reports, report, runs.
RUNS_DEPTH: Final = 3

Json = dict[str, object]


def to_json(reports: Sequence[Report], options: RenderOptions) -> str:
    """Return one document with every report."""
    document = {
        "schema_version": SCHEMA_VERSION,
        "tool_version": __version__,
        "reports": [report_object(report) for report in reports],
    }
    pieces = [json_safe(piece) for piece in _pieces(document)]
    document.clear()
    return "".join([*pieces, "\n"])


def _pieces(value: object, margin: str = "\n", depth: int = 0) -> Iterator[str]:
    """Yield the text of a document run by run: all of it several times over takes much memory."""
    inner = margin + "  "
    if depth > RUNS_DEPTH or not isinstance(value, dict | list) or not value:
        yield _indented(value, margin)
        return
    named = value.items() if isinstance(value, dict) else ((None, item) for item in value)
    before = "{" if isinstance(value, dict) else "["
    for key, item in named:
        yield f"{before}{inner}" if key is None else f"{before}{inner}{encode_basestring(key)}: "
        yield from _pieces(item, inner, depth + 1)
        before = ","
    yield margin + ("}" if isinstance(value, dict) else "]")


def _indented(value: object, margin: str) -> str:
    """Write as `json.dumps` does with an indent of two, in half the time."""
    if isinstance(value, str):
        return encode_basestring(value)
    if value is None or isinstance(value, bool | float):
        return json.dumps(value, allow_nan=False) if value is not None else "null"
    if isinstance(value, int):
        return int.__repr__(value)
    inner = margin + "  "
    if isinstance(value, dict) and value:
        texts = [f"{inner}{encode_basestring(k)}: {_indented(v, inner)}" for k, v in value.items()]
        return f"{{{','.join(texts)}{margin}}}"
    if isinstance(value, list) and value:
        return f"[{','.join([inner + _indented(item, inner) for item in value])}{margin}]"
    return json.dumps(value, allow_nan=False)


def to_jsonl(reports: Sequence[Report], options: RenderOptions) -> str:
    """Return each report on a line of its own."""
    lines = (json.dumps(report_object(r), ensure_ascii=False, allow_nan=False) for r in reports)
    return "".join(json_safe(line) + "\n" for line in lines)


def report_object(report: Report) -> Json:
    """Return one report as the JSON object that the documents hold."""
    return {
        "source": report.source,
        "stream": report.stream,
        "kind": report.kind,
        "lines": report.lines,
        "bytes": report.bytes,
        "clock": report.clock,
        "server": {"name": report.server.name, "version": report.server.version},
        "verdict": _verdict(report.verdict, report.clock),
        "runs": [_run(run, report.clock) for run in report.runs],
        "notes": list(report.notes),
        "files": [{"name": file.name, "first_line": file.first_line} for file in report.files],
    }


def _verdict(verdict: Verdict, clock: str | None) -> Json:
    return {
        "state": verdict.state.value,
        "certainty": verdict.certainty.value,
        "summary": verdict.summary,
        "restarts": verdict.restarts,
        "crashes": verdict.crashes,
        "ready_seen": verdict.ready_seen,
        "phase": verdict.phase.value,
        "since": iso(verdict.since, clock),
        "since_line": verdict.since_line,
        "cause": _cause(verdict.cause),
        "first_cause": _cause(verdict.first_cause),
        "evidence": [_evidence(evidence) for evidence in verdict.evidence],
        "rule": verdict.rule,
    }


def _run(run: Run, clock: str | None) -> Json:
    return {
        "number": run.number,
        "first_line": run.first_line,
        "last_line": run.last_line,
        "started_at": iso(run.started_at, clock),
        "ended_at": iso(run.ended_at, clock),
        "duration_s": _number(run.duration_s),
        "phase": run.phase.value,
        "ready_after_s": _number(run.ready_after_s),
        "ready": run.ready,
        "outcome": run.outcome.value,
        "exit": {"code": run.exit.code, "signal": run.exit.signal},
        "cause": _cause(run.cause),
        "fingerprint": run.fingerprint,
        "phases": [_phase(span, clock) for span in run.phases],
        "progress": [_progress(progress) for progress in run.progress],
    }


def _cause(cause: Cause | None) -> Json | None:
    if cause is None:
        return None
    return {
        "line": cause.line,
        "text": cause.text,
        "reason": cause.reason,
        "hint": cause.hint,
        "certainty": cause.certainty.value,
    }


def _evidence(evidence: Evidence) -> Json:
    return {"line": evidence.line, "kind": str(evidence.kind), "text": evidence.text}


def _phase(span: PhaseSpan, clock: str | None) -> Json:
    return {
        "phase": span.phase.value,
        "line": span.line,
        "started_at": iso(span.started_at, clock),
        "duration_s": _number(span.duration_s),
    }


def _progress(progress: Progress) -> Json:
    return {
        "label": progress.label,
        "done": _number(progress.done),
        "total": _number(progress.total),
        "elapsed_s": _number(progress.elapsed_s),
        "remaining_s": _number(progress.remaining_s),
        "first_line": progress.first_line,
        "last_line": progress.last_line,
    }


def _number(value: float | None) -> int | float | None:
    if value is None or not math.isfinite(value):
        return None
    return int(value) if float(value).is_integer() else round(value, 3)
