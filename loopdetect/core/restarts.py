"""What is a restart: each sign, as a question about the open run and an event."""

from __future__ import annotations

import re
from typing import Final

from loopdetect.core.event import Event
from loopdetect.core.fingerprint import mask
from loopdetect.core.open_run import OpenRun
from loopdetect.core.signals import ASKED_SIGNALS
from loopdetect.model import PHASE_RANK, Kind, Outcome, Phase
from loopdetect.profiles.schema import Speaker

CONCURRENT_S: Final = 3.0
# A web server has no nodes, and is started again within a second or two.
TWINS_S: Final = 0.5
TWIN_WORDS_S: Final = 0.2
AGAIN_S: Final = 0.9
_USAGE: Final = re.compile(
    r"\berror: (?:argument -|unrecognized arguments: |the following arguments are required: |ambiguous option: )"
)
_BRACKETED: Final = re.compile(r"\[(\d{1,7})\]$")
SETTLED_S: Final = 5.0
SETTLED_LINES: Final = 20
NEAR_LINES: Final = 6
SWAPPED_LINES: Final = 3
TOGETHER_S: Final = 120.0
WENT_BACK_S: Final = 10.0
LAST_TIMES: Final = 4  # one line may be stamped by another clock
EARLY: Final = frozenset(
    {Phase.CONFIG, Phase.DOWNLOAD, Phase.DEVICE_INIT, Phase.DIST_INIT, Phase.LOAD_WEIGHTS}
)

# While a run serves, these tell only of a restart; see `may_restart`.
STARTING: Final = frozenset({Kind.READY, Kind.PHASE, Kind.PROGRESS})


def may_restart(kind: Kind, phase: Phase | None) -> bool:
    """Can something of STARTING tell of a restart while a run serves? Files are fetched at any time."""
    if kind is Kind.READY or phase not in EARLY:
        return False
    return kind is not Kind.PROGRESS or phase is not Phase.DOWNLOAD


def is_over(run: OpenRun) -> bool:
    """Did something say that the process is gone?"""
    goodbye = run.goodbye_line is not None and run.ready
    return run.exit is not None or run.restart_said or run.stop_line is not None or goodbye


def node_of(event: Event) -> str | None:
    """The node of its job that a start tells of, in its own words or those of a launcher."""
    return event.fields.get("node", event.node)


def is_beside(run: OpenRun, event: Event) -> bool:
    """Did the clock go back to when this run began? Then another's log follows that of the first."""
    rule, time = event.rule, event.time
    if time is None or run.started_at is None or rule is None:
        return False
    if event.uptime is not None:  # a clock that counts from each start
        return False
    if run.exit is not None or run.restart_said:  # maybe told by a clock of another zone
        return False
    if run.beside_at is not None and 0 <= time - run.beside_at <= TOGETHER_S:
        return rule.order > run.beside_order
    if abs(time - run.started_at) > TOGETHER_S or (run.dead_at is not None and time > run.dead_at):
        return False
    lately = run.back_at is not None and 0 <= time - run.back_at <= WENT_BACK_S
    return lately or went_back(run, time) or (_is_another(run, event) and _is_before(run, time))


def _is_another(run: OpenRun, event: Event) -> bool:
    """Does a start tell of another node than those that the run has?"""
    node = node_of(event)
    rule = event.rule
    return (
        node is not None
        and rule is not None
        and bool(run.nodes)
        and (node, rule.id) not in run.nodes
    )


def _is_before(run: OpenRun, time: float) -> bool:
    return bool(run.last_times) and time < run.last_times[-1]


def went_back(run: OpenRun, time: float) -> bool:
    """Is this long before the last words of a run, as lines that overtake each other are not?"""
    return len(run.last_times) == LAST_TIMES and min(run.last_times) - time > WENT_BACK_S


def continues(run: OpenRun, event: Event) -> bool:
    """Is this marker the next one of the start sequence that the run is in?"""
    rule = event.rule
    assert rule is not None
    if is_over(run) or run.dead_line is not None:
        return False
    if _is_another(run, event):
        return True  # another node of the same job
    early = PHASE_RANK[run.phase] <= PHASE_RANK[Phase.CONFIG] and not run.failures
    gap = None
    if event.time is not None and run.started_at is not None:
        gap = event.time - run.started_at
    known = rule.id in run.seen
    if rule.order > run.max_order and not known:
        return not run.ready
    if rule.order == 0 < run.max_order and early and not known:
        # A supervisor's word a moment after the program's first.
        return gap is None or abs(gap) <= CONCURRENT_S
    if 0 < rule.order < run.max_order and early and not known:
        # A collector that keeps no order within a moment, or threads that write at once.
        near = event.line - run.first_line <= SWAPPED_LINES
        return near if gap is None else near and abs(gap) <= CONCURRENT_S
    # The same marker again within moments, nothing in between: nodes that share one log.
    moment = TWINS_S if rule.speaker is Speaker.FRAMEWORK else CONCURRENT_S
    return early and known and rule.order > 0 and gap is not None and abs(gap) <= moment


def boots_again(run: OpenRun, event: Event) -> bool:
    """Does a master boot another worker, though none has served and none was asked to go?"""
    if event.rule is None or not event.rule.again_after_failure or run.ready:
        return False
    if run.failures or run.dead_line is not None:
        return True
    # The workers of one start are booted together; a later one takes the place of one that died.
    return (
        event.time is not None
        and run.booted_at is not None
        and event.time - run.booted_at > SETTLED_S
    )


def is_orphan(run: OpenRun | None, before: OpenRun | None, event: Event) -> bool:
    """Is this a late line of a process that belonged to the run before?"""
    if run is None or before is None:
        return False
    told = event.fields.get("pid")
    if told is not None and told in _pids(before):  # a shell names the process that left
        return told not in _pids(run)
    if event.pid is None:
        return False
    who = (event.process, event.pid)
    if who not in before.processes or who in run.processes:
        return False
    if event.process is None:  # pids alone: in a new container they count from 1 again
        return run.led and before.led and run.main not in before.processes
    return any(name == event.process for name, _ in run.processes)


def _pids(run: OpenRun) -> set[str]:
    named = _BRACKETED.search(run.start_text)
    return {pid for _, pid in run.processes} | ({named[1]} if named else set())


def takes_leave(before: OpenRun, event: Event) -> bool:
    """Is the main process of the run before asked to go, after another took its place?"""
    return (
        event.kind is Kind.STOP and before.main == (event.process, event.pid) and _cut_short(before)
    )


def is_other_server(run: OpenRun, before: OpenRun | None, event: Event) -> bool:
    """Is it the server of the run before that is ready now? Then two servers share the log.

    A server that said that its start failed gets ready no more; one that was starting too, and of
    whose end nothing was said, does. Only where lines name no process.
    """
    starts_failed = run.dead_line is not None and not run.ready and not is_over(run)
    return starts_failed and _two_at_once(run, before, event)


def are_both_ready(run: OpenRun, before: OpenRun | None, event: Event) -> bool:
    """Is what is ready now the server of the run before, beside that of the open run?"""
    again = event.kind is Kind.READY and mask(event.text) == mask(run.ready_text)
    return again and run.ready and not run.ended and _two_at_once(run, before, event)


def _two_at_once(run: OpenRun, before: OpenRun | None, event: Event) -> bool:
    if before is None or event.rule is None or event.rule.speaker is not Speaker.FRAMEWORK:
        return False
    return (
        event.pid is None
        and run.marked
        and before.marked
        and not before.ready
        and _cut_short(before)
        and mask(before.start_text) == mask(run.start_text)
    )


def _cut_short(run: OpenRun) -> bool:
    """Is the start that followed all that speaks of the run's end?"""
    return run.outcome is Outcome.KILLED and run.dead_line is None and not run.ended


def is_retold(runs: list[OpenRun], run: OpenRun, event: Event) -> bool:
    """Does a program's own log begin after its supervisor told of several starts?

    `pm2 logs` prints the end of the daemon's log before that of each program.
    """
    if not runs or of_supervisor(event):
        return False
    return all(r.retold and only_supervised(r) and not r.failures for r in (*runs, run))


def lives_on(before: OpenRun, event: Event) -> bool:
    """Does the process that the run before began with still get on? Then two servers share the log."""
    if event.kind not in (Kind.PHASE, Kind.PROGRESS, Kind.READY):
        return False  # who answers requests is not looked for while a later run is dead
    ended = before.dead_line is not None or is_over(before)
    return not ended and before.main is not None and before.main == (event.process, event.pid)


def is_replaced(run: OpenRun, event: Event, main_process: re.Pattern[str] | None) -> bool:
    """Does a process of which a start has one come under another pid?"""
    return (
        event.pid is not None
        and event.process is not None
        and main_process is not None
        and main_process.fullmatch(event.process) is not None
        and any(name == event.process for name, _ in run.processes)
        and (event.process, event.pid) not in run.processes
    )


def came_anew(
    run: OpenRun, event: Event, _phase: Phase | None, main_process: re.Pattern[str] | None
) -> bool:
    """Does a log of ends alone, as a search for words cuts it, go on with those of another start?"""
    if run.max_order >= 0 or run.dead_at is None or event.time is None:
        return False
    later = event.time - run.dead_at > WENT_BACK_S
    return later and is_replaced(run, event, main_process)


def between_looks(
    run: OpenRun, event: Event, phase: Phase | None, main_process: re.Pattern[str] | None
) -> bool:
    """Did a start fall between two looks of a polling loop? It shows by what it left."""
    new_pid = is_replaced(run, event, main_process)
    fell = (
        phase is not None
        and PHASE_RANK[Phase.UNKNOWN] < PHASE_RANK[phase] <= PHASE_RANK[Phase.DIST_INIT]
        and PHASE_RANK[run.phase] >= PHASE_RANK[Phase.LOAD_WEIGHTS]
        # Some servers bind first and look for devices afterwards.
        and any(_later(seen) and seen is not Phase.BIND for seen in run.spans)
        # The same process does not start twice.
        and (event.pid is None or (event.process, event.pid) not in run.processes)
    )
    again = (
        run.dead_line is not None
        and event.rule is not None
        and event.rule.id in run.last_words
        and run.last_words[event.rule.id] != event.text
        and (event.own is None or run.last_own is None or event.own - run.last_own > CONCURRENT_S)
    )
    clock_fell = (
        event.uptime is not None and run.last_uptime is not None and event.uptime < run.last_uptime
    )
    return new_pid or fell or again or clock_fell


def came_round(run: OpenRun, event: Event) -> bool:
    """Does a look show a marker of the beginning, though this start was past its caches?

    The processes of one start print it within moments, and before any of them holds a cache.
    """
    return (
        event.rule is not None
        and PHASE_RANK[event.rule.phase or Phase.CONFIG] <= PHASE_RANK[Phase.DIST_INIT]
        and run.dead_line is None
        and not run.ready
        and PHASE_RANK[run.phase] >= PHASE_RANK[Phase.KV_CACHE]
    )


def _later(phase: Phase) -> bool:
    return PHASE_RANK[phase] >= PHASE_RANK[Phase.LOAD_WEIGHTS]


def speaks_after_exit(run: OpenRun, event: Event) -> bool:
    """What a program says well after its process was reported gone, another process says."""
    if event.kind is Kind.START or not (run.exit is not None or run.restart_said):
        return False
    if event.line <= (run.exit_line or 0):
        return False  # the end of a traceback that was read to its end only now
    if of_supervisor(event):
        return False
    if event.uptime is not None and run.last_uptime is not None and event.process is None:
        return event.uptime < run.last_uptime
    if event.time is not None and run.exit_at is not None:
        return event.time - run.exit_at > CONCURRENT_S
    late = 0 if run.exit_is_last else 1
    return not run.marked and event.line - (run.exit_line or event.line) > late


def ends_with_the_others(run: OpenRun, event: Event) -> bool:
    """A process is told to go after another of its job left badly: nobody asked for that."""
    if run.exit is None or run.exit_asked or event.rule is None:
        return False
    badly = run.exit.code not in (None, 0) and run.exit.signal not in ASKED_SIGNALS
    return badly and (event.rule.of_job or not of_supervisor(event))


def exits_again(run: OpenRun, event: Event) -> bool:
    """The same words of an exit, later and with other lines between, are another run's."""
    if run.exit is None or event.rule is None or event.rule.id != run.exit_rule:
        return False
    if (
        event.time is not None
        and run.exit_at is not None
        and event.time - run.exit_at <= CONCURRENT_S
    ):
        return False
    return event.line - (run.exit_line or 0) > 1


def dies_again(run: OpenRun, event: Event) -> bool:
    """In a program without known start lines, the same fatal line again is another run's."""
    if run.marked or run.spans or run.dead_line is None:
        return False
    if event.time is None or run.dead_at is None:
        if event.line - run.dead_line < 2:
            return False
    elif event.time - run.dead_at <= (
        # Supervisors wait for a second at least; whole seconds cannot tell one from none.
        AGAIN_S if event.time % 1 or run.dead_at % 1 else CONCURRENT_S / 2
    ):
        return False
    return mask(run.dead_text) == mask(event.text)  # the numbers differ from start to start


def only_supervised(run: OpenRun) -> bool:
    """Did the program itself tell of no start and no phase?"""
    if not run.marked and run.spans:
        return False
    return not run.spoke_itself


def of_supervisor(event: Event) -> bool:
    """Is it a supervisor's word?"""
    return event.rule is not None and event.rule.speaker is Speaker.SUPERVISOR


def last_word_again(run: OpenRun, event: Event, *, ranks: bool) -> bool:
    """A program ends once: a second last word is another run, though nothing told of its start.

    Only where a run is nothing but its last word (it died before its first line of log); ranks
    that die together say theirs within moments, where there are any.
    """
    if not run.spoke_last or not only_supervised(run):
        return False
    if event.time is None or run.dead_at is None:
        return True
    return event.time - run.dead_at > (CONCURRENT_S if ranks else TWIN_WORDS_S)


def is_usage_error(event: Event) -> bool:
    """Does a program refuse its own arguments? That is the last that it says."""
    return event.kind is Kind.FAILURE and _USAGE.search(event.text) is not None


def starts_anew(run: OpenRun, phase: Phase, event: Event) -> bool:
    """Do start-up markers come again in order, after ready or death? Collects them in `run.again`."""
    if run.dead_line is not None and event.line - run.dead_line < 3:
        return False
    if run.beside_at is not None and phase not in run.beside_phases:
        run.beside_phases.add(phase)
        return False
    bar = event.bar
    if bar is not None and not bar.at_zero:
        return False
    ended = run.dead_at if run.dead_at is not None else run.ready_at
    if event.time is not None and ended is not None and event.time < ended:
        return False  # a shipper's copy of what was already told
    run.again.setdefault(phase, event)
    ranks = [PHASE_RANK[p] for p in run.again]
    if len(ranks) < 2 or ranks != sorted(ranks):
        return False
    return run.dead_line is None or run.ready or _settled(run, event)


def _settled(run: OpenRun, event: Event) -> bool:
    if event.time is not None and run.dead_at is not None:
        return event.time - run.dead_at > SETTLED_S
    return event.line - (run.dead_line or 0) > SETTLED_LINES
