"""The strict reader that makes profiles from TOML.

The reader refuses what it does not know, names the file and the key path, and suggests the
nearest known word. A rule that the literal search could never find is an error here, since it
would be silently dead later.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from loopdetect.errors import ProfileError
from loopdetect.model import Certainty, Kind, Phase
from loopdetect.profiles.literals import required_literal, required_texts
from loopdetect.profiles.schema import Own, Prefix, Profile, Reason, Rule, Speaker

RULE_KINDS: Final = tuple(Kind)
PREFIX_GROUPS: Final = frozenset({"time", "level", "process", "pid", "rank", "uptime"})
MIN_LITERAL: Final = 3
_KEBAB: Final = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*\Z")
_TEXT: Final = frozenset({"since", "until", "origin", "note"})
_COMMON: Final = frozenset(
    {"id", "literal", "pattern", "level", "samples", "not_samples", "unproven"}
)
_ALLOWED: Final[Mapping[Kind, frozenset[str]]] = {
    Kind.IDENTIFY: frozenset({"weight"}),
    Kind.START: frozenset(
        {"order", "phase", "repeats", "again_after_failure", "unless_seen", "retells"}
    ),
    Kind.PHASE: frozenset({"phase", "unless_seen"}),
    Kind.PROGRESS: frozenset({"phase"}),
    Kind.READY: frozenset({"certainty", "needs", "weak"}),
    Kind.ALIVE: frozenset({"certainty", "recovers"}),
    Kind.HEARTBEAT: frozenset(),
    Kind.FAILURE: frozenset(
        {
            "reason",
            "fatal",
            "phase",
            "cancels_ready",
            "outside",
            "weak",
            "while_serving",
            "summary",
            "hint",
        }
    ),
    Kind.CASCADE: frozenset({"fatal", "phase", "cancels_ready", "while_serving", "own"}),
    Kind.HARMLESS: frozenset({"quotes"}),
    Kind.REQUEST_ERROR: frozenset(),
    Kind.STOP: frozenset({"asked", "own", "of_job"}),
    Kind.EXIT: frozenset({"asked", "last_word"}),
    Kind.RESTART: frozenset(),
    Kind.GAVE_UP: frozenset({"reason"}),
}
_TOP: Final = frozenset(
    {
        "name",
        "title",
        "extends",
        "prefix",
        "main_process",
        "child_process",
        "daemon",
        "hosts_engines",
        "frames",
        "speaker",
    }
) | {str(k) for k in Kind}


class _Reader:
    """Reads one TOML table, naming file and key path in every complaint."""

    def __init__(
        self, file: str, table: Mapping[str, Any], where: str, strict: bool = True
    ) -> None:
        self.file, self.table, self.where, self.strict = file, table, where, strict

    def fail(self, message: str, key: str | None = None, hint: str | None = None) -> ProfileError:
        path = f"{self.where}.{key}" if key and self.where else key or self.where
        return ProfileError(f"{self.file}: {path}: {message}", hint)

    def only(self, allowed: frozenset[str]) -> None:
        for key in self.table:
            if key not in allowed:
                near = difflib.get_close_matches(key, allowed, 1, 0.5)
                raise self.fail(
                    "unknown key",
                    key,
                    f"Did you mean '{near[0]}'?"
                    if near
                    else f"Known keys: {', '.join(sorted(allowed))}.",
                )

    def text(self, key: str, default: str | None = None) -> str | None:
        value = self.table.get(key, default)
        if value is not None and (not isinstance(value, str) or not value):
            raise self.fail("must be a text that is not empty", key)
        return value

    def must(self, key: str) -> str:
        value = self.text(key)
        if value is None:
            raise self.fail("is missing", key)
        return value

    def flag(self, key: str, default: bool) -> bool:
        value = self.table.get(key, default)
        if not isinstance(value, bool):
            raise self.fail("must be true or false", key)
        return value

    def number(self, key: str, default: int) -> int:
        value = self.table.get(key, default)
        if isinstance(value, bool) or not isinstance(value, int):
            raise self.fail("must be a whole number", key)
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        value = self.table.get(key, [])
        value = [value] if isinstance(value, str) else value
        if not isinstance(value, list) or not all(isinstance(v, str) and v for v in value):
            raise self.fail("must be a text or a list of texts", key)
        return tuple(value)

    def word(self, key: str, allowed: Sequence[str], default: str | None = None) -> str | None:
        value = self.text(key, default)
        if value is not None and value not in allowed:
            near = difflib.get_close_matches(value, allowed, 1, 0.4)
            raise self.fail(
                f"'{value}' is not one of the known words",
                key,
                f"Did you mean '{near[0]}'?" if near else None,
            )
        return value


def read_profile(path: Path, reasons: frozenset[str], *, strict: bool = True) -> Profile:
    """Read one profile; raise ProfileError with file, key path and a suggestion where it is wrong.

    `strict` also compiles every pattern and holds literals against samples. Shipped profiles are
    held to that by the tests, not at every start.
    """
    top = _Reader(str(path), _load(path), "", strict)
    top.only(_TOP)
    name = top.must("name")
    if not _KEBAB.match(name):
        raise top.fail("must be kebab-case", "name")
    prefixes = tuple(
        _prefix(path, table, f"prefix[{i}]", strict)
        for i, table in enumerate(_tables(top, "prefix"))
    )
    speaker = Speaker(top.word("speaker", tuple(Speaker), Speaker.SERVER) or Speaker.SERVER)
    rules: list[Rule] = []
    seen: set[str] = set()
    for kind in RULE_KINDS:
        for i, table in enumerate(_tables(top, kind)):
            rule = _rule(path, name, kind, table, f"{kind}[{i}]", reasons, strict, speaker)
            if rule.id in seen:
                raise top.fail(f"the id '{rule.id}' is used twice", f"{kind}[{i}]")
            seen.add(rule.id)
            rules.append(rule)
    for rule in rules:
        for other in (*rule.needs, *rule.unless_seen):
            if other not in seen:
                near = difflib.get_close_matches(other, seen, 1, 0.4)
                raise top.fail(
                    f"{rule.id}: there is no rule '{other}'",
                    None,
                    f"Did you mean '{near[0]}'?" if near else None,
                )
    return Profile(
        name,
        top.must("title"),
        top.texts("extends"),
        prefixes,
        tuple(rules),
        str(path),
        main_process=top.text("main_process"),
        child_process=top.text("child_process"),
        daemon=top.flag("daemon", False),
        hosts_engines=top.flag("hosts_engines", False),
        frames=_frames(top),
    )


def read_reasons(path: Path) -> tuple[dict[str, Reason], dict[str, str]]:
    """Read the reasons and the table from exception type to reason."""
    top = _Reader(str(path), _load(path), "")
    top.only(frozenset({"reason", "exception"}))
    reasons: dict[str, Reason] = {}
    for i, table in enumerate(_tables(top, "reason")):
        reader = _Reader(str(path), table, f"reason[{i}]")
        reader.only(frozenset({"code", "kind", "title", "explanation", "hint"}))
        kind = reader.word("kind", ("deterministic", "transient")) or ""
        reason = Reason(
            reader.must("code"),
            kind,
            reader.must("title"),
            reader.must("explanation"),
            reader.must("hint"),
        )
        reasons[reason.code] = reason
    exceptions: dict[str, str] = {}
    for i, table in enumerate(_tables(top, "exception")):
        reader = _Reader(str(path), table, f"exception[{i}]")
        reader.only(frozenset({"type", "reason"}))
        exceptions[reader.must("type")] = (
            reader.word("reason", tuple(reasons)) or "python-exception"
        )
    return reasons, exceptions


def _load(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            return tomllib.load(file)
    except OSError as problem:
        raise ProfileError(
            f"{path}: cannot be read: {problem.strerror}", "Check the path and its permissions."
        ) from problem
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise ProfileError(
            f"{path}: not valid TOML: {problem}", "See docs/profiles.md for the format."
        ) from problem


def _frames(top: _Reader) -> tuple[tuple[str, Phase], ...]:
    """Return the functions that a traceback names, each with the phase that it belongs to."""
    table = top.table.get("frames", {})
    if not isinstance(table, dict):
        raise top.fail("must be a table, written [frames]", "frames")
    reader = _Reader(top.file, table, "frames")
    reader.only(frozenset(map(str, Phase)))
    return tuple((name, Phase(phase)) for phase in table for name in reader.texts(phase))


def _tables(reader: _Reader, key: str) -> list[Mapping[str, Any]]:
    value = reader.table.get(key, [])
    if not isinstance(value, list) or not all(isinstance(v, dict) for v in value):
        raise reader.fail(f"must be tables, written [[{key}]]", key)
    return value


def _prefix(path: Path, table: Mapping[str, Any], where: str, strict: bool) -> Prefix:
    reader = _Reader(str(path), table, where, strict)
    reader.only(frozenset({"pattern", "samples"}) | _TEXT)
    pattern = reader.must("pattern")
    if not strict:
        return Prefix(pattern, reader.texts("samples"))
    compiled = _compile(reader, "pattern", pattern)
    unknown = set(compiled.groupindex) - PREFIX_GROUPS
    if unknown:
        raise reader.fail(
            f"unknown group '{min(unknown)}'",
            "pattern",
            f"Known groups: {', '.join(sorted(PREFIX_GROUPS))}.",
        )
    samples = reader.texts("samples")
    for sample in samples:
        if not compiled.match(sample):
            raise reader.fail(f"does not match its sample {sample!r}", "pattern")
    if not samples:
        raise reader.fail("needs at least one sample", "samples")
    return Prefix(pattern, samples)


def _rule(
    path: Path,
    profile: str,
    kind: Kind,
    table: Mapping[str, Any],
    where: str,
    reasons: frozenset[str],
    strict: bool,
    speaker: Speaker,
) -> Rule:
    reader = _Reader(str(path), table, where, strict)
    if isinstance(table.get("id"), str):
        reader.where = f"{kind}.{table['id']}"
    reader.only(_COMMON | _TEXT | _ALLOWED[kind])
    short = reader.must("id")
    if not _KEBAB.match(short):
        raise reader.fail("must be kebab-case", "id")
    pattern = reader.text("pattern")
    if pattern is not None and strict:
        _compile(reader, "pattern", pattern)
    literals = reader.texts("literal")
    if not literals and pattern is not None:
        derived = required_literal(pattern)
        literals = (derived,) if derived else ()
    if not literals or min(map(len, literals)) < MIN_LITERAL:
        raise reader.fail(
            "no text to search for",
            "literal",
            f"Give a literal of {MIN_LITERAL} or more characters that each such line holds.",
        )
    samples, not_samples = reader.texts("samples"), reader.texts("not_samples")
    if not samples:
        raise reader.fail("needs at least one sample", "samples")
    for sample in samples if strict else ():
        if not any(literal in sample for literal in literals):
            raise reader.fail(f"no literal is in the sample {sample!r}", "literal")
    if kind is Kind.FAILURE and not not_samples:
        raise reader.fail("a failure needs at least one near miss", "not_samples")
    phase = reader.word("phase", tuple(Phase), "config" if kind is Kind.START else None)
    if phase is None and kind in (Kind.PHASE, Kind.PROGRESS):
        raise reader.fail("is missing", "phase")
    reason = reader.word("reason", tuple(reasons))
    if reason is None and kind is Kind.FAILURE:
        raise reader.fail("is missing", "reason")
    reader.flag("unproven", False)
    own = reader.word("own", tuple(Own))
    return Rule(
        id=f"{profile}/{short}",
        kind=kind,
        literals=literals,
        pattern=pattern,
        level=frozenset(reader.texts("level")),
        samples=samples,
        not_samples=not_samples,
        phase=Phase(phase) if phase else None,
        reason=reason,
        certainty=Certainty(
            reader.word("certainty", tuple(Certainty), Certainty.CERTAIN) or "certain"
        ),
        fatal=reader.flag("fatal", kind is Kind.CASCADE),
        weak=reader.flag("weak", False),
        outside=reader.flag("outside", False),
        asked=reader.flag("asked", kind is not Kind.EXIT),
        cancels_ready=reader.flag("cancels_ready", False),
        repeats=reader.flag("repeats", False),
        again_after_failure=reader.flag("again_after_failure", False),
        recovers=reader.flag("recovers", False),
        order=reader.number("order", 1),
        weight=reader.number("weight", 0),
        needs=tuple(f"{profile}/{v}" for v in reader.texts("needs")),
        unless_seen=tuple(f"{profile}/{v}" for v in reader.texts("unless_seen")),
        while_serving=reader.flag("while_serving", False),
        quotes=reader.flag("quotes", False),
        summary=reader.text("summary"),
        hint=reader.text("hint"),
        holds=required_texts(pattern) if pattern else (),
        speaker=speaker,
        own=Own(own) if own else None,
        last_word=reader.flag("last_word", False),
        of_job=reader.flag("of_job", False),
        retells=reader.flag("retells", False),
    )


def _compile(reader: _Reader, key: str, pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as problem:
        raise reader.fail(f"not a valid pattern: {problem}", key) from problem
