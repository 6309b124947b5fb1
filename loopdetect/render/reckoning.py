"""How a verdict was reached, as far as the report itself tells: the counts it rests on."""

from __future__ import annotations

from collections import Counter
from types import MappingProxyType
from typing import Final

from loopdetect.model import Certainty, Outcome, Report, State
from loopdetect.render import extras, figures
from loopdetect.render.duration import spoken

CERTAINTIES: Final = MappingProxyType(
    {
        Certainty.CERTAIN: "a program's own words, an exit status or a supervisor's count say so",
        Certainty.LIKELY: "several soft signs agree",
        Certainty.SUSPECTED: "one soft sign; see the notes for what else it could be",
    }
)
MEANINGS: Final = MappingProxyType(
    {
        State.LOADING: "a run has started, is not ready, and nothing says that it ended",
        State.READY: "the last run serves requests",
        State.STALLED: "nothing has advanced for longer than the phase may take",
        State.STOPPED: "the last run ended because somebody asked",
        State.CRASHED: "the last run ended badly, and nothing has started since",
        State.CRASH_LOOPING: "it keeps being started again and keeps ending badly",
        State.UNKNOWN: "there is not enough in the log to say",
    }
)


def reckoning(report: Report) -> list[tuple[str, str]]:
    """Return what was counted, as pairs of name and value."""
    verdict, runs = report.verdict, report.runs
    found = [("state", f"{verdict.state.value}: {MEANINGS[verdict.state]}")]
    decided = extras.rule(verdict)
    if decided:
        found.append(("rule", decided))
    found.append(("certainty", f"{verdict.certainty.value}: {CERTAINTIES[verdict.certainty]}"))
    found.append(("runs", _outcomes(report) if runs else "none seen"))
    if verdict.restarts is not None:
        found.append(("restarts", str(verdict.restarts)))
    bad = figures.bad_runs(report)
    if bad:
        found.append(("failures", _failures(report)))
    ready = sum(run.ready for run in runs)
    if runs:
        usual = figures.median(run.ready_after_s for run in runs)
        after = f", after {spoken(usual)} (median)" if usual is not None else ""
        found.append(("got ready", f"{ready} of {figures.counted(len(runs), 'run')}{after}"))
    policy = extras.policy(report)
    if policy is not None:
        found.append(
            (
                "thresholds",
                f"{policy.loop_after} bad runs with one cause, {policy.loop_after_mixed} with "
                f"mixed causes, {policy.loop_after_transient} with passing ones; stalled after "
                f"{spoken(policy.stall_after)}",
            )
        )
    return found


def _outcomes(report: Report) -> str:
    counts = Counter(run.outcome for run in report.runs)
    said = ", ".join(f"{counts[end]} {end.value}" for end in Outcome if counts[end])
    return f"{len(report.runs)}: {said}"


def _failures(report: Report) -> str:
    kinds = Counter(
        run.cause.reason if run.cause else "cause not in the log"
        for run in figures.bad_runs(report)
    )
    return ", ".join(f"{count} × {reason}" for reason, count in kinds.most_common(5))
