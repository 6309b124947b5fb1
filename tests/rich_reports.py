"""Reports that hold every fact a page can show, also those that most logs do not tell."""

from __future__ import annotations

from dataclasses import dataclass, fields

from report_samples import CRASH_LOOP, SHARDS

from loopdetect.model import Policy, Progress, Report, Run, Verdict
from loopdetect.render.extras import Unmatched


@dataclass(frozen=True, slots=True)
class RichProgress(Progress):
    points: tuple[tuple[float, float], ...] = ()


@dataclass(frozen=True, slots=True)
class RichRun(Run):
    arguments: tuple[tuple[str, str], ...] = ()
    free_memory_gib: float | None = None


@dataclass(frozen=True, slots=True)
class RichVerdict(Verdict):
    rule: str | None = None


@dataclass(frozen=True, slots=True)
class RichReport(Report):
    unmatched: tuple[Unmatched, ...] = ()
    policy: Policy | None = None


def values(item: object) -> dict[str, object]:
    return {field.name: getattr(item, field.name) for field in fields(item)}  # type: ignore[arg-type]


def with_points(seconds: float) -> RichProgress:
    points = tuple((seconds * step / 8, 64.0 * (step / 8) ** 2) for step in range(9))
    return RichProgress(**{**values(SHARDS), "done": 64.0, "elapsed_s": seconds, "points": points})


RICH = RichReport(
    **{
        **values(CRASH_LOOP),
        "verdict": RichVerdict(
            **{**values(CRASH_LOOP.verdict), "rule": "4 bad runs in a row with one cause."}
        ),
        "runs": tuple(
            RichRun(
                **{
                    **values(run),
                    "progress": (with_points(10.0 + number),),
                    "arguments": (("model", "/m/<b>one</b>"), ("port", "8000")),
                    "free_memory_gib": 80.0 - 7 * number,
                }
            )
            for number, run in enumerate(CRASH_LOOP.runs)
        ),
        "unmatched": (Unmatched(17, "frobnicator failed: <i>no gas</i>", 3),),
        "policy": Policy(),
    }
)
