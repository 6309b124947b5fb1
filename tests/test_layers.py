"""Who may import whom. The core reads no clock, opens no file and prints nothing."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "loopdetect"
MODULES = sorted(PACKAGE.rglob("*.py"))
HEAVY = {
    "jinja2",
    "markupsafe",
    "prometheus_client",
    "psutil",
    "rich",
    "tabulate",
    "urllib3",
    "watchdog",
}


@dataclass(frozen=True)
class Part:
    """What one part of the package may import of ours, and of others'."""

    ours: frozenset[str]
    others: frozenset[str] = frozenset()


def part(ours: str, others: str = "") -> Part:
    return Part(frozenset(ours.split()), frozenset(others.split()))


PARTS = {
    "__init__": part(""),
    "__main__": part("cli"),
    "model": part(""),
    "errors": part(""),
    "written": part("model errors"),
    "profiles": part("model errors profiles", "regex"),
    "core": part("model errors profiles core", "regex ahocorasick_rs"),
    "arguments": part("core"),
    "bar_points": part("core"),
    "notable": part("arguments bar_points core", "ahocorasick_rs"),
    "compare": part("model arguments notable"),
    "finding": part(""),
    "expectation": part("model errors written render"),
    "settings": part("errors written"),
    "redact": part("model profiles redact"),
    "check": part("model errors profiles core source render cli redact finding expectation check"),
    "source": part("model errors core source", "isal zstandard compression watchdog"),
    "probe": part("model errors core probe", "urllib3 psutil watchdog"),
    "render": part(
        "__init__ model errors arguments compare finding render", "tabulate jinja2 markupsafe"
    ),
    "follow": part("__init__ model errors profiles core render source follow", "watchdog"),
    "alert": part("__init__ model errors render follow alert", "urllib3"),
    "live": part(
        "__init__ model errors profiles core probe source render live", "rich regex watchdog"
    ),
    "launch": part("model errors core probe render live launch"),
    "remote": part("errors core live probe remote", "urllib3"),
    "metrics": part("__init__ model errors render follow metrics", "prometheus_client"),
    "state": part("errors state"),
    "scan": part("__init__ model errors profiles core source render scan"),
    "cli": part(
        "__init__ model errors written profiles core source probe arguments compare notable render cli "
        "finding expectation settings redact check follow live alert metrics state launch remote scan",
        "click rich psutil prometheus_client urllib3",
    ),
}

# Names that reach outside; the profiles' loader is the one that may read files.
OUTSIDE = {
    ("time", "time"),
    ("time", "monotonic"),
    ("time", "sleep"),
    ("datetime", "now"),
    ("datetime", "today"),
    ("datetime", "utcnow"),
    ("os", "environ"),
    ("os", "getenv"),
}
BUILTINS = {"open", "print", "input"}
PURE = [path for path in MODULES if path.relative_to(PACKAGE).parts[0] in ("core", "model.py")]


def name_of(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


def part_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imports(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: relative import"
            assert node.module is not None
            if node.module == "loopdetect":
                for alias in node.names:
                    inside = PACKAGE / alias.name
                    found = inside.is_dir() or inside.with_suffix(".py").exists()
                    yield f"loopdetect.{alias.name}" if found else "loopdetect.__init__"
            else:
                yield node.module


def stray(path: Path) -> list[str]:
    """Return what a module imports and may not."""
    allowed = PARTS[part_of(path)]
    found = []
    for name in imports(ast.parse(path.read_text("utf-8"))):
        top, _, rest = name.partition(".")
        if top == "loopdetect":
            if rest.split(".")[0] not in allowed.ours:
                found.append(name)
        elif top not in sys.stdlib_module_names and top not in allowed.others:
            found.append(name)
    return found


def reaching_out(tree: ast.AST) -> list[str]:
    """Return the uses of clock, files, environment and terminal."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            if (node.value.id, node.attr) in OUTSIDE:
                found.append(f"{node.value.id}.{node.attr}")
        elif (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in BUILTINS
        ):
            found.append(node.func.id)
    return found


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_a_module_imports_only_what_its_part_may(path: Path) -> None:
    assert part_of(path) in PARTS
    assert stray(path) == []


@pytest.mark.parametrize("path", PURE, ids=name_of)
def test_the_core_reaches_for_nothing_outside(path: Path) -> None:
    tree = ast.parse(path.read_text("utf-8"))
    assert reaching_out(tree) == []
    assert {"socket", "subprocess", "urllib", "logging"} & set(imports(tree)) == set()


def only_for_types(node: ast.AST) -> bool:
    """True for `if TYPE_CHECKING:`, which is never run."""
    return (
        isinstance(node, ast.If)
        and isinstance(node.test, ast.Name)
        and node.test.id == "TYPE_CHECKING"
    )


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_heavy_libraries_are_imported_only_inside_functions(path: Path) -> None:
    tree = ast.parse(path.read_text("utf-8"))
    inside = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or only_for_types(node)
        for inner in ast.walk(node)
    }
    early = [
        name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom) and id(node) not in inside
        for name in imports(node)
    ]
    assert [name for name in early if name.split(".")[0] in HEAVY] == []


def test_the_checks_see_what_they_look_for(tmp_path: Path) -> None:
    tree = ast.parse("import time\nfrom loopdetect import cli\ntime.time()\nopen('x')\nprint()")
    assert set(imports(tree)) == {"time", "loopdetect.cli"}
    assert sorted(reaching_out(tree)) == ["open", "print", "time.time"]


def test_no_module_has_a_name_that_says_nothing() -> None:
    names = {path.stem for path in MODULES}
    assert names & {"utils", "helpers", "common", "base"} == set()
    assert names & (sys.stdlib_module_names - {"__main__", "inspect", "profile"}) == set()
