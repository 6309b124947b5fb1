"""The last words of a wait: what it came to, what decided, the cause, and the time it took."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final

from loopdetect.core.fusion import Log
from loopdetect.live.judge import Decision, Ending
from loopdetect.live.log_watch import LogWatch
from loopdetect.live.mark import BAD
from loopdetect.live.status import current_bar
from loopdetect.model import Cause, Exit, Phase, Report, Run, State
from loopdetect.render import figures
from loopdetect.render.duration import spoken
from loopdetect.render.escape import visible
from loopdetect.render.paint import BOLD, DIM, RED, STATE_COLORS, Paint
from loopdetect.render.width import cut, wrap

LONGEST_CAUSE: Final = 2000
PHASES_SHOWN: Final = 6
WORTH_TELLING_S: Final = 1.0
_ENDED: Final = (Ending.CRASHED, Ending.STOPPED)
_WITH_CAUSE: Final = (Ending.CRASHED, Ending.CRASH_LOOPING, Ending.TIME_LIMIT, Ending.UNDECIDED)


def final_reports(decision: Decision, log: LogWatch) -> tuple[Report, ...]:
    """Return the reports, the one that decided with what all evidence together says."""
    view, fused = decision.seen.log, decision.fused
    decided = decision.ending not in (Ending.TIME_LIMIT, Ending.UNDECIDED)
    out = []
    for report in view.reports:
        notes = report.notes
        if view.anew:
            notes += (
                f"The log began anew {figures.counted(view.anew, 'time')} while it was followed; "
                "line numbers go on from one to the next.",
            )
        verdict = report.verdict
        if report is view.report and decided:
            summary = f"{verdict.summary.rstrip()} [{fused.why}]"
            same = verdict.state is fused.state
            verdict = replace(
                verdict,
                state=fused.state,
                certainty=fused.certainty,
                summary=summary if same else headline(decision, log),
                cause=cause_of(decision),
            )
        runs = _with_exit(report, decision) if report is view.report else report.runs
        out.append(replace(report, verdict=verdict, runs=runs, notes=notes))
    return tuple(out)


def _with_exit(report: Report, decision: Decision) -> tuple[Run, ...]:
    """Return the runs, the last one with what is known of its process's end."""
    process, runs = decision.seen.process, report.runs
    left = process.exit if process is not None else None
    if left is None or not runs or decision.seen.log.log is Log.OVER or runs[-1].exit != Exit():
        return runs
    return runs[:-1] + (replace(runs[-1], exit=left),)


def wait_object(decision: Decision, log: LogWatch, code: int) -> dict[str, object]:
    """Return what the JSON document says of the wait itself."""
    seen = decision.seen
    return {
        "ending": decision.ending.value,
        "exit_code": code,
        "state": decision.fused.state.value,
        "certainty": decision.fused.certainty.value,
        "summary": headline(decision, log),
        "decided_by": list(decision.fused.decided_by),
        "why": decision.fused.why,
        "waited_s": round(decision.waited_s, 3),
        "served_s": None if decision.served_s is None else round(decision.served_s, 3),
        "bad_ends": seen.log.bad_ends,
        "log_began_anew": seen.log.anew,
        "health": None if seen.health is None else seen.health.text,
        "health_status": None if seen.health is None else seen.health.status,
        "process": None if seen.process is None else seen.process.text,
        "unreachable": seen.unreachable,
    }


def closing_lines(
    decision: Decision, log: LogWatch, source: str, paint: Paint, width: int | None
) -> Iterator[str]:
    """Yield the last lines; log text in them is safe to print."""
    fused, seen = decision.fused, decision.seen
    report = seen.log.report
    name = visible("standard input" if source == "-" else source)
    server = f"{figures.server_name(report)}: " if report and report.server.name else ""
    words = headline(decision, log)
    yield f"{paint(name, BOLD)}: {server}{paint(visible(words), STATE_COLORS[_shown(decision)])}"
    if fused.decided_by:
        by = " and ".join(fused.decided_by)
        yield from wrap(f"decided by {by}: {fused.why} ({fused.certainty.value})", width, "  ")
    beside = [part.text for part in (seen.health, seen.process) if part is not None]
    if seen.health is not None and seen.health.owner:
        beside.append(f"{seen.health.owner} listens on the port")
    if beside:
        yield from wrap(visible("; ".join(beside)), width, "  ")
    cause = cause_of(decision)
    if cause is not None and decision.ending in _WITH_CAUSE:
        facts = f"{log.where(cause.line)}, {visible(cause.reason)}, {cause.certainty.value}"
        earlier = decision.ending in (Ending.TIME_LIMIT, Ending.UNDECIDED)
        word = "the last failure" if earlier else "cause"
        for place, text in enumerate(cause.text.split("\n")):
            lead = f"  {word} ({facts}): " if place == 0 else "    "
            yield lead + paint(cut(visible(text), LONGEST_CAUSE), RED)
        if cause.hint:
            yield from (paint(x, DIM) for x in wrap(f"hint: {visible(cause.hint)}", width, "  "))


def _shown(decision: Decision) -> State:
    if decision.ending in (Ending.TIME_LIMIT, Ending.UNDECIDED):
        return State.UNKNOWN
    return decision.fused.state


def headline(decision: Decision, log: LogWatch) -> str:
    """Return what the wait came to and how long it took, on one line."""
    return _HEADLINES[decision.ending](decision, log)


def _reached(decision: Decision, log: LogWatch) -> str:
    view, report, run = decision.seen.log, decision.seen.log.report, decision.seen.log.run
    state, hit = decision.fused.state, _line_hit(decision, log)
    if state is not State.READY:
        return f"{state.value} after {spoken(decision.waited_s)} of waiting{hit}"
    if report is None or run is None:
        return f"ready after {spoken(decision.waited_s)} of waiting{hit}"
    if view.log is Log.READY and run.ready and not view.fresh and not view.grown:
        since = log.where(report.verdict.since_line or run.first_line)
        return f"ready since {since}, before the wait began"
    if run.ready_after_s is not None and run.ready:
        took = _whole(run.ready_after_s)
    elif view.fresh:
        took = spoken(view.coming_up_s)
    else:
        took = f"{spoken(decision.waited_s)} of waiting"
    return f"ready after {took}{_attempt(decision)}{_phases(run, log, report)}{hit}"


def _whole(seconds: float) -> str:
    """Say a time that was taken from a log whose stamps are whole seconds."""
    return "less than 1 s" if seconds < 1 else spoken(seconds)


def _phases(run: Run, log: LogWatch, report: Report) -> str:
    """Return what took how long, by the log's clock or as it was seen here."""
    seen = log.observed(report)
    times = []
    for span in run.phases:
        if span.phase in (Phase.SERVING, Phase.SHUTDOWN):
            continue
        took = span.duration_s if span.duration_s is not None else seen.get(span.phase)
        if took is not None and took >= WORTH_TELLING_S:
            times.append((took, span.phase))
    longest = sorted(times, reverse=True)[:PHASES_SHOWN]
    told = [f"{phase.value} {spoken(took)}" for took, phase in times if (took, phase) in longest]
    return f": {', '.join(told)}" if told else ""


def _attempt(decision: Decision) -> str:
    report, bad = decision.seen.log.report, decision.seen.log.bad_ends
    if report is None or not bad:
        return ""
    return f" (attempt {len(report.runs)}; {figures.counted(bad, 'start')} before it failed)"


def _line_hit(decision: Decision, log: LogWatch) -> str:
    hit = decision.seen.log.hit
    return f", {log.where(hit.line)}: {cut(hit.text, 300)}" if hit else ""


def _died(decision: Decision, log: LogWatch) -> str:
    word, run = decision.fused.state.value, decision.seen.log.run
    if decision.seen.log.log is Log.OVER:
        run = None
    told_by_log = run is not None and run.outcome in BAD
    parts = [word]
    if run is not None and run.phase is not Phase.UNKNOWN:
        parts.append("while serving" if run.phase is Phase.SERVING else f"in {run.phase.spoken}")
    if decision.served_s is not None:
        parts.append(f"{spoken(decision.served_s)} after it was ready,")
    elif run is not None and told_by_log and run.duration_s is not None:
        parts.append(f"{_whole(run.duration_s)} after its start,")
    parts.append(f"{spoken(decision.waited_s)} into the wait")
    return " ".join(parts) + _exit(decision) + _line_hit(decision, log)


def _exit(decision: Decision) -> str:
    process, run = decision.seen.process, decision.seen.log.run
    left = process.exit if process is not None else None
    if left is None and run is not None and decision.seen.log.log is not Log.OVER:
        left = run.exit
    return f" ({left.signal or f'exit {left.code}'})" if left not in (None, Exit()) else ""


def _looping(decision: Decision, log: LogWatch) -> str:
    report = decision.seen.log.report
    told = figures.loop_sentence(report) if report is not None else None
    said = told.rstrip(".") if told else decision.fused.why
    return f"crash-looping: {said[:1].lower()}{said[1:]}; {spoken(decision.waited_s)} into the wait"


def _stalled(decision: Decision, log: LogWatch) -> str:
    view = decision.seen.log
    if view.log is Log.READY:
        what = "ready by its log, but not reachable"
    elif view.run is not None:
        what = f"in {view.run.phase.spoken}{_bar(view.run)}"
    else:
        what = "the log tells nothing more"
    return (
        f"stalled: {what}; nothing has advanced for {spoken(view.quiet_s)} "
        f"(allowed here: {spoken(view.allowed_s)})"
    )


def _bar(run: Run) -> str:
    found = current_bar(run)
    return f" at {figures.bar(found)}" if found else ""


_NOTHING: Final = {
    Log.MISSING: "the log has not appeared",
    Log.SILENT: "nothing in the log tells of a start",
    Log.OVER: "nothing has started since the wait began",
}


def _limit(decision: Decision, log: LogWatch) -> str:
    view = decision.seen.log
    if decision.settling:
        rest = "it is ready, but not yet for as long as --settle asks"
    elif view.log is Log.MISSING and view.exists:
        rest = "the log is empty"
    elif view.log in _NOTHING:
        rest = _NOTHING[view.log]
    elif view.run is not None and view.log is Log.READY:
        rest = decision.fused.why
    elif view.run is not None:
        rest = f"still {view.log.value} in {view.run.phase.spoken}{_bar(view.run)}"
    else:
        rest = f"still {view.log.value}"
    if decision.seen.unreachable is not None:
        rest = f"{decision.seen.unreachable}; when it was last seen: {rest}"
    return f"time limit of {spoken(decision.waited_s)}: {rest}{_attempt(decision)}"


def _undecided(decision: Decision, log: LogWatch) -> str:
    view = decision.seen.log
    if view.run is not None and view.log not in _NOTHING:
        rest = f"it was {view.log.value} in {view.run.phase.spoken}{_bar(view.run)}"
    else:
        rest = "nothing in it tells what the server was doing"
    return f"undecided: the input ended after {spoken(decision.waited_s)}; {rest}"


_HEADLINES: Final[dict[Ending, Callable[[Decision, LogWatch], str]]] = {
    Ending.REACHED: _reached,
    Ending.CRASHED: _died,
    Ending.STOPPED: _died,
    Ending.CRASH_LOOPING: _looping,
    Ending.STALLED: _stalled,
    Ending.TIME_LIMIT: _limit,
    Ending.UNDECIDED: _undecided,
}


def cause_of(decision: Decision) -> Cause | None:
    """Return the cause of what decided: that of the verdict, else of the last run that died."""
    report, view = decision.seen.log.report, decision.seen.log
    if report is None:
        return None
    latest = (run.cause for run in reversed(report.runs) if run.cause is not None)
    cause = report.verdict.cause or next(latest, None)
    if cause is None or decision.ending not in _ENDED or view.log is not Log.OVER:
        return cause
    # It died before it told of its start: what stood in the log before is another one's cause.
    return cause if cause.line > view.held else None
