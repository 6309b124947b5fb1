"""One log checked, in this process or in a worker."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from loopdetect.check.judge import judge, state_names
from loopdetect.errors import LoopdetectError, SourceError
from loopdetect.expectation import Expectation, expectation_path, load_expectation
from loopdetect.finding import CheckedLog, Finding
from loopdetect.model import Policy, Report, State
from loopdetect.source.histories import History, joined

if TYPE_CHECKING:
    from loopdetect.profiles import Library

STDIN: Final = "-"


@dataclass(frozen=True, slots=True)
class Job:
    """What every log of one call is checked with; `now` is seconds on the log's own clock."""

    library: Library
    profile: str | None
    policy: Policy
    now: float | None
    states: frozenset[State] | None
    secrets: bool
    keep: tuple[str, ...]


def check_log(path: str, job: Job) -> CheckedLog:
    """Check one log; what keeps it from being read is told in the result."""
    try:
        expectation = expectation_of(path)
        reports, problem = read_reports(path, job, expectation)
        findings = judge(path, reports, expectation, job.states)
        if job.secrets and path == STDIN:
            raise SourceError(
                "secrets can't be looked for in standard input", "give a file, or drop --secrets"
            )
        if job.secrets:
            findings += _secrets(path, job)
    except LoopdetectError as failed:
        return CheckedLog(path, problem=str(failed), hint=failed.hint)
    return CheckedLog(
        path,
        state_names(reports),
        findings,
        str(problem) if problem else None,
        problem.hint if problem else None,
    )


def expectation_of(path: str) -> Expectation | None:
    """Return the expectation beside a log, None if there is none; raises ExpectationError."""
    if path == STDIN:
        return None
    beside = expectation_path(path)
    return load_expectation(beside) if beside.is_file() else None


def read_reports(
    path: str, job: Job, expectation: Expectation | None
) -> tuple[Sequence[Report], SourceError | None]:
    """Return the reports on a log, and what kept it from being read to its end, if anything.

    Raises SourceError when nothing of it can be read.
    """
    from loopdetect.core.detector import Detector
    from loopdetect.source.files import CutShort, open_source

    now = job.now
    if now is None and expectation is not None:
        now = expectation.now
    problem: SourceError | None = None
    detector = Detector(job.library, policy=job.policy, source=path, profile=job.profile)
    history = _history(path, expectation)
    for name in history.files:
        detector.next_file(name, restarted=history.restarts)
        try:
            for chunk in open_source(name):
                detector.feed(chunk)
        except CutShort as cut:
            problem = cut
    return detector.finish(now=now), problem


def _history(path: str, expectation: Expectation | None) -> History:
    if expectation is None or not expectation.files:
        return History((path,))
    folder = Path(expectation.path).parent
    return joined([str(folder / name) for name in expectation.files])


def _secrets(path: str, job: Job) -> tuple[Finding, ...]:
    from loopdetect.core.fingerprint import fingerprint
    from loopdetect.redact.leaks import leaks
    from loopdetect.redact.rules import TITLES
    from loopdetect.redact.search import Search
    from loopdetect.redact.words import telling_words
    from loopdetect.source.files import open_source

    search = Search(job.keep, telling_words(job.library))
    found: list[Finding] = []
    for leak in leaks(open_source(path), search):
        title = TITLES[leak.sort]
        again = f", {leak.times} times" if leak.times > 1 else ""
        found.append(
            Finding(
                path=path,
                line=leak.line,
                reason=f"secret-{leak.sort.value}",
                message=f"{title}{again}; share a copy: loopdetect redact {os.path.basename(path)}",
                fingerprint=fingerprint(f"secret {leak.sort.value} {path}", ""),
                title=f"the log holds {title}",
                hint="Commit the output of loopdetect redact, or let the text through with --keep.",
            )
        )
    return tuple(found)


# -- workers

_job: list[Job] = []


def check_logs(paths: Iterable[str], job: Job, jobs: int) -> list[CheckedLog]:
    """Check logs in their order, in `jobs` processes; 0 chooses by their number and size."""
    paths = list(paths)
    alone = [path for path in paths if path == STDIN]
    many = [path for path in paths if path != STDIN]
    workers = jobs or _worth(many)
    if workers < 2 or len(many) < 2 or not _can_fork():
        return [check_log(path, job) for path in paths]
    done = {path: check_log(path, job) for path in alone}
    done |= zip(many, _in_workers(many, job, min(workers, len(many))), strict=True)
    return [done[path] for path in paths]


def _in_workers(paths: list[str], job: Job, workers: int) -> list[CheckedLog]:
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor

    with ProcessPoolExecutor(
        workers, multiprocessing.get_context("fork"), _begin_work, (job,)
    ) as pool:
        try:
            return list(pool.map(_work, paths, chunksize=max(1, len(paths) // (workers * 8))))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _begin_work(job: Job) -> None:
    import signal

    # An interrupt goes to the whole group: workers leave at once and without a word.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    _job[:] = [job]


def _work(path: str) -> CheckedLog:
    return check_log(path, _job[0])


# What one file costs at least, and how many bytes are read in a second.
SECONDS_A_FILE: Final = 0.03
BYTES_A_SECOND: Final = 20_000_000
WORTH_SECONDS: Final = 1.0


def _worth(paths: Sequence[str]) -> int:
    """Return how many processes pay off."""
    seconds = SECONDS_A_FILE * len(paths) + sum(map(_size, paths)) / BYTES_A_SECOND
    return min(os.cpu_count() or 1, 16) if seconds > WORTH_SECONDS else 1


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0


def _can_fork() -> bool:
    import sys

    return sys.platform == "linux"
