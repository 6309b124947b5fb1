"""Measures loopdetect beside other ways to read a log.

    python bench/run.py [--size 1G] [--rounds 5] [--only WORD] [--large 4G] [--json FILE]

Every command reads the same file, in turns; medians of CPU time (user and system), ratios within
the same rounds, peak memory. Tools that are not installed are left out. The logs are made once,
with a seed, in a folder below the temporary one (--folder).
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final

import logs
import patterns

from loopdetect.profiles import load_library

HERE: Final = Path(__file__).parent
LOOP_SLICE: Final = 4 << 20
LNAV_SLICE: Final = 32 << 20


@dataclass(frozen=True)
class Case:
    """A log, and what is asked of it."""

    name: str
    kind: str
    server: str = "vllm"
    share: float = 0.25
    packed: bool = False
    peers: bool = False


CASES: Final = (
    Case("vLLM, normal", "normal", share=1, peers=True),
    Case("vLLM, normal, gzip", "normal", share=1, packed=True),
    Case("vLLM, normal, a tenth", "normal", share=0.1),
    Case("SGLang, normal", "normal", "sglang"),
    Case("llama.cpp, normal", "normal", "llama-cpp"),
    Case("no access log", "quiet"),
    Case("logged prompts", "prompts"),
    Case("bars, a line each", "bars"),
    Case("bars, redrawn", "bars-cr"),
    Case("CRI envelope", "cri"),
    Case("journald envelope", "journald"),
    Case("docker json-file", "docker"),
    Case("2,000 restarts", "restarts", share=0),
)


@dataclass
class Row:
    """One command on one log; times in seconds of CPU, memory in MiB."""

    log: str
    command: str
    bytes: int
    cpu: list[float] = field(default_factory=list)
    wall: list[float] = field(default_factory=list)
    peak: float = 0.0

    @property
    def speed(self) -> float:
        """Megabytes of text a second of CPU."""
        return self.bytes / 1e6 / max(statistics.median(self.cpu), 1e-3)


def measure(command: Sequence[str], row: Row, folder: Path) -> None:
    """Run a command once and add what it took; a small process starts it, whose memory is the floor."""
    out = folder / "output"  # a real file: some tools stop early when nobody reads them
    done = subprocess.run(
        [sys.executable, "-I", "-S", str(HERE / "child.py"), str(out), *command],
        check=True,
        capture_output=True,
    )
    status, cpu, wall, peak = json.loads(done.stdout)
    if status > 1:
        raise SystemExit(f"{command[0]} failed with {status}: {' '.join(command)}")
    row.wall.append(wall)
    row.cpu.append(cpu)
    row.peak = max(row.peak, peak / 1024)


def log_of(case: Case, folder: Path, size: int) -> tuple[Path, int]:
    """Make a case's log unless it is there; return it and the size of its text."""
    text = int(size * case.share)
    path = folder / f"{case.server}-{case.kind}-{text}.log"
    if not path.exists():
        partial = path.with_suffix(".part")
        with partial.open("wb") as out:
            logs.write(out, case.kind, case.server, text)
        partial.rename(path)
    if not case.packed:
        return path, path.stat().st_size
    packed = path.with_suffix(".log.gz")
    if not packed.exists():
        with path.open("rb") as source, gzip.open(packed, "wb", compresslevel=6) as out:
            shutil.copyfileobj(source, out, 1 << 20)
    return packed, path.stat().st_size


def cut(path: Path, size: int) -> Path:
    """Return a file with the first bytes of another."""
    part = path.with_suffix(f".{size}.log")
    if not part.exists():
        with path.open("rb") as source:
            part.write_bytes(source.read(size))
    return part


def ours(path: Path) -> list[str]:
    """Return the command under test."""
    return [sys.executable, "-m", "loopdetect", "inspect", "-q", "--format", "json", str(path)]


def peers(path: Path, folder: Path, server: str) -> dict[str, tuple[list[str], int]]:
    """Return the other commands, each with the bytes that it reads."""
    fixed, regexes = patterns.write(folder, load_library(), server)
    size = path.stat().st_size
    short, middle = cut(path, LOOP_SLICE), cut(path, LNAV_SLICE)
    loop = [sys.executable, str(HERE / "line_loop.py"), str(regexes), str(short)]
    lnav = ["lnav", "-n", "-q", "-c", ":filter-in Traceback|ERROR", str(middle)]
    wanted = {
        "wc -l": (["wc", "-l", str(path)], size),
        "rg -c -f patterns": (["rg", "-ac", "-f", str(regexes), str(path)], size),
        "rg -cF -f literals": (["rg", "-acF", "-f", str(fixed), str(path)], size),
        "grep -cF -f literals": (["grep", "-acF", "-f", str(fixed), str(path)], size),
        "re, line by line": (loop, short.stat().st_size),
        "lnav, headless": (lnav, middle.stat().st_size),
    }
    return {name: row for name, row in wanted.items() if shutil.which(row[0][0])}


def run(case: Case, folder: Path, size: int, rounds: int) -> list[Row]:
    """Measure one case."""
    path, text = log_of(case, folder, size)
    commands = {"loopdetect inspect": (ours(path), text)}
    if case.peers:
        commands |= peers(path, folder, case.server)
    elif not case.packed and shutil.which("wc"):
        commands["wc -l"] = (["wc", "-l", str(path)], text)
    rows = {name: Row(case.name, name, read) for name, (_, read) in commands.items()}
    subprocess.run(["cat", str(path)], stdout=subprocess.DEVNULL, check=True)  # into the page cache
    for _ in range(rounds):
        for name, (command, _) in commands.items():
            measure(command, rows[name], folder)
    return list(rows.values())


def table(rows: Sequence[Row]) -> str:
    """Return the rows as a table in Markdown; ratios are of CPU seconds for the same bytes."""
    lines = [
        "| log | command | MB | CPU s | MB per CPU s | CPU / wc -l | speed / rg | wall s | peak MiB |",
        "|---|---|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for row in rows:
        same = {r.command: r for r in rows if r.log == row.log}
        count, rg = same.get("wc -l"), same.get("rg -c -f patterns")
        lines.append(
            f"| {row.log} | {row.command} | {row.bytes / 1e6:.0f} | {statistics.median(row.cpu):.2f} | {row.speed:.0f} "
            f"| {f'{count.speed / row.speed:.1f}' if count else '–'} | {f'{row.speed / rg.speed:.1f}' if rg else '–'} "
            f"| {statistics.median(row.wall):.2f} | {row.peak:.0f} |"
        )
    return "\n".join(lines)


def start_up(rounds: int, folder: Path) -> list[Row]:
    """Measure what a command costs that has next to nothing to do."""
    path = folder / "small.log"
    with path.open("wb") as out:
        logs.write(out, "normal", "vllm", 0)
    short = cut(path, 100_000)
    commands = {
        "loopdetect --version": [sys.executable, "-m", "loopdetect", "--version"],
        "loopdetect inspect": ours(short),
        "loopdetect check": [sys.executable, "-m", "loopdetect", "check", str(short)],
    }
    rows = {name: Row("100 KB", name, short.stat().st_size) for name in commands}
    for _ in range(rounds):
        for name, command in commands.items():
            measure(command, rows[name], folder)
    return list(rows.values())


def main() -> int:
    """Measure everything and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--size", type=logs.size_of, default=logs.size_of("1G"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="", help="cases whose name holds this word")
    parser.add_argument(
        "--large", type=logs.size_of, default=0, help="one more log, for its peak memory"
    )
    parser.add_argument(
        "--folder", type=Path, default=Path(tempfile.gettempdir()) / "loopdetect-bench"
    )
    parser.add_argument("--json", type=Path)
    chosen = parser.parse_args()
    chosen.folder.mkdir(parents=True, exist_ok=True)
    rows = start_up(chosen.rounds, chosen.folder)
    for case in CASES:
        if chosen.only in case.name:
            rows += run(case, chosen.folder, chosen.size, chosen.rounds)
            print(f"{case.name}: done", file=sys.stderr)  # noqa: T201
    if chosen.large:
        rows += run(Case("vLLM, normal, large", "normal", share=1), chosen.folder, chosen.large, 1)
    print(f"Python {platform.python_version()}, {platform.machine()}, {os.cpu_count()} cores\n")  # noqa: T201
    print(table(rows))  # noqa: T201
    if chosen.json:
        chosen.json.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
