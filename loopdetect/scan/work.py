"""One log judged: the same short loop round the detector as that of `inspect`."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from types import MappingProxyType
from typing import Any

from loopdetect.core.detector import Detector
from loopdetect.errors import SourceError
from loopdetect.model import Policy, Report, State
from loopdetect.profiles import SHIPPED, Library, library_with
from loopdetect.scan.digest import log_digest
from loopdetect.scan.objects import chunks_of, is_address
from loopdetect.scan.outcome import Outcome, Trouble
from loopdetect.source.files import CutShort, open_source, unpacked
from loopdetect.source.histories import History


@dataclass(frozen=True, slots=True)
class Job:
    """What every log of one call is read with; `lines` asks for the reports as JSON."""

    profile: str | None
    policy: Policy
    now: float | None
    states: frozenset[State] | None = None
    lines: bool = False


@dataclass(frozen=True, slots=True)
class Judge:
    """Reads logs with a library that is loaded once."""

    library: Library
    job: Job

    def __call__(self, history: History) -> Outcome:
        """Judge one log; whatever goes wrong is told in the outcome."""
        try:
            return self._judged(history)
        except MemoryError:
            hint = "look at it on a machine with more, or with fewer --jobs"
            return Outcome(None, (Trouble(f"{history.name}: not enough memory to read it", hint),))
        except Exception as problem:
            return Outcome(None, (_bug(history.name, problem),))

    def _judged(self, history: History) -> Outcome:
        detector = Detector(
            self.library,
            policy=self.job.policy,
            source=history.name,
            profile=self.job.profile,
        )
        troubles: list[Trouble] = []
        read = 0
        for file in history.files:
            detector.next_file(file, restarted=history.restarts)
            try:
                for chunk in open_log(file):
                    detector.feed(chunk)
                read += 1
            except SourceError as problem:
                troubles.append(Trouble(str(problem), problem.hint))
                read += isinstance(problem, CutShort)
        if not read:
            return Outcome(None, tuple(troubles))
        reports = detector.finish(now=self.job.now)
        digest = log_digest(history.name, reports, self.job.states)
        return Outcome(digest, tuple(troubles), self._lines(reports))

    def _lines(self, reports: tuple[Report, ...]) -> str:
        if not self.job.lines:
            return ""
        from loopdetect.render import RenderOptions, renderer

        states = self.job.states
        wanted = [r for r in reports if states is None or r.verdict.state in states]
        return renderer("jsonl")(wanted, RenderOptions())


def open_log(name: str) -> Iterator[bytes]:
    """Yield the text of a file, of standard input or of an object; raises as `open_source` does."""
    return unpacked(name, chunks_of(name)) if is_address(name) else open_source(name)


def _bug(name: str, problem: Exception) -> Trouble:
    if os.environ.get("LOOPDETECT_DEBUG") == "1":
        import traceback

        traceback.print_exc()
    return Trouble(
        f"{name}: a bug in loopdetect, not in your log: {type(problem).__name__}: {problem}",
        "please report it with what LOOPDETECT_DEBUG=1 prints for the same command",
        bug=True,
    )


@dataclass(frozen=True, slots=True)
class Parcel:
    """A job on its way to another interpreter, with the profiles that are not shipped.

    `folder` is where relative paths begin.
    """

    profile: str | None
    policy: dict[str, Any]
    now: float | None
    states: frozenset[State] | None
    lines: bool
    profiles: tuple[tuple[str, bytes], ...]
    folder: str

    def judge(self) -> Judge:
        """Load the library there and return who judges with it; raises ProfileError."""
        policy: dict[str, Any] = {
            name: MappingProxyType(value) if isinstance(value, dict) else value
            for name, value in self.policy.items()
        }
        job = Job(self.profile, Policy(**policy), self.now, self.states, self.lines)
        return Judge(_library(self.profiles), job)


def parcel(judge: Judge) -> Parcel:
    """Return what another interpreter needs to judge alike."""
    job = judge.job
    policy = {each.name: getattr(job.policy, each.name) for each in fields(job.policy)}
    plain = {k: dict(v) if isinstance(v, MappingProxyType) else v for k, v in policy.items()}
    paths = {Path(profile.path) for profile in judge.library.profiles.values()}
    own = sorted(path for path in paths if path.parent != SHIPPED)
    profiles = tuple((path.name, path.read_bytes()) for path in own)
    return Parcel(job.profile, plain, job.now, job.states, job.lines, profiles, os.getcwd())


def _library(profiles: tuple[tuple[str, bytes], ...]) -> Library:
    """Load the shipped profiles and these, and none that whoever works there keeps."""
    with tempfile.TemporaryDirectory(prefix="loopdetect-") as folder:
        files = []
        for number, (name, data) in enumerate(profiles):
            files.append(Path(folder, f"{number:04d}-{name}"))
            files[-1].write_bytes(data)
        return library_with(files)
