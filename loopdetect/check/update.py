"""Expectation files written from what a log shows; what people added to them is kept."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any, Final

from loopdetect.check import toml_text
from loopdetect.expectation import KEYS, compare, parse_expectation
from loopdetect.model import Report
from loopdetect.render.clock import iso

WRITTEN: Final = ("state", "server", "restarts", "phase", "reason")
_TABLE: Final = re.compile(
    r"\s*\[stream\.(?P<name>\"(?:[^\"\\]|\\.)*\"|'[^']*'|[\w-]+)\]\s*(?:#.*)?"
)
_PAIR: Final = re.compile(
    r"(?P<key>[a-z_]+)(?P<equals>\s*=\s*)"
    r"(?P<value>\[[^\[\]#]*\]|\"(?:[^\"\\]|\\.)*\"|'[^']*'|[^\s#\[\]\"']+)(?P<rest>\s*(?:#.*)?)"
)


def refreshed(
    old: str | None, reports: Sequence[Report], name: str, now: float | None = None
) -> str:
    """Return the text of the expectation file of the log `name`, given its text so far.

    Keys that fit stay as they are, with comments and alternatives; those that do not are set anew.
    `now` is the time that the reports were made for, if one was given.
    """
    if old is None:
        return _anew(reports, name, {} if now is None else {"now": iso(now)})
    try:
        before = tomllib.loads(old)
    except tomllib.TOMLDecodeError:
        return _anew(reports, name, {})
    edited = _edited(old, reports, before)
    if edited is not None:
        return edited
    return _anew(reports, name, before)


def _edited(old: str, reports: Sequence[Report], before: Mapping[str, Any]) -> str | None:
    """Return the old text with the wrong values replaced, None if that does not do."""
    streams: Mapping[str, Any] = before.get("stream", {})
    table: str | None = None
    lines: list[str] = []
    for line in old.splitlines():
        header = _TABLE.fullmatch(line)
        if header:
            table = next(iter(tomllib.loads(f"[{header['name']}]")))
        pair = _PAIR.fullmatch(line)
        about = [r for r in reports if (r.stream if r.stream in streams else None) == table]
        if pair and pair["key"] in KEYS and about:
            line = _pair(pair, about)
        lines.append(line)
    text = "\n".join(lines) + "\n"
    return text if _fits(text, reports) else None


def _pair(pair: re.Match[str], about: Sequence[Report]) -> str:
    key = KEYS[pair["key"]]
    actual = [key.actual(report) for report in about]
    wanted = parse_expectation({"state": "unknown", **tomllib.loads(pair[0])}, "expectation").whole[
        pair["key"]
    ]
    if all(any(key.fits(choice, has) for choice in wanted) for has in actual):
        return pair[0]
    distinct = [_value(pair["key"], has) for has in dict.fromkeys(actual)]
    if any(shown is None for shown in distinct):
        return f"# {pair[0].strip()}  (the log does not tell)"
    told = distinct[0] if len(distinct) == 1 else f"[{', '.join(map(str, distinct))}]"
    return f"{pair['key']}{pair['equals']}{told}{pair['rest']}"


def _value(key: str, actual: object) -> str | None:
    if key == "ready_within":
        return f'"{-int(-actual // 1)}s"' if isinstance(actual, float | int) else None
    return None if actual is None else toml_text.value(actual)


def _fits(text: str, reports: Sequence[Report]) -> bool:
    try:
        return not compare(parse_expectation(tomllib.loads(text), "expectation"), reports)
    except Exception:
        return False


def _anew(reports: Sequence[Report], name: str, before: Mapping[str, Any]) -> str:
    head = f"# What is to be found in {toml_text.quoted(name)[1:-1]}.\n"
    for key in ("now", "files"):
        if key in before:
            kept = before[key].isoformat() if hasattr(before[key], "isoformat") else before[key]
            head += f"{key} = {toml_text.value(kept)}\n"
    if len(reports) == 1 and reports[0].stream is None:
        return head + _rows(reports[0], before)
    tables = before.get("stream", {})
    parts = [
        f"\n[stream.{toml_text.quoted(report.stream or '')}]\n"
        + _rows(report, tables.get(report.stream or "", {}))
        for report in reports
    ]
    return head + "".join(parts)


def _rows(report: Report, before: Mapping[str, Any]) -> str:
    wanted = dict.fromkeys((*WRITTEN, *(key for key in before if key in KEYS)))
    rows = ""
    for key in wanted:
        actual = KEYS[key].actual(report)
        told = _value(key, actual)
        if told is not None and (key in before or actual != ""):
            rows += f"{key} = {told}\n"
    return rows
