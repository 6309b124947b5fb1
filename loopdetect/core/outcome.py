"""What a run was: how it ended, and which failure is its cause."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from loopdetect.core.event import Failure
from loopdetect.core.open_run import OpenRun
from loopdetect.core.signals import ASKED_SIGNALS, CRASH_SIGNALS
from loopdetect.core.where import refined
from loopdetect.model import Certainty, Outcome, Phase

# A worker's death is a symptom: what killed it explains more, where that was said.
SYMPTOMS: Final = frozenset({"worker-died", "engine-died", "killed-signal", "peer-died"})
BURST_LINES: Final = 400
SAME_STORY_LINES: Final = 12
AFTERWORDS: Final = 2
# Where it is weak, a probe failed and did not kill, as each does during a load.
PROBED: Final = "killed-by-probe"


def settle(run: OpenRun, *, followed: bool) -> None:
    """Decide how the run ended, or what it is doing, and which failure is its cause."""
    root, best = choose_cause(run)
    run.best = best
    for outcome, certainty, test in _OUTCOMES:
        if test(run, followed, root):
            run.outcome, run.certainty = outcome, certainty
            break
    bad = run.outcome in (Outcome.CRASHED, Outcome.KILLED)
    run.cause = root if bad else None
    if (
        bad
        and root is None
        and run.exit is not None
        and run.exit.signal in CRASH_SIGNALS
        and run.exit_line
    ):
        run.cause = Failure(
            run.exit_line, run.exit_text, CRASH_SIGNALS[run.exit.signal], fatal=True
        )
    if bad and run.cause is None and run.last_said is not None:
        run.cause = run.last_said
    if (run.outcome is Outcome.STOPPED and run.ready and run.goodbye_line is not None) or (
        run.outcome is Outcome.STOPPED and run.stop_phase is not None and run.ready
    ):
        run.phase = Phase.SHUTDOWN
    elif bad and run.cause is not None and run.cause.phase is not None and not run.ready:
        run.phase = run.cause.phase
    elif bad:
        if run.dead_phase is not None:
            run.phase = run.dead_phase
        if not run.ready:
            run.phase = refined(run.phase, run.cause, run.failures)


def _dead(run: OpenRun) -> bool:
    return run.dead_line is not None


def _died_before_stop(run: OpenRun) -> bool:
    return _dead(run) and (run.stop_line is None or (run.dead_line or 0) <= run.stop_line)


def _exit_bad(run: OpenRun) -> bool:
    return (
        run.exit is not None
        and not run.exit_asked
        and (
            (run.exit.code not in (None, 0) and run.exit.signal not in ASKED_SIGNALS)
            or (run.exit.signal is not None and run.exit.signal not in ASKED_SIGNALS)
        )
    )


def _grace_ended(run: OpenRun) -> bool:
    """It was on its way out, in good health, when whoever had asked it to go lost patience."""
    return (
        run.goodbye_line is not None
        and run.ready
        and run.exit is not None
        and run.exit.signal in ("SIGKILL", "SIGTERM")
        and (run.exit_line or 0) > run.goodbye_line
    )


def _unrecovered(run: OpenRun, root: Failure | None) -> bool:
    """A failure after which nothing advanced, in a run that was still coming up.

    Nothing is known of what an unknown program prints when it gets on: there it must be the end.
    """
    if run.ready:
        return False
    told = [f for f in run.failures if not (f.weak and f.reason == PROBED) and not f.of_request]
    last = max((max(f.line, f.until) for f in told), default=-1)
    if last < run.advance_line or last < 0:
        return False
    return not run.anonymous or run.exit is not None or run.last_line - last <= AFTERWORDS


def _took_leave(run: OpenRun) -> bool:
    """Did it say goodbye? An unknown program that goes on talking may have meant a part of it."""
    if run.goodbye_line is None:
        return False
    return not run.anonymous or run.last_line - run.goodbye_line <= SAME_STORY_LINES


def _died_before_goodbye(run: OpenRun, root: Failure | None) -> bool:
    """Did an exception that nothing caught, and nobody's wish, bring about the goodbye?"""
    if root is None or root.weak or root.of_request or run.goodbye_line is None:
        return False
    if not run.spoke_last and not run.anonymous:
        return False
    return run.ready and 0 < run.goodbye_line - max(root.line, root.until) <= SAME_STORY_LINES


def _is_at_it(run: OpenRun) -> bool:
    """Does it say that it loads or waits? Of an unknown program that counts only while it is its last word."""
    if run.notices == 0:
        return False
    return not run.anonymous or run.last_line - (run.notice_line or run.last_line) <= AFTERWORDS


def _said_its_last(run: OpenRun, *, followed: bool) -> bool:
    """Is a complaint all that an unknown program said at the end of its run, before it ever served?"""
    said = run.last_said
    if said is None or not run.anonymous or run.ready:
        return False
    allowed = AFTERWORDS if said.until else 1
    return followed or run.last_line - max(said.line, said.until) <= allowed


_Test = Callable[[OpenRun, bool, Failure | None], bool]
# Read from the top: the first line that fits is the outcome.
_OUTCOMES: Final[tuple[tuple[Outcome, Certainty, _Test], ...]] = (
    (Outcome.KILLED, Certainty.CERTAIN, lambda r, f, c: _dead(r) and r.outside),
    (Outcome.CRASHED, Certainty.CERTAIN, lambda r, f, c: _died_before_stop(r)),
    (Outcome.STOPPED, Certainty.CERTAIN, lambda r, f, c: r.stop_line is not None),
    (Outcome.STOPPED, Certainty.CERTAIN, lambda r, f, c: r.exit is not None and r.exit_asked),
    (Outcome.STOPPED, Certainty.LIKELY, lambda r, f, c: c is None and _grace_ended(r)),
    (
        Outcome.KILLED,
        Certainty.CERTAIN,
        lambda r, f, c: (
            _exit_bad(r) and r.exit is not None and r.exit.signal == "SIGKILL" and c is None
        ),
    ),
    (Outcome.CRASHED, Certainty.CERTAIN, lambda r, f, c: _exit_bad(r)),
    (
        Outcome.CRASHED,
        Certainty.LIKELY,
        lambda r, f, c: _unrecovered(r, c) and (f or r.exit is not None),
    ),
    (Outcome.STOPPED, Certainty.CERTAIN, lambda r, f, c: r.exit is not None),
    (Outcome.CRASHED, Certainty.LIKELY, lambda r, f, c: _died_before_goodbye(r, c)),
    (
        Outcome.STOPPED,
        Certainty.LIKELY,
        lambda r, f, c: _took_leave(r) and not _unrecovered(r, c),
    ),
    (
        Outcome.CRASHED,
        Certainty.LIKELY,
        lambda r, f, c: _unrecovered(r, c) or _said_its_last(r, followed=f),
    ),
    (Outcome.CUT_OFF, Certainty.LIKELY, lambda r, f, c: f and not r.marked and not r.restart_said),
    (Outcome.KILLED, Certainty.LIKELY, lambda r, f, c: f or r.restart_said),
    (Outcome.READY, Certainty.CERTAIN, lambda r, f, c: r.ready),
    (
        Outcome.LOADING,
        Certainty.CERTAIN,
        lambda r, f, c: (
            r.marked or bool(r.spans) or (bool(r.bars) and not r.anonymous) or _is_at_it(r)
        ),
    ),
    (Outcome.UNKNOWN, Certainty.SUSPECTED, lambda r, f, c: True),
)


def choose_cause(run: OpenRun) -> tuple[Failure | None, Failure | None]:
    """Return the root among the collected failures, and the best evidence where there is none.

    The first failure that never recovered is the root. While serving, only what was said shortly
    before the death counts, since requests fail all the time. A line that says what happened is
    preferred to a vague one within the same few lines.
    """
    candidates = [f for f in run.failures if _counts(run, f)]
    strong = [f for f in candidates if not f.weak]
    weak = [f for f in candidates if f.weak]
    # Requests fail all the time: what one of them said counts only if nothing else did.
    if run.ready:
        of_server = [f for f in strong if not f.of_request]
        strong = of_server if of_server or weak else strong
    if not strong:
        return None, (weak[0] if weak else None)
    first = strong[0]
    if first.reason in SYMPTOMS:
        told = [f for f in strong if f.outside and f.fatal]
        first = told[0] if told else first
    if first.vague:
        near = [f for f in strong if not f.vague and f.line - first.line <= SAME_STORY_LINES]
        first = near[0] if near else first
    return first, None


def _counts(run: OpenRun, failure: Failure) -> bool:
    if failure.fatal:
        return True
    if run.dead_line is not None:
        if failure.line > run.dead_line:
            return True
        # Where the words of its death are all that proves that it served, nothing recovered before.
        if run.ready_line is not None and failure.line < run.ready_line < run.dead_line:
            return False
        return run.dead_line - failure.line <= BURST_LINES
    return failure.line >= run.advance_line
