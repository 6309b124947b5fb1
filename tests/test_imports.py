"""No command loads what it does not use."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

LOG = Path(__file__).parent.parent / "fixtures/vllm/crash-loop-truncated-shard.log"
PROBE = """
import json, sys
from loopdetect.cli.main import main
before = set(sys.modules)
sys.argv = ["loopdetect", *sys.argv[1:]]
try:
    main()
except SystemExit:
    pass
print("\\n" + json.dumps(sorted(sys.modules)))
"""
ENGINE = {"regex", "ahocorasick_rs", "stringzilla"}
# Libraries of others that a command may load, and no more.
ALLOWED = {
    ("--version",): {"click"},
    ("inspect", "--help"): {"click"},
    ("inspect", "-q", str(LOG)): {"click", *ENGINE},
    ("inspect", "--format", "json", str(LOG)): {"click", *ENGINE},
    ("run", "--help"): {"click"},
    ("run", "--stay", "-q", "--", "false"): {"click", *ENGINE},
    ("profiles", "list"): {"click", "tabulate", "wcwidth"},
    ("scan", "--help"): {"click"},
    ("scan", "--format", "json", str(LOG)): {"click", *ENGINE},
}
# Parts of the standard library that cost, and what must not be there of ours.
COSTLY = {
    ("--version",): {"tomllib", "asyncio", "bz2", "lzma", "loopdetect.core", "loopdetect.profiles"},
    ("inspect", "--help"): {"asyncio", "loopdetect.core", "loopdetect.profiles"},
    ("run", "--help"): {"asyncio", "loopdetect.core", "loopdetect.profiles", "loopdetect.launch"},
    ("run", "--stay", "-q", "--", "false"): {
        "asyncio",
        "loopdetect.follow",
        "loopdetect.remote",
        "loopdetect.probe.http_probe",
    },
    ("inspect", "-q", str(LOG)): {"asyncio", "loopdetect.live", "loopdetect.probe"},
    ("scan", "--help"): {"asyncio", "multiprocessing", "loopdetect.core", "loopdetect.scan"},
    ("scan", "--format", "json", str(LOG)): {"asyncio", "multiprocessing", "loopdetect.live"},
}


def modules(*words: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", PROBE, *words], capture_output=True, text=True, check=True
    )
    return set(json.loads(done.stdout.rsplit("\n", 2)[1]))


def of_others(names: set[str]) -> set[str]:
    tops = {name.partition(".")[0] for name in names}
    known = sys.stdlib_module_names | {"loopdetect", "__main__", "sitecustomize", "_distutils_hack"}
    return {top for top in tops - known if not top.startswith(("_", "__editable"))}


@pytest.mark.parametrize("words", ALLOWED, ids=" ".join)
def test_a_command_loads_only_these_libraries(words: tuple[str, ...]) -> None:
    assert of_others(modules(*words)) <= ALLOWED[words]


@pytest.mark.parametrize("words", COSTLY, ids=" ".join)
def test_a_command_leaves_out_what_costs(words: tuple[str, ...]) -> None:
    assert modules(*words) & COSTLY[words] == set()


def test_the_probe_sees_what_a_command_loads() -> None:
    assert {"regex", "loopdetect.core.detector"} <= modules("inspect", "-q", str(LOG))
