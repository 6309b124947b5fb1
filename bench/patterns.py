"""What other tools are given to search for: the patterns, or the literals, of one server's rules.

Left out are the rules that loopdetect does not search for either: what excuses a line, and proof
of serving, of which one line is enough.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Final

from loopdetect.model import Kind
from loopdetect.profiles import ALWAYS, Library, Rule

UNSEARCHED: Final = frozenset({Kind.IDENTIFY, Kind.HARMLESS, Kind.REQUEST_ERROR, Kind.ALIVE})


def rules_of(library: Library, server: str) -> list[Rule]:
    """Return the rules that loopdetect asks for a server, its supervisors and any program."""
    found = {p.name: p for name in (server, *ALWAYS) for p in library.lineage(name)}
    rules = [rule for profile in found.values() for rule in profile.rules]
    return [rule for rule in rules if rule.kind not in UNSEARCHED and not rule.of_strangers]


def literals(rules: list[Rule]) -> list[str]:
    """Return what the rules' lines hold."""
    return sorted({text for rule in rules for text in rule.literals if text.isascii()})


def regexes(rules: list[Rule]) -> list[str]:
    """Return the rules' patterns; the literals of those that ripgrep's engine does not know."""
    found: set[str] = set()
    for rule in rules:
        if rule.pattern is None or not known(rule.pattern):
            found.update(_escaped(text) for text in rule.literals)
        else:
            # Names of groups may come only once in one expression.
            found.add(re.sub(r"\?P<\w+>", "", rule.pattern))
    return sorted(text for text in found if text.isascii())


def _escaped(text: str) -> str:
    return re.escape(text).replace(r"\ ", " ").replace("\\\t", r"\t")


def known(pattern: str) -> bool:
    """Does ripgrep understand a pattern?"""
    if "\n" in pattern or re.search(r"\(\?[imsx]+\)", pattern) or not pattern.isascii():
        return False
    if not shutil.which("rg"):
        return "(?" not in pattern
    return subprocess.run(["rg", "-e", pattern, os.devnull], capture_output=True).returncode < 2


def write(folder: Path, library: Library, server: str) -> tuple[Path, Path]:
    """Write both lists; return the files of literals and of patterns."""
    rules = rules_of(library, server)
    fixed, patterns = folder / f"{server}.literals", folder / f"{server}.patterns"
    fixed.write_text("\n".join(literals(rules)) + "\n", "utf-8")
    patterns.write_text("\n".join(regexes(rules)) + "\n", "utf-8")
    return fixed, patterns
