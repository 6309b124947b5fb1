"""One server's lines inside a source: recognised, understood, folded into runs."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import Final

from loopdetect.core import prose
from loopdetect.core.block import FRAME, HEADER, PANIC, opens_panic, opens_traceback
from loopdetect.core.context import NEAR, Contexts
from loopdetect.core.envelope import BARE, Enveloped
from loopdetect.core.event import Event
from loopdetect.core.judging import failure_of
from loopdetect.core.line import GETS_ON, TEXT_SHOWN, Line, last_words, own_time, uptime, wraps
from loopdetect.core.progress import find_bar, leading_dots
from loopdetect.core.recognise import FALLBACK, PROOF, IdentifyRules, Recogniser, Unknown
from loopdetect.core.restarts import STARTING
from loopdetect.core.rules import Chain, Match, Message
from loopdetect.core.run import Machine
from loopdetect.core.timestamp import Clock, Stamp, parse
from loopdetect.core.tracebacks import EXCUSES, Tracebacks
from loopdetect.model import PHASE_RANK, Kind, Phase
from loopdetect.profiles import ALWAYS, Library

Standing = tuple[tuple[str, ...], Unknown, bool, bool]

MAX_HELD: Final = 4000
HEAD_LINES: Final = 6
_PARTING: Final = frozenset({Kind.EXIT, Kind.CASCADE})
_OF_GUESTS: Final = {Kind.FAILURE, Kind.CASCADE, Kind.PHASE, Kind.PROGRESS, Kind.HEARTBEAT}
_GUEST_KINDS: Final = EXCUSES | _OF_GUESTS


class Stream:
    """Understands the lines of one server and folds them into runs."""

    def __init__(
        self,
        name: str | None,
        library: Library,
        identify: IdentifyRules,
        forced: str | None,
        contexts: Contexts,
    ) -> None:
        self.name = name
        self.machine = Machine()
        self.clock = Clock()
        self.recogniser = Recogniser()
        self.last_time: float | None = None
        self._replays = False
        self._previous: Line | None = None
        self.profile: str | None = forced
        self.read_at: float | None = None  # when the last line was written, if it has a time
        self._whole = False
        self._library = library
        self._identify = identify
        self._forced = forced
        self._contexts = contexts
        self._chain: Chain | None = None
        self._guests: tuple[str, ...] = ()
        self._hosts = False
        self._held: list[Line] = []
        self._tracebacks = Tracebacks(self.machine, library)
        self._envelope_clock = False
        self.uptime_clock = False
        if forced:
            self._settle_on(forced)

    # -- state that the detector steers by

    @property
    def collecting(self) -> bool:
        """True while every line is needed, not only the hits."""
        return self._chain is None or bool(self._tracebacks.open)

    @property
    def standing(self) -> Standing:
        """All that decides what is searched for: profiles, what is unknown, proof wanted, serving."""
        run = self.machine.open
        alive = run is None or not (run.answered or run.dead_line is not None)
        return self.names, self.unknown, alive, run is not None and run.serving

    @property
    def unknown(self) -> Unknown:
        """How much is still to be learnt of the server."""
        if self._forced is not None:
            return Unknown.NOTHING
        if self._chain is None or self.profile is None or self._hosts:
            return Unknown.EVERYTHING
        return Unknown.NOTHING if self.profile in self.recogniser.versions else Unknown.ONLY_PROOF

    @property
    def supervised(self) -> bool:
        """True when a supervisor told of a start or an end, though the program itself is unknown."""
        runs = self.machine.all_runs
        return self.machine.gave_up is not None or any(r.exit is not None or r.marked for r in runs)

    def has_lines_of_its_own(self, named: list[Stream]) -> bool:
        """True for lines without a name that are a server's, not remarks on one of the `named`."""
        runs = self.machine.all_runs
        if self.profile is None or not runs:
            return False
        return any(run.marked for run in runs) or self.profile not in {s.profile for s in named}

    @property
    def failures(self) -> int:
        """How many failures the open run has collected."""
        return len(self.machine.open.failures) if self.machine.open else 0

    @property
    def names(self) -> tuple[str, ...]:
        """The profiles in force, or none while the server is unknown."""
        return self._chain.names if self._chain else ()

    # -- lines in

    def take(self, line: Line) -> None:
        """Read one line."""
        if self._chain is None:
            self._held.append(line)
            if line.hit:
                self._look(line)
            if len(self._held) > MAX_HELD:
                self.decide()
            return
        if line.hit and self.unknown is not Unknown.NOTHING:
            self._look(line)
        self._understand(line)

    def take_polled(self, line: Line) -> None:
        """Read one line that a polling loop showed: its time is the loop's, its own is kept beside it."""
        self.machine.polled = True
        self.take(line)

    def recognise(self, texts: Iterable[str]) -> None:
        """Say which server wrote these lines before any is read."""
        for text in texts:
            self.recogniser.look(self._identify, text)
        self.decide()

    def note(self, kind: Kind, line: int, text: str, stamp: Stamp | None) -> None:
        """Add what was observed beside the log: a health code, a word of the polling loop."""
        time = self.clock.seconds(stamp) if stamp is not None else None
        self.machine.fold(Event(kind=kind, line=line, text=text, time=time))

    def note_restart(self, line: int, text: str) -> None:
        """Add that the server was seen to start again, though no line of the log says so."""
        event = Event(kind=Kind.START, line=line, text=text, time=self.last_time)
        if self.machine.open is None:
            self.machine.begin(replace(event, line=1, text="the first look"))
        else:
            self.machine.open.marked = True
        self.machine.begin(event)

    def _look(self, line: Line) -> None:
        proof = self.unknown is Unknown.ONLY_PROOF
        self.recogniser.look(self._identify, line.enveloped.text, only_proof=proof)
        if line.enveloped.record is not None:
            self.recogniser.look(self._identify, line.enveloped.record, only_proof=proof)
        best = self.recogniser.best()
        if best and best[1] >= PROOF and best[0] != self.profile:
            if self._is_runner_of(best[0]):
                # What was taken for a server until now is a runner of this one's: its death is not ours.
                polled, self.machine = self.machine.polled, Machine()
                self.machine.polled = polled
                self._tracebacks = Tracebacks(self.machine, self._library)
            self._settle_on(best[0])
        elif self._hosts and self.recogniser.guests(self.profile or "") != self._guests:
            self._settle_on(self.profile)

    def _is_runner_of(self, name: str) -> bool:
        """True when the server that was recognised so far is what a daemon starts for each model."""
        return self.profile not in (None, FALLBACK) and self._library.profiles[name].daemon

    def decide(self) -> None:
        """Stop waiting for proof: take the likeliest server, or none."""
        if self._chain is None:
            best = self.recogniser.best()
            self._settle_on(best[0] if best else None)

    def _settle_on(self, name: str | None) -> None:
        self.profile = name
        self.machine.anonymous = name is None
        self.machine.ranks = name != FALLBACK
        profile = self._library.profiles.get(name) if name else None
        self._hosts = profile is not None and profile.hosts_engines
        self._guests = self.recogniser.guests(name) if name and self._hosts else ()
        if profile is not None and profile.main_process:
            self.machine.main_process = re.compile(profile.main_process)
        if profile is not None and profile.child_process:
            self.machine.child_process = re.compile(profile.child_process)
        names = ([name] if name else []) + list(self._guests) + list(ALWAYS)
        self._chain = Chain(self._library, [n for n in names if n in self._library.profiles])
        held, self._held = self._held, []
        before: tuple[str, ...] = ()
        self._replays = True
        for line in held:
            self._contexts.after(line.number, line.enveloped.text)
            count = self.failures
            self._understand(replace(line, lines_before=partial(tuple, before)))
            if (
                self.failures != count
                and self.machine.open is not None
                and self.machine.open.failures
            ):
                self._contexts.want(
                    self.machine.open.failures[-1], line.number, before, line.enveloped.text
                )
            if line.enveloped.text.strip():
                before = (*before, line.enveloped.text)[-NEAR:]
        self._replays = False

    def finish(self) -> None:
        """The log ends here."""
        self.decide()
        assert self._chain is not None
        self._tracebacks.close_all(self._chain, self.last_time)

    # -- understanding

    def time_of(self, enveloped: Enveloped, message: Message | None) -> float | None:
        """Return when the line was written, on the stream's clock."""
        if enveloped.stamp is not None:
            self._envelope_clock = self._envelope_clock or (self._replays and wraps(enveloped))
            return self.clock.seconds(enveloped.stamp)
        if self._envelope_clock or message is None:
            return None
        stamp = parse(message.time) if message.time else None
        if stamp is not None:
            return self.clock.seconds(stamp)
        if self.clock.frame is None and message.uptime:
            self.uptime_clock = True
            return uptime(message.uptime)
        return None

    def peek_time(self, enveloped: Enveloped) -> float | None:
        """Return the time of a line that is not folded."""
        if self._chain is None:
            return None
        message = self._chain.prefixes.strip(enveloped.text)
        return self.time_of(enveloped, message)

    def starts_up(self, enveloped: Enveloped) -> bool:
        """True when a line is one that only a start-up prints, from the weights on: bars, readiness."""
        if self._chain is None:
            return False
        message = self._chain.prefixes.strip(enveloped.text)
        bar = find_bar(message.text)
        text = message.text[: bar[2]] if bar is not None else message.text
        match = self._chain.match(text, message.level or enveloped.level)
        if match is None or match.rule.kind not in STARTING:
            return False
        phase = match.rule.phase
        return phase is None or PHASE_RANK[phase] >= PHASE_RANK[Phase.LOAD_WEIGHTS]

    def tells_no_time(self, raw: bytes) -> bool:
        """True for a line of which its first words show that it has neither envelope nor prefix."""
        return (
            self._chain is not None
            and BARE.match(raw) is not None
            and not self._chain.prefixes.any_begins_with(chr(raw[0]))
        )

    def _understand(self, line: Line) -> None:
        text = line.enveloped.text
        self.read_at = None
        if text.startswith("^C") and line.hit:
            self._find_time(line, None)
            self._fold(
                line, Message("^C", None, None, None, None, None), self.last_time, Kind.STOP, None
            )
            text = text[2:]
            if not text:
                return
        dots = leading_dots(text)
        if dots and dots < len(text):
            text = text[dots:].lstrip(" ") if text[dots] not in "." else text
        self._whole = text is line.enveloped.text
        if self._whole:
            self._segment(line)
        else:
            self._segment(replace(line, enveloped=replace(line.enveloped, text=text)))
        self._previous = line

    def _segment(self, line: Line) -> None:
        rest: Line | None = line
        while rest is not None:
            rest = self._part(rest)

    def _part(self, line: Line) -> Line | None:
        """Understand a segment up to the end of the bar that it begins with; return what is glued to it."""
        assert self._chain is not None
        message = self._chain.prefixes.strip(line.enveloped.text)
        time = self.time_of(line.enveloped, message)
        if self._whole:
            self.read_at, self._whole = time, False
        # Whether a line that tells nothing was read at all must make no difference later.
        if time is not None and (self._tracebacks.open or self._replays or self.machine.polled):
            self.last_time = time
        if line.number <= HEAD_LINES and not self._tracebacks.open and FRAME.match(message.text):
            self._tracebacks.begin_inside(line, message)
        if self._tracebacks.open and self._tracebacks.offer(
            line, message, self._chain, self.last_time
        ):
            return None
        if not line.hit:
            return None
        if opens_traceback(message.text) or (PANIC in message.text and opens_panic(message.text)):
            self._open_block(line, message, time)
            return None
        found = find_bar(message.text)
        if found is not None:
            bar, start, end = found
            match = self._chain.match(message.text[:end], message.level)
            if match is None or match.rule.kind in (Kind.PROGRESS, Kind.PHASE):
                phase = match.rule.phase if match else None
                self._fold(line, message, time, Kind.PROGRESS, match, phase=phase, bar=bar)
            rest = message.text[end:].strip()
            if len(rest) <= 3 or start < 0:
                return None
            return replace(line, enveloped=replace(line.enveloped, text=rest))
        level = message.level or line.enveloped.level
        match = self._chain.match(message.text, level)
        if match is None and line.enveloped.record is not None:
            match = self._chain.match(line.enveloped.record, level)
        if match is not None and self._allowed(match, message.text, level):
            self._speak(line, message, time, match)
        return None

    def _allowed(self, match: Match, text: str, level: str | None) -> bool:
        rule = match.rule
        if level == "DEBUG" and rule.kind in (Kind.FAILURE, Kind.CASCADE):
            return False  # what a program tells its own developers of, it got round
        if rule.kind in prose.KINDS and prose.mentions(text, rule.literals):
            return False
        if rule.of_strangers and self.profile is not None:
            return False  # a guess, for what has no words of its own
        owner = rule.id.split("/", 1)[0]
        return owner not in self._guests or rule.kind in _GUEST_KINDS

    def _speak(self, line: Line, message: Message, time: float | None, match: Match) -> None:
        rule = match.rule
        if rule.kind is Kind.START:
            assert self._chain is not None
            # What the run before said last, before it is over.
            self._tracebacks.close_all(self._chain, self.last_time, raised=True)
        if rule.kind in EXCUSES:
            self._tracebacks.excuse(rule.kind, line, message)
            return
        failure = None
        if rule.kind is Kind.FAILURE:
            if not rule.fatal and GETS_ON.search(message.text):
                return
            failure = failure_of(line.number, message.text, match)
        # A bar's label without a bar that can be read still tells the phase.
        kind = Kind.PHASE if rule.kind is Kind.PROGRESS else rule.kind
        self._fold(line, message, time, kind, match, phase=rule.phase, failure=failure)

    def _fold(
        self,
        line: Line,
        message: Message,
        time: float | None,
        kind: Kind,
        match: Match | None,
        **extra: object,
    ) -> None:
        told = self.machine.fold(
            Event(
                kind=kind,
                line=line.number,
                text=line.enveloped.text[:TEXT_SHOWN],
                time=time,
                own=own_time(message),
                uptime=uptime(message.uptime),
                process=message.process or line.enveloped.process,
                pid=message.pid,  # a collector's pid is that of a shell as often as not
                node=line.enveloped.node,
                rule=match.rule if match else None,
                fields=match.fields if match else {},
                last_time=line.time_before() if kind is Kind.START and line.time_before else None,
                words=last_words(line) if kind in _PARTING and self.machine.anonymous else None,
                **extra,  # type: ignore[arg-type]
            )
        )
        if told and time is not None:
            self.last_time = time
            self._envelope_clock = self._envelope_clock or wraps(line.enveloped)

    def _find_time(self, line: Line, time: float | None) -> None:
        """Take a line's own time for the last one, or that of the lines right before it."""
        if time is None and line.time_before is not None:
            time = line.time_before()
        if time is not None:
            self.last_time = time

    # -- tracebacks

    def _open_block(self, line: Line, message: Message, time: float | None) -> None:
        assert self._chain is not None
        self._find_time(line, time)
        self._excuse_by(self._previous)
        excused = self._tracebacks.excuses(line, message)
        before, header, _ = message.text.partition(HEADER)
        if before.strip() and header:
            match = self._chain.match(message.text, message.level)
            if match is not None:
                # Words of its own head a traceback, not the line before.
                excused = match.rule.kind in EXCUSES
                if match.rule.kind in (Kind.CASCADE, Kind.STOP):
                    self._fold(line, message, time, match.rule.kind, match)
        self._tracebacks.begin(line, message, self._chain, self.last_time, excused=excused)

    def _excuse_by(self, line: Line | None) -> None:
        """Ask the line before a traceback, which was not searched for, whether it excuses it."""
        if line is None or line.hit:
            return
        assert self._chain is not None
        message = self._chain.prefixes.strip(line.enveloped.text)
        match = self._chain.match(message.text, message.level or line.enveloped.level)
        if match is not None and match.rule.kind in EXCUSES:
            self._tracebacks.excuse(match.rule.kind, line, message)
