"""Two starts side by side as JSON, for scripts: keys are only ever added."""

from __future__ import annotations

import json
from collections.abc import Sequence

from loopdetect import __version__
from loopdetect.compare import Comparison, Side
from loopdetect.render.escape import json_safe
from loopdetect.render.options import RenderOptions
from loopdetect.render.to_json import SCHEMA_VERSION, Json, report_object


def compare_to_json(comparisons: Sequence[Comparison], options: RenderOptions) -> str:
    """Return one document with every comparison."""
    document = {
        "schema_version": SCHEMA_VERSION,
        "tool_version": __version__,
        "comparisons": [_comparison(item) for item in comparisons],
    }
    return json_safe(json.dumps(document, ensure_ascii=False, indent=2, allow_nan=False)) + "\n"


def _comparison(found: Comparison) -> Json:
    return {
        "a": _side(found.a),
        "b": _side(found.b),
        "parting": {
            "phase": found.parting.phase.value,
            "line": found.parting.line,
            "sentence": found.parting.sentence,
        }
        if found.parting
        else None,
        "same_arguments": found.same_arguments,
        "arguments": [
            {"name": c.name, "a": c.a, "b": c.b, "origin": c.origin, "by_chance": c.chance}
            for c in found.arguments
        ],
        "phases": [
            {
                "phase": change.phase.value,
                "a_line": change.a_line,
                "b_line": change.b_line,
                "a_s": _rounded(change.a_s),
                "b_s": _rounded(change.b_s),
                "slower": change.slower,
            }
            for change in found.phases
        ],
        "new_errors": [
            {"line": item.line, "count": item.count, "text": item.text} for item in found.errors
        ],
        "new_errors_left_out": found.errors_left,
        "free_memory_gib": {"a": found.free_memory[0], "b": found.free_memory[1]},
        "notes": list(found.notes),
    }


def _side(side: Side) -> Json:
    report = report_object(side.report)
    runs = report["runs"]
    assert isinstance(runs, list)
    run = next(item for item in runs if item["number"] == side.run.number)
    kept = ("source", "stream", "kind", "server")
    return {**{key: report[key] for key in kept}, "run": run}


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 3)
