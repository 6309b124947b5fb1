"""Which evidence is believed when log, health check and process contradict each other."""

from __future__ import annotations

import itertools
from functools import cache

import pytest

from loopdetect.core.fusion import RULES, Facts, Fused, Health, Log, Port, Process, Writer, fuse
from loopdetect.model import Certainty, State

ENDED = (Log.CRASHED, Log.LOOPING, Log.STOPPED)

# What is seen -> state, certainty, the evidence that decides.
TABLE = {
    "an orphan answers while the new server loads": (
        Facts(Log.LOADING, Health.UP), State.LOADING, "likely", ("log",),
    ),
    "an orphan answers while the new server loops": (
        Facts(Log.LOOPING, Health.UP), State.CRASH_LOOPING, "certain", ("log",),
    ),
    "an orphan answers after the new server crashed": (
        Facts(Log.CRASHED, Health.UP), State.CRASHED, "likely", ("log",),
    ),
    "the port belongs to another process than the one given": (
        Facts(Log.READY, Health.UP, Port.FOREIGN, Process.ALIVE), State.LOADING, "likely", ("port",),
    ),
    "an orphan answers and nothing has started": (
        Facts(Log.OVER, Health.UP, fresh=False), State.UNKNOWN, "suspected", ("log",),
    ),
    "an orphan answers and the log is not there": (
        Facts(Log.MISSING, Health.UP), State.UNKNOWN, "suspected", ("log",),
    ),
    "startup complete, but the port is refused": (
        Facts(Log.READY, Health.DOWN), State.LOADING, "likely", ("health",),
    ),
    "startup complete, and the health check has not answered yet": (
        Facts(Log.READY, Health.UNKNOWN), State.LOADING, "likely", ("health",),
    ),
    "a dead process under a loading log": (
        Facts(Log.LOADING, process=Process.GONE), State.CRASHED, "certain", ("process",),
    ),
    "a dead process under a ready log that another one answers for": (
        Facts(Log.READY, Health.UP, process=Process.GONE), State.CRASHED, "likely", ("process",),
    ),
    "a dead process under a ready log": (
        Facts(Log.READY, process=Process.GONE), State.CRASHED, "certain", ("process",),
    ),
    "a dead process that was asked to stop": (
        Facts(Log.STOPPED, process=Process.GONE), State.STOPPED, "certain", ("log", "process"),
    ),
    "a crash in the log of a live process: its engine is dead": (
        Facts(Log.CRASHED, process=Process.ALIVE), State.CRASHED, "certain", ("log",),
    ),
    "a crash that the supervisor answers with a restart": (
        Facts(Log.CRASHED, process=Process.RESTARTING), State.LOADING, "likely", ("log", "process"),
    ),
    "a supervisor that gave up beats a loading log": (
        Facts(Log.LOADING, Health.DOWN, process=Process.GAVE_UP), State.CRASH_LOOPING, "certain",
        ("process",),
    ),
    "log and health agree": (
        Facts(Log.READY, Health.UP), State.READY, "certain", ("log", "health"),
    ),
    "the log never says ready, but health came up during this start": (
        Facts(Log.LOADING, Health.UP, rose=True), State.READY, "likely", ("health",),
    ),
    "the process itself answers, whatever the log lacks": (
        Facts(Log.LOADING, Health.UP, Port.OURS, Process.ALIVE), State.READY, "certain",
        ("health", "port"),
    ),
    "an unknown server's log, and a health check that succeeds": (
        Facts(Log.SILENT, Health.UP, lasting=True), State.READY, "suspected", ("health",),
    ),
    "the same at the first look may be an orphan": (
        Facts(Log.SILENT, Health.UP), State.UNKNOWN, "suspected", ("log",),
    ),
    "up from the first look, and an old start that no longer moves": (
        Facts(Log.LOADING, Health.UP, fresh=False, quiet=True), State.READY, "suspected", ("health",),
    ),
    "the same after bad ends is an orphan, not readiness": (
        Facts(Log.LOADING, Health.UP, fresh=False, quiet=True, before=True), State.LOADING, "likely",
        ("log",),
    ),
    "a ready line from before the wait, and nothing since": (
        Facts(Log.READY, fresh=False, grown=False), State.READY, "suspected", ("log",),
    ),
    "the same while its writer has the log open": (
        Facts(Log.READY, fresh=False, grown=False, writer=Writer.SAME), State.READY, "likely",
        ("log", "process"),
    ),
    "a ready line of an earlier life, and a process that was started since": (
        Facts(Log.READY, Health.UP, process=Process.ALIVE, fresh=False, grown=False,
              writer=Writer.NEWER),
        State.LOADING, "likely", ("process",),
    ),
    "a stalled log stays stalled while health is down": (
        Facts(Log.STALLED, Health.DOWN), State.STALLED, "likely", ("log",),
    ),
    "a failure that nothing has followed yet": (
        Facts(Log.FAILING), State.LOADING, "suspected", ("log",),
    ),
    "the same when the process is gone": (
        Facts(Log.FAILING, process=Process.GONE), State.CRASHED, "certain", ("log", "process"),
    ),
    "a live process without a word": (
        Facts(Log.SILENT, process=Process.ALIVE), State.LOADING, "suspected", ("process",),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("facts", "state", "certainty", "by"), TABLE.values(), ids=TABLE)
def test_the_stronger_evidence_decides(
    facts: Facts, state: State, certainty: str, by: tuple[str, ...]
) -> None:
    fused = fuse(facts)
    assert (fused.state, fused.certainty, fused.decided_by) == (state, Certainty(certainty), by)
    assert fused.why


@cache
def every_moment() -> list[tuple[Facts, Fused]]:
    flags = [(False, True)] * 6
    moments = (
        Facts(log, health, port, process, *rest)
        for log, health, port, process, *rest in itertools.product(
            Log, Health, Port, Process, *flags, Writer
        )
    )
    return [(facts, fuse(facts)) for facts in moments]


def test_every_moment_has_an_answer_and_every_rule_a_moment() -> None:
    used = {fused.rule for _, fused in every_moment()}
    assert used == {rule.id for rule in RULES}


def test_rule_names_are_unique() -> None:
    assert len({rule.id for rule in RULES}) == len(RULES)


def test_no_moment_is_ready_against_hard_evidence() -> None:
    for facts, fused in every_moment():
        if fused.state is not State.READY:
            continue
        assert facts.log not in ENDED
        assert facts.process not in (Process.GONE, Process.GAVE_UP, Process.STOPPED)
        assert facts.port is not Port.FOREIGN or facts.health is not Health.UP
        assert facts.health in (Health.UP, Health.UNASKED)
        assert facts.log is Log.READY or facts.health is Health.UP


def test_a_crash_is_said_only_of_a_log_or_a_process_that_shows_it() -> None:
    for facts, fused in every_moment():
        if fused.state in (State.CRASHED, State.CRASH_LOOPING):
            assert facts.log in (Log.CRASHED, Log.LOOPING) or facts.process in (
                Process.GONE,
                Process.GAVE_UP,
            )
