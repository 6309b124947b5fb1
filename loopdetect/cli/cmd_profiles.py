"""`loopdetect profiles`: what is known about each server, and whether a new profile is sound."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from loopdetect.cli import library
from loopdetect.cli.exit_codes import ExitCode
from loopdetect.cli.lazy import USUAL, CodedCommand, LazyGroup
from loopdetect.cli.options import format_option, output_options, profile_option
from loopdetect.cli.output import Destination, destination, write
from loopdetect.errors import ProfileError, UsageProblem, suggestion
from loopdetect.render.escape import json_safe, visible
from loopdetect.render.figures import counted
from loopdetect.render.paint import BOLD, DIM, RED, Paint, painter
from loopdetect.render.width import cut

if TYPE_CHECKING:
    from loopdetect.profiles import Profile, Rule

COMMANDS: Final = {
    "list": (__name__, "list_profiles", "List the servers that are known."),
    "show": (__name__, "show", "Show the rules of one server."),
    "test": (
        __name__,
        "test",
        "Check profile files: their keys, and every rule against its samples.",
    ),
}


@click.group(cls=LazyGroup, table=COMMANDS, codes=USUAL)
def profiles() -> None:
    """List, show and test what is known about each server."""


@click.command("list", cls=CodedCommand)
@format_option("text", "json")
@output_options
@profile_option
def list_profiles(form: str, output: str | None, color: str, profiles: tuple[str, ...]) -> None:
    """List the servers that are known."""
    known, _ = library.load(profiles)
    target = destination(output, color)
    found = [known.profiles[name] for name in sorted(known.profiles)]
    if form == "json":
        keys = [{"name": p.name, "title": p.title, "rules": len(p.rules)} for p in found]
        _write_json({"profiles": keys}, target)
        return
    paint, room = painter(target.color), max((len(p.name) for p in found), default=0)
    lines: list[str] = []
    for profile in found:
        rules = paint(f"({counted(len(profile.rules), 'rule')})", DIM)
        lines.append(f"{paint(profile.name.ljust(room), BOLD)}  {visible(profile.title)} {rules}\n")
    write("".join(lines), target)


@click.command(cls=CodedCommand)
@click.argument("name")
@format_option("text", "json")
@output_options
@profile_option
def show(name: str, form: str, output: str | None, color: str, profiles: tuple[str, ...]) -> None:
    """Show the rules of the server NAME, kind by kind, each with a line that it matches."""
    known, _ = library.load(profiles)
    if name not in known.profiles:
        raise UsageProblem(f"no profile {name!r}", suggestion(name, known.profiles))
    target = destination(output, color)
    profile = known.profiles[name]
    if form == "json":
        _write_json(_profile_object(profile), target)
    else:
        write(_profile_text(profile, painter(target.color), target.width), target)


@click.command(cls=CodedCommand)
@click.argument("files", nargs=-1, metavar="[FILE...]")
@output_options
def test(files: tuple[str, ...], output: str | None, color: str) -> int:
    """Check profile FILEs strictly, without one the shipped and your own: every key, and each
    rule against its samples and near misses. Exit 1 if something is wrong.
    """
    from loopdetect.core.samples import check

    target = destination(output, color)
    paint = painter(target.color)
    lines: list[str] = []
    bad = 0
    for file in [Path(name) for name in files] or _all_files():
        if not file.is_file():
            raise ProfileError(f"{file}: no such profile file", "check the path")
        problems = _problems(file, check)
        bad += bool(problems)
        shown = visible(str(file))
        lines += [paint(visible(_under(shown, problem)), RED) for problem in problems]
        if not problems:
            lines.append(f"{shown}: ok")
    write("".join(f"{line}\n" for line in lines), target)
    return ExitCode.FINDING if bad else ExitCode.OK


def _problems(file: Path, check: Callable[[Path], list[str]]) -> list[str]:
    try:
        return check(file)
    except ProfileError as problem:
        return [f"{problem}. {problem.hint}" if problem.hint else str(problem)]


def _under(file: str, problem: str) -> str:
    return problem if problem.startswith(file) else f"{file}: {problem}"


def _all_files() -> list[Path]:
    from loopdetect.profiles import SHIPPED, user_folder

    shipped = [path for path in sorted(SHIPPED.glob("*.toml")) if path.name != "reasons.toml"]
    folder = user_folder()
    return shipped + (sorted(folder.glob("*.toml")) if folder.is_dir() else [])


def _profile_object(profile: Profile) -> dict[str, object]:
    rules = [
        {
            "id": rule.id,
            "kind": rule.kind.value,
            "phase": rule.phase.value if rule.phase else None,
            "reason": rule.reason,
            "samples": list(rule.samples),
        }
        for rule in profile.rules
    ]
    return {"name": profile.name, "title": profile.title, "rules": rules}


def _profile_text(profile: Profile, paint: Paint, width: int | None) -> str:
    kinds = Counter(rule.kind for rule in profile.rules)
    lines = [f"{paint(profile.name, BOLD)}: {visible(profile.title)}"]
    for kind, count in kinds.items():
        lines += ["", f"{paint(kind.value, BOLD)} {paint(f'({count})', DIM)}"]
        for rule in profile.rules:
            if rule.kind is kind:
                lines.append(f"  {visible(rule.id)}{_says(rule)}")
                lines += [paint(cut(f"      {visible(s)}", width), DIM) for s in rule.samples[:1]]
    return "\n".join(lines) + "\n"


def _says(rule: Rule) -> str:
    told = rule.reason or (rule.phase.value if rule.phase else None)
    return f": {visible(told)}" if told else ""


def _write_json(document: object, target: Destination) -> None:
    write(json_safe(json.dumps(document, ensure_ascii=False, indent=2)) + "\n", target)
