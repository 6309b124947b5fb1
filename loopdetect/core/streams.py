"""The servers of one source, and which of them a line belongs to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from itertools import islice
from typing import Final

from loopdetect.core.context import Contexts
from loopdetect.core.envelope import NO_HOST, Enveloped, host_of, is_stamped, uncoloured
from loopdetect.core.programs import GAVE_UP, block_program, program_of
from loopdetect.core.recognise import IdentifyRules
from loopdetect.core.stream import Stream
from loopdetect.profiles import Library

MAX_STREAMS: Final = 200
NAMES_TRIED: Final = 20
STAMPED_LINES: Final = 3
# What a supervisor calls itself among the programs whose lines it prefixes.
DAEMONS: Final = ("PM2", "system")


class Streams:
    """The streams of one source by name; None is the one whose lines have no name before them.

    `programs` is true where a supervisor watches several programs, `tailed` the file whose lines
    `tail` shows at present.
    """

    __slots__ = (
        "_contexts",
        "_forced",
        "_identify",
        "_library",
        "_told_last",
        "all",
        "programs",
        "tailed",
    )

    def __init__(
        self,
        library: Library,
        identify: IdentifyRules,
        forced: str | None,
        contexts: Contexts,
    ) -> None:
        self.all: dict[str | None, Stream] = {}
        self.programs = False
        self.tailed: str | None = None
        self._told_last: str | None = None
        self._library = library
        self._identify = identify
        self._forced = forced
        self._contexts = contexts

    @property
    def alone(self) -> bool:
        """True while all lines are those of one server without a name."""
        return len(self.all) == 1 and None in self.all

    def made(self, name: str | None) -> Stream:
        """Add a stream."""
        stream = self.all[name] = self._new(name)
        return stream

    def _new(self, name: str | None) -> Stream:
        return Stream(name, self._library, self._identify, self._forced, self._contexts)

    def named(self, enveloped: Enveloped, before: Callable[[], bytes]) -> Enveloped:
        """A collector's own line about a service ('web-1 exited with code 1') belongs to that service.

        `before` returns the lines before this one.
        """
        name = None
        if enveloped.stream in DAEMONS or (self.programs and enveloped.stream is None):
            name = program_of(enveloped.text)
            if name is None and GAVE_UP in enveloped.text:
                name = self._told_last  # it names the script only
            self._told_last = name or self._told_last
            if name is None and not enveloped.kinds:
                name = block_program(before().decode("utf-8", "replace"))
        elif enveloped.stream is None and self.all and not self.alone:
            name = self._service_named(enveloped.text)
        if name is None and enveloped.stream is None:
            name = self.tailed
        return replace(enveloped, stream=name) if name is not None else enveloped

    def _service_named(self, text: str) -> str | None:
        """Return the stream that a line without a service's prefix names at its head or as a pod."""
        word = text.split(" ", 1)[0]
        for name in islice(self.all, NAMES_TRIED):
            if name and (
                word == name
                or word.endswith((f"_{name}", f"-{name}"))
                or f"pod/{name.split('/')[0]} " in text
            ):
                return name
        return None

    def of(self, enveloped: Enveloped) -> Stream | None:
        """Return the stream that a line belongs to, or None where there are too many already."""
        name = enveloped.stream
        if name is None and self.alone:
            return self.all[None]
        if name is None and self.all:
            named = [key for key in self.all if key is not None]
            bare = self.all.get(None)
            if len(named) == 1 and (bare is None or bare.profile is None):
                name = named[0]
            elif self.programs and bare is None:
                # Lines between a supervisor's own are those of the program that is named as a server.
                own = [
                    key for key in named if any(server in key for server in self._library.profiles)
                ]
                name = own[0] if len(own) == 1 else None
        stream = self.all.get(name)
        if stream is None and len(self.all) < MAX_STREAMS:
            stream = self.made(name)
        return stream

    def worth_a_report(self) -> list[Stream]:
        """Return the streams that a server, a supervisor or a tailed file tells of; at least one."""
        streams = list(self.all.values()) or [self._new(None)]
        told = [
            s
            for s in streams
            if s.profile is not None or s.supervised or (self.tailed and s.name and s.failures)
        ]
        named = [s for s in told if s.name is not None]
        if named and len(told) > len(named):
            told = [s for s in told if s.name is not None or s.has_lines_of_its_own(named)]
        if told or len(streams) == 1:
            return told or streams
        return [s for s in streams if s.machine.open or s.machine.runs] or streams[:1]


def service_names(sample: bytes) -> frozenset[str]:
    """Return the names that stand before lines often enough to be services (compose) or pods (stern)."""
    counts: Counter[str] = Counter()
    hosts: Counter[str] = Counter()
    stamped = 0
    for raw in sample.split(b"\n"):
        text = uncoloured(raw[:200].decode("utf-8", "replace"))
        name, bar, _ = text.partition("|")
        word = name.rstrip()
        if bar and name.endswith(" ") and word and " " not in word:
            counts[word] += 1
        words = text.split(" ", 2)
        if len(words) == 3 and "-" in words[0]:
            counts[f"{words[0]} {words[1]}"] += 1
        host = host_of(text)
        if host is not None:
            hosts[host] += 1
        stamped += is_stamped(text)
    known = {name for name, count in counts.items() if count >= (3 if " " in name else 2)}
    pods = Counter(name.split(" ", 1)[0] for name in known if " " in name)
    known |= {f"several:{pod}" for pod, containers in pods.items() if containers > 1}
    if sum(count >= 3 for count in hosts.values()) > 1:
        known |= {f"host:{host}" for host in hosts}
    if stamped >= STAMPED_LINES and hosts.total() * 2 < stamped:
        known.add(NO_HOST)  # as `ts` writes; of words before a colon some look like a host's
    return frozenset(known)
