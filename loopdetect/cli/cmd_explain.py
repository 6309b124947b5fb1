"""`loopdetect explain`: what a failure reason means."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from loopdetect.cli import library
from loopdetect.cli.lazy import CodedCommand
from loopdetect.cli.options import format_option, output_options, profile_option
from loopdetect.cli.output import destination, write
from loopdetect.errors import UsageProblem, suggestion
from loopdetect.render.escape import json_safe, visible
from loopdetect.render.paint import BOLD, DIM, Paint, painter
from loopdetect.render.width import wrap

if TYPE_CHECKING:
    from loopdetect.profiles import Reason


@click.command(cls=CodedCommand)
@click.argument("reason", required=False)
@format_option("text", "json", "markdown")
@output_options
@profile_option
def explain(
    reason: str | None, form: str, output: str | None, color: str, profiles: tuple[str, ...]
) -> None:
    """Explain a failure REASON (as in a report's cause) and what to do; without one, list all."""
    known, _ = library.load(profiles)
    if reason is not None and reason not in known.reasons:
        raise UsageProblem(f"no reason {reason!r}", suggestion(reason, known.reasons))
    target = destination(output, color)
    wanted = (
        [known.reasons[reason]]
        if reason
        else [known.reasons[code] for code in sorted(known.reasons)]
    )
    if form == "json":
        write(_json(wanted), target)
    elif form == "markdown":
        write(_markdown(wanted), target)
    elif reason:
        write(_one(wanted[0], painter(target.color), target.width), target)
    else:
        write(_list(wanted, painter(target.color)), target)


def _json(reasons: Iterable[Reason]) -> str:
    keys = ("code", "kind", "title", "explanation", "hint")
    objects = [{key: getattr(reason, key) for key in keys} for reason in reasons]
    return json_safe(json.dumps({"reasons": objects}, ensure_ascii=False, indent=2)) + "\n"


def _markdown(reasons: Iterable[Reason]) -> str:
    lines = [
        "# Failure reasons",
        "",
        "The closed list of reasons in `cause.reason`, made by `loopdetect explain --format markdown`. A *deterministic* failure comes",
        "again at the next start; a *transient* one may not, so it takes three of them to make a crash loop instead of two.",
        "",
        "| reason | kind | what it is | what to do |",
        "| --- | --- | --- | --- |",
    ]
    cells = ((r.code, r.kind, f"{r.title}. {r.explanation}", r.hint) for r in reasons)
    lines += [
        f"| `{code}` | {kind} | {_cell(what)} | {_cell(hint)} |" for code, kind, what, hint in cells
    ]
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return visible(text).replace("|", "\\|")


def _one(reason: Reason, paint: Paint, width: int | None) -> str:
    lines = [
        f"{paint(visible(reason.code), BOLD)} ({visible(reason.kind)}): {visible(reason.title)}",
        "",
        *wrap(visible(reason.explanation), width, "  "),
        "",
        *wrap(f"What to do: {visible(reason.hint)}", width, "  "),
    ]
    return "\n".join(lines) + "\n"


def _list(reasons: list[Reason], paint: Paint) -> str:
    room = max((len(reason.code) for reason in reasons), default=0)
    lines: list[str] = []
    for reason in reasons:
        code = paint(visible(reason.code).ljust(room), BOLD)
        kind = paint(f"({visible(reason.kind)})", DIM)
        lines.append(f"{code}  {visible(reason.title)} {kind}\n")
    return "".join(lines)
