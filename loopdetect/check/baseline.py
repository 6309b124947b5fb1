"""Known failures that a check lets through: by fingerprint, with a why and perhaps a last day.

```toml
[[accepted]]
fingerprint = "0f3c9a52d1b7"
because = "reproduces the KV cache sizing bug"
expires = 2026-12-31     # optional: the last day
path = "repro/*.log"     # optional: only in these files
```
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import date
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final

from loopdetect.check.toml_text import quoted
from loopdetect.errors import LoopdetectError
from loopdetect.finding import Acceptance, Finding

KEYS: Final = ("fingerprint", "because", "expires", "path", "failure")
HEAD: Final = (
    "# Failures that are known and accepted: by fingerprint, each with a why (because).\n"
    '# expires = 2026-12-31 names the last day, path = "logs/*.log" the files it holds for.\n'
)


class BaselineError(LoopdetectError):
    """A baseline file is wrong; the message names file and key."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One accepted failure; `expires` is the last day on which it is, `path` a glob."""

    fingerprint: str
    because: str
    expires: date | None = None
    path: str | None = None

    def fits(self, finding: Finding) -> bool:
        """True if this entry speaks of the finding, whatever the day."""
        return self.fingerprint == finding.fingerprint and (
            self.path is None or fnmatchcase(finding.path, self.path)
        )


def load_baseline(path: str) -> tuple[Entry, ...]:
    """Read a baseline file; raises BaselineError with file, key and a suggestion."""
    try:
        table = tomllib.loads(Path(path).read_text("utf-8"))
    except OSError as problem:
        raise BaselineError(
            f"{path}: cannot be read: {problem.strerror}",
            "write one: loopdetect check --baseline FILE --accept 'WHY' LOG",
        ) from problem
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise BaselineError(f"{path}: not valid TOML: {problem}") from problem
    _only(table, ("accepted",), path, "")
    rows = table.get("accepted", [])
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise BaselineError(f"{path}: accepted: must be tables", "write [[accepted]]")
    return tuple(_entry(row, path, f"accepted[{place}].") for place, row in enumerate(rows))


def apply(
    entries: Iterable[Entry], findings: Iterable[Finding], today: date
) -> tuple[Finding, ...]:
    """Return the findings, with the accepted ones marked and the expired ones told."""
    entries = tuple(entries)
    return tuple(_held_against(entries, finding, today) for finding in findings)


def entry_text(finding: Finding, because: str) -> str:
    """Return the TOML of an entry that accepts one finding in its file."""
    rows = {
        "fingerprint": finding.fingerprint,
        "failure": finding.reason,
        "because": because,
        "path": _literal_glob(finding.path),
    }
    return "[[accepted]]\n" + "".join(f"{k} = {quoted(v)}\n" for k, v in rows.items())


def _held_against(entries: tuple[Entry, ...], finding: Finding, today: date) -> Finding:
    fitting = [entry for entry in entries if entry.fits(finding)]
    for entry in fitting:
        if entry.expires is None or today <= entry.expires:
            until = entry.expires.isoformat() if entry.expires else None
            return replace(finding, accepted=Acceptance(entry.because, until))
    last = max((entry.expires for entry in fitting if entry.expires), default=None)
    if last is None:
        return finding
    return replace(finding, message=f"{finding.message} (was accepted until {last.isoformat()})")


def _entry(row: Mapping[str, Any], path: str, where: str) -> Entry:
    _only(row, KEYS, path, where)
    for key in ("fingerprint", "because"):
        if not isinstance(row.get(key), str) or not row[key].strip():
            raise BaselineError(f"{path}: {where}{key}: must be a text that is not empty")
    place = row.get("path")
    if place is not None and not isinstance(place, str):
        raise BaselineError(f"{path}: {where}path: must be a text")
    expires = _day(row.get("expires"), path, where)
    return Entry(row["fingerprint"], row["because"], expires, place)


def _day(value: object, path: str, where: str) -> date | None:
    if value is None or type(value) is date:
        return value
    try:
        return date.fromisoformat(str(value))
    except ValueError:
        raise BaselineError(
            f"{path}: {where}expires: {str(value)!r} is not a date", "write expires = 2026-12-31"
        ) from None


def _only(table: Mapping[str, Any], known: tuple[str, ...], path: str, where: str) -> None:
    for key in table:
        if key not in known:
            from loopdetect.errors import suggestion

            raise BaselineError(f"{path}: {where}{key}: unknown key", suggestion(key, known))


def _literal_glob(path: str) -> str:
    return "".join(f"[{char}]" if char in "*?[" else char for char in path)
