"""A stage for `wait` without real time: a log, probes and a clock that a test writes the plot for."""

from __future__ import annotations

from dataclasses import dataclass, field

from loopdetect.core.detector import Detector
from loopdetect.core.fusion import Health, Process, Writer
from loopdetect.live.judge import Decision, Terms
from loopdetect.live.log_watch import LogWatch
from loopdetect.live.loop import Wait
from loopdetect.live.patterns import LinePatterns
from loopdetect.live.status import Status
from loopdetect.live.tail import Look, Turn
from loopdetect.model import Policy
from loopdetect.probe.seen import HealthSeen, ProcessSeen
from loopdetect.profiles import load_library

LIBRARY = load_library()
WALL = 1_900_000_000.0

UP = HealthSeen(Health.UP, "HTTP 200", 200)
DOWN = HealthSeen(Health.DOWN, "connection refused")
BUSY = HealthSeen(Health.DOWN, "HTTP 503", 503)
ALIVE = ProcessSeen(Process.ALIVE, "process 7 lives", 7)
GONE = ProcessSeen(Process.GONE, "process 7 is gone", 7)


class StageClock:
    """Time passes only when somebody sleeps."""

    def __init__(self) -> None:
        self.time = 1000.0

    def now(self) -> float:
        return self.time

    def called_at(self) -> float:
        return WALL

    def sleep(self, seconds: float) -> None:
        self.time += seconds


@dataclass
class StageTail:
    """A log that grows when its time has come; entries are (seconds after the call, what)."""

    clock: StageClock
    plot: list[tuple[float, bytes | Turn]]
    modified: float = WALL - 86_400
    name: str = "server.log"
    exists: bool = True
    ends: bool = False

    def look(self) -> Look:
        if not self.plot or self.clock.now() - 1000.0 < self.plot[0][0]:
            ended = self.ends and not self.plot
            return Look(exists=self.exists, modified=self.modified, ended=ended)
        _, what = self.plot.pop(0)
        if isinstance(what, Turn):
            return Look(turn=what, more=True, modified=self.modified)
        return Look(what, more=True, modified=self.modified)

    def close(self) -> None:
        return


@dataclass
class Audience:
    """Remembers what was shown."""

    shown: list[Status] = field(default_factory=list)

    def show(self, status: Status) -> None:
        self.shown.append(status)

    def close(self) -> None:
        return


@dataclass
class Stage:
    """One wait on the stage; health and process are [(seconds after the call, what is seen)]."""

    plot: list[tuple[float, bytes | Turn]]
    health: list[tuple[float, HealthSeen]] | None = None
    process: list[tuple[float, ProcessSeen]] | None = None
    terms: Terms = field(default_factory=Terms)
    policy: Policy = field(default_factory=Policy)
    patterns: LinePatterns = field(default_factory=lambda: LinePatterns(None, None))
    history: bool = True
    ends: bool = False
    exists: bool = True
    modified: float = WALL - 86_400
    writer: Writer = Writer.UNKNOWN

    def __post_init__(self) -> None:
        self.clock = StageClock()
        self.audience = Audience()
        self.log = LogWatch(
            Detector(LIBRARY, self.policy, source="server.log"),
            self.policy,
            self.patterns,
            self.clock.now(),
        )

    def run(self) -> Decision:
        tail = StageTail(
            self.clock, list(self.plot), self.modified, ends=self.ends, exists=self.exists
        )
        health, process = self.health, self.process
        return Wait(
            tail,
            self.log,
            self.terms,
            self.audience,
            self.clock,
            self.clock.now(),
            None if health is None else lambda: self._latest(health),
            None if process is None else lambda: self._latest(process),
            self.history,
            lambda name, modified: self.writer,
        ).run()

    def _latest(self, plot: list[tuple[float, object]]) -> tuple[int, object]:  # type: ignore[type-arg]
        passed = [seen for at, seen in plot if at <= self.clock.now() - 1000.0]
        return len(passed), passed[-1] if passed else None


def lines(*texts: str) -> bytes:
    return "".join(f"{text}\n" for text in texts).encode()


def _log(number: int, text: str, level: str = "INFO", process: str = "EngineCore") -> str:
    return f"({process} pid={100 + number}) {level} 01-02 03:{number:02d}:05 [core.py:58] {text}"


def start(number: int = 1) -> bytes:
    """The first lines of a vLLM server."""
    return lines(
        _log(number, "vLLM API server version 0.12.0", process="APIServer"),
        _log(number, "Initializing a V1 LLM engine (v0.12.0) with config: model='m'"),
        _log(number, "Starting to load model /models/m..."),
    )


def shards(done: int) -> bytes:
    pct = 100 * done // 64
    return lines(
        f"Loading safetensors checkpoint shards: {pct}% Completed | {done}/64 "
        f"[00:{done // 2:02d}<00:{(64 - done) // 2:02d}, 2.00it/s]"
    )


def ready(number: int = 1) -> bytes:
    return lines(
        _log(number, "init engine (profile, create kv cache, warmup model) took 1.00 s"),
        f"(APIServer pid={100 + number}) INFO:     Started server process [{100 + number}]",
        f"(APIServer pid={100 + number}) INFO:     Waiting for application startup.",
        f"(APIServer pid={100 + number}) INFO:     Application startup complete.",
    )


OUT_OF_MEMORY = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."


def death(number: int = 1, text: str = OUT_OF_MEMORY) -> bytes:
    return lines(
        _log(number, "Traceback (most recent call last):", "ERROR"),
        _log(number, '  File "/opt/vllm/v1/worker.py", line 7, in run', "ERROR"),
        _log(number, "    self.run()", "ERROR"),
        _log(number, text, "ERROR"),
        _log(number, "RuntimeError: Engine core initialization failed.", "ERROR", "APIServer"),
    )


def stop(number: int = 1) -> bytes:
    return lines(
        f"(APIServer pid={100 + number}) INFO:     Shutting down",
        f"(APIServer pid={100 + number}) INFO:     Waiting for application shutdown.",
        f"(APIServer pid={100 + number}) INFO:     Application shutdown complete.",
        f"(APIServer pid={100 + number}) INFO:     Finished server process [{100 + number}]",
    )


def notice() -> bytes:
    """What vLLM says again and again while it waits."""
    return lines(
        _log(
            1,
            "No available shared memory broadcast block found in 60 seconds. This typically happens "
            "when some processes are hanging or doing some time-consuming work "
            "(e.g. compilation, weight/kv cache quantization).",
        )
    )
