"""The only door to the core: bytes in, reports out.

How this works: bytes are cut into regions of whole segments. A region is searched for all literals
of the rules in force, and only the segments that hold one are cut out, freed from their envelopes
and handed to the stream they belong to. While a stream reads a traceback, or a cause waits for the
lines after it, segments are taken one after the other. Until the server is known the literals of
all profiles are searched for; afterwards only those of the profiles in play.
"""

from __future__ import annotations

import copy
from collections import Counter
from dataclasses import replace
from functools import partial
from typing import Final

from loopdetect.core.block import CHAINS, HEADER, PANIC
from loopdetect.core.context import NEAR, Contexts
from loopdetect.core.envelope import ANSI, Enveloped, host_of, peel
from loopdetect.core.line import Line
from loopdetect.core.lines import CUT_MARK, MAX_SEGMENT, Cutter
from loopdetect.core.newest_first import MAX_TURNED, is_newest_first, renumbered, turned
from loopdetect.core.prefilter import Prefilter, make_prefilter
from loopdetect.core.programs import block_program, program_of, several_programs
from loopdetect.core.recognise import IdentifyRules
from loopdetect.core.snapshots import with_snapshots
from loopdetect.core.stream import Stream
from loopdetect.core.transcode import is_json_envelope, transcode
from loopdetect.core.transcript import Finding, Transcript, looks_like_transcript
from loopdetect.core.verdict import report_of
from loopdetect.model import Kind, Policy, Report, Shared
from loopdetect.profiles import ALWAYS, Library

HEAD: Final = 16 * 1024
UNKNOWN_AFTER: Final = 256 * 1024
LOOKBACK: Final = 4096
MAX_STREAMS: Final = 200
DAEMON: Final = "PM2"
BAR_LITERALS: Final = ("it/s", "s/it", "B/s]", "% Completed | ", "━━━━", "] -- ETA", "] -- Took")
BLOCK_LITERALS: Final = (HEADER, PANIC, *CHAINS)
_QUIET_WHEN_READY: Final = frozenset({Kind.ALIVE})


class Detector:
    """Follows one source, however its bytes are chunked, and says what its servers are doing."""

    def __init__(
        self,
        library: Library,
        policy: Policy | None = None,
        *,
        source: str = "-",
        profile: str | None = None,
    ) -> None:
        self._library = library
        self._policy = policy or Policy()
        self._source = source
        self._forced = profile
        self._search = _search_of(library)
        self._cutter = Cutter()
        self._head: bytearray | None = bytearray()
        self._transcode = False
        self._transcript: Transcript | None = None
        self._finding: Finding | None = None
        self._streams: dict[str | None, Stream] = {}
        self._contexts = Contexts()
        self._line = 1
        self._done_bytes = 0
        self._tail = b""
        self._line_head = b""
        self._in_line = False
        self._names: frozenset[str] = frozenset()
        self._programs = False
        self._part_hit = False
        self._turned: bytearray | None = None
        self._was_turned = False
        self._key: tuple[frozenset[str], bool, bool] | None = None
        self._prefilter: Prefilter | None = None
        self._finished = False

    # -- the door

    def feed(self, data: bytes, *, now: float | None = None) -> None:
        """Add bytes in any chunking; `now` is not needed to read, only to judge."""
        if not data:
            return
        if self._head is not None:
            self._head += data
            if len(self._head) < HEAD:
                return
            self._open()
            return
        if self._turned is not None:
            self._hold(data)
            return
        self._region(self._cutter.feed(data))

    def finish(self, *, now: float | None = None) -> tuple[Report, ...]:
        """End the log and report on each of its streams; `now` is on the log's own clock."""
        if not self._finished:
            if self._head is not None:
                self._open()
            if self._turned is not None:
                held, self._turned = bytes(self._turned), None
                self._was_turned = True
                self._region(self._cutter.feed(turned(held)))
            rest = self._cutter.finish()
            if rest:
                self._region(rest)
            if self._transcript is not None:
                stream = Stream(
                    None, self._library, self._search.identify, self._forced, self._contexts
                )
                self._streams[None] = stream
                self._finding = self._transcript.play(stream)
            for stream in self._ordered():
                stream.finish()
            self._finished = True
        return self._reports(now)

    def snapshot(self, *, now: float | None = None) -> tuple[Report, ...]:
        """Report as if the log ended here, and go on."""
        return copy.deepcopy(self).finish(now=now)

    # -- the head of the log decides how it is read

    def _hold(self, data: bytes) -> None:
        """Keep a log that is newest line first until its end, as long as it is not too large for that."""
        assert self._turned is not None
        self._turned += data
        if len(self._turned) > MAX_TURNED:
            held, self._turned = bytes(self._turned), None
            self._region(self._cutter.feed(held))

    def _open(self) -> None:
        head, self._head = bytes(self._head or b""), None
        sample = head[:HEAD]
        self._transcode = is_json_envelope(sample)
        self._names = _service_names(sample)
        self._programs = several_programs(ANSI.sub("", sample.decode("utf-8", "replace")))
        if looks_like_transcript(sample):
            self._transcript = Transcript()
        self._cutter.only_newlines = self._transcode or self._transcript is not None
        if self._transcript is None and is_newest_first(sample):
            self._turned = bytearray()
            self._hold(head)
            return
        self._region(self._cutter.feed(head))

    # -- regions

    def _region(self, region: bytes) -> None:
        if not region:
            return
        if self._transcode:
            region = transcode(region)
        if self._transcript is not None:
            self._transcript.feed(region)
            self._line += region.count(b"\n")
            self._remember(region)
            return
        returns = b"\r" in region
        length = len(region)
        pos = counted = 0
        offsets = self._offsets(region, 0)
        index = 0
        while pos < length:
            while index < len(offsets) and offsets[index] < pos:
                index += 1
            if not self._sequential():
                if index == len(offsets):
                    break
                at = offsets[index]
                start = region.rfind(b"\n", pos, at) + 1
                if returns:
                    start = max(start, region.rfind(b"\r", pos, at) + 1)
                pos = max(pos, start)
            end = _end(region, pos, returns)
            hit = index < len(offsets) and offsets[index] < end
            self._line += region.count(b"\n", counted, pos)
            counted = pos
            self._segment(region, pos, end, hit)
            pos = end + 1
            if self._search_changed():
                offsets, index = [o + pos for o in self._offsets(region[pos:], 0)], 0
        self._line += region.count(b"\n", counted)
        self._remember(region)

    def _remember(self, region: bytes) -> None:
        """Keep what the next region may look back on."""
        newline = region.rfind(b"\n") + 1
        rest = region[newline:]
        if newline:
            self._line_head = rest[:512]
        elif len(self._line_head) < 512:
            self._line_head = (self._line_head + rest)[:512]
        self._tail = (self._tail + region)[-LOOKBACK:]
        self._done_bytes += len(region)

    def _offsets(self, region: bytes, start: int) -> list[int]:
        self._search_changed()
        assert self._prefilter is not None
        return self._prefilter.offsets(region)

    def _sequential(self) -> bool:
        return (
            not self._streams
            or self._part_hit
            or self._contexts.waiting
            or any(stream.collecting for stream in self._streams.values())
        )

    def _search_changed(self) -> bool:
        """Choose the literals to search for; True when the choice is a new one."""
        streams = self._streams.values()
        if self._done_bytes > UNKNOWN_AFTER:
            for stream in streams:
                stream.decide()
        known = frozenset(name for stream in streams for name in stream.names)
        if not known or not all(stream.names for stream in streams):
            known = frozenset(self._library.profiles) if not known else known | frozenset(ALWAYS)
        alive = not streams or any(stream.wants_alive for stream in streams)
        settled = len(self._streams) == 1 and all(stream.recognised for stream in streams)
        key = (known, alive, settled)
        if key == self._key:
            return False
        self._key = key
        self._prefilter = self._search.prefilter(known, alive, settled)
        return True

    # -- segments

    def _segment(self, region: bytes, start: int, end: int, hit: bool) -> None:
        raw = region[start:end]
        if not raw:
            return
        if len(raw) > MAX_SEGMENT:
            raw = raw[:MAX_SEGMENT] + CUT_MARK
        head = self._head_of(region, start)
        text = ANSI.sub("", raw.decode("utf-8", "replace"))
        if head is None:
            enveloped = peel(text, self._names)
            if "cri" in enveloped.kinds:
                if _is_part(raw):
                    self._part_hit = self._part_hit or hit
                    return
                enveloped = self._joined(region, start, enveloped)
                hit, self._part_hit = hit or self._part_hit, False
        else:
            outer = peel(ANSI.sub("", head.decode("utf-8", "replace")), self._names)
            enveloped = Enveloped(
                text, outer.stamp, outer.stream, outer.process, outer.pid, outer.level, outer.kinds
            )
        enveloped = self._with_stream(enveloped, region, start)
        number = self._line
        if self._contexts.waiting:
            self._contexts.after(number, enveloped.text)
        stream = self._stream_for(enveloped)
        if stream is None:
            return
        before, known = stream.failures, bool(stream.names)
        look_back = partial(self._time_before, region, start, stream) if hit and known else None
        told = partial(self._lines_before, region, start) if look_back else None
        stream.take(Line(number, enveloped, hit, look_back, told))
        opened = stream.machine.open
        if known and opened is not None and opened.failures and stream.failures != before:
            self._contexts.want(
                opened.failures[-1], number, self._lines_before(region, start), enveloped.text
            )

    def _head_of(self, region: bytes, start: int) -> bytes | None:
        """Return the start of the physical line when the segment does not begin it."""
        newline = region.rfind(b"\n", 0, start) + 1
        if newline == 0:
            head = self._line_head + region[:start]
        else:
            head = region[newline:start]
        return head[:512] if head else None

    def _joined(self, region: bytes, start: int, enveloped: Enveloped) -> Enveloped:
        """Put the parts of a line that the container runtime split together again."""
        parts: list[str] = []
        for line in reversed(self._before(region, start).split(b"\n")[:-1]):
            if not _is_part(line):
                break
            parts.append(ANSI.sub("", line.split(b" ", 3)[3].decode("utf-8", "replace")))
        if not parts:
            return enveloped
        return replace(enveloped, text="".join(reversed(parts)) + enveloped.text)

    def _with_stream(self, enveloped: Enveloped, region: bytes, start: int) -> Enveloped:
        """A collector's own line about a service ('web-1 exited with code 1') belongs to that service."""
        name = None
        if self._programs and enveloped.stream in (None, DAEMON):
            name = program_of(enveloped.text)
            if name is None and not enveloped.kinds:
                name = block_program(self._before(region, start).decode("utf-8", "replace"))
        elif enveloped.stream is None and self._streams:
            word = enveloped.text.split(" ", 1)[0]
            name = next(
                (
                    n
                    for n in self._streams
                    if n and (word == n or word.endswith((f"_{n}", f"-{n}")))
                ),
                None,
            )
        return replace(enveloped, stream=name) if name is not None else enveloped

    def _stream_for(self, enveloped: Enveloped) -> Stream | None:
        name = enveloped.stream
        if name is None and self._streams:
            named = [key for key in self._streams if key is not None]
            if len(named) == 1 and None not in self._streams:
                name = named[0]
        stream = self._streams.get(name)
        if stream is None:
            if len(self._streams) >= MAX_STREAMS:
                return None
            stream = Stream(
                name, self._library, self._search.identify, self._forced, self._contexts
            )
            self._streams[name] = stream
        return stream

    def _before(self, region: bytes, start: int) -> bytes:
        if start >= LOOKBACK:
            return region[start - LOOKBACK : start]
        return (self._tail + region[:start])[-LOOKBACK:]

    def _lines_before(self, region: bytes, start: int) -> tuple[str, ...]:
        lines = [
            line
            for line in self._before(region, start).replace(b"\r", b"\n").split(b"\n")
            if line.strip()
        ]
        return tuple(
            peel(ANSI.sub("", line.decode("utf-8", "replace")), self._names).text
            for line in lines[-NEAR:]
        )

    def _time_before(self, region: bytes, start: int, stream: Stream) -> float | None:
        """Return when the line before was written; the end of a run that printed no end."""
        for raw in reversed(self._before(region, start).split(b"\n")[-12:]):
            if raw.strip():
                line = peel(ANSI.sub("", raw[-2000:].decode("utf-8", "replace")), self._names)
                if line.stream == stream.name or line.stream is None:
                    time = stream.peek_time(line)
                    if time is not None:
                        return time
        return None

    # -- reports

    def _ordered(self) -> list[Stream]:
        return list(self._streams.values())

    def _reports(self, now: float | None) -> tuple[Report, ...]:
        lines = self._line - (1 if self._ends_with_newline() else 0)
        if self._cutter.total == 0 and not self._streams:
            lines = 0
        streams = self._ordered() or [
            Stream(None, self._library, self._search.identify, self._forced, self._contexts)
        ]
        told = [s for s in streams if s.profile is not None or s.supervised]
        named = [s for s in told if s.name is not None]
        if named and len(told) > len(named):
            told = [s for s in told if s.name is not None or s.profile is not None]
        if told:
            streams = told
        elif len(streams) > 1:
            streams = [s for s in streams if s.machine.open or s.machine.runs] or streams[:1]
        last_times = self._last_times()
        reports = []
        for stream in streams:
            stream.decide()
            reports.append(
                report_of(
                    stream,
                    source=self._source,
                    library=self._library,
                    policy=self._policy,
                    contexts=self._contexts,
                    lines=lines,
                    size=self._cutter.total,
                    last_time=last_times.get(stream.name),
                    now=now,
                )
            )
        if self._finding is not None:
            return tuple(with_snapshots(report, self._finding) for report in reports)
        if self._was_turned:
            return tuple(renumbered(report) for report in reports)
        return tuple(reports)

    def _ends_with_newline(self) -> bool:
        return self._tail.endswith(b"\n")

    def _last_times(self) -> dict[str | None, float]:
        """Return when the last line of each stream was written."""
        times: dict[str | None, float] = {
            s.name: s.last_time for s in self._streams.values() if s.last_time is not None
        }
        for raw in self._tail.split(b"\n"):
            line = peel(ANSI.sub("", raw.decode("utf-8", "replace")), self._names)
            stream = self._streams.get(line.stream)
            if stream is None and len(self._streams) == 1:
                stream = next(iter(self._streams.values()))
            if stream is not None:
                time = stream.peek_time(line)
                if time is not None:
                    times[stream.name] = max(time, times.get(stream.name, time))
        return times


def _end(region: bytes, start: int, returns: bool) -> int:
    end = region.find(b"\n", start)
    end = len(region) if end < 0 else end
    if returns:
        back = region.find(b"\r", start, end)
        end = back if back >= 0 else end
    return end


def _is_part(line: bytes) -> bool:
    """True for a line of a container runtime's log that goes on in the next one."""
    fields = line[:80].split(b" ", 3)
    return (
        len(fields) == 4
        and fields[1] in (b"stdout", b"stderr")
        and fields[2].split(b":", 1)[0] == b"P"
    )


def _service_names(sample: bytes) -> frozenset[str]:
    """Return the names that stand before lines often enough to be services (compose) or pods (stern)."""
    counts: Counter[str] = Counter()
    hosts: Counter[str] = Counter()
    for raw in sample.split(b"\n"):
        text = ANSI.sub("", raw[:200].decode("utf-8", "replace"))
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
    known = {name for name, count in counts.items() if count >= (3 if " " in name else 2)}
    pods = Counter(name.split(" ", 1)[0] for name in known if " " in name)
    known |= {f"several:{pod}" for pod, containers in pods.items() if containers > 1}
    if sum(count >= 3 for count in hosts.values()) > 1:
        known |= {f"host:{host}" for host in hosts}
    return frozenset(known)


class _Search(Shared):
    """What is compiled once for a library: identify rules, and a prefilter for each set of profiles."""

    def __init__(self, library: Library) -> None:
        self.library = library
        self.identify = IdentifyRules(library)
        self._prefilters: dict[tuple[frozenset[str], bool, bool], Prefilter] = {}

    def prefilter(self, names: frozenset[str], alive: bool, settled: bool) -> Prefilter:
        """Return the search for the literals of these profiles.

        `alive` adds proof of serving; `settled` leaves out what only hints at another server.
        """
        found = self._prefilters.get((names, alive, settled))
        if found is None:
            identify = self.identify.proofs if settled else self.identify.literals
            literals = set(identify) | set(BAR_LITERALS) | set(BLOCK_LITERALS)
            for name in names | frozenset(ALWAYS):
                profile = self.library.profiles.get(name)
                for rule in profile.rules if profile else ():
                    if rule.kind is Kind.IDENTIFY or (rule.kind in _QUIET_WHEN_READY and not alive):
                        continue
                    literals.update(rule.literals)
            found = self._prefilters[names, alive, settled] = make_prefilter(literals)
        return found


# One library is in use at a time; its compiled search is kept beside it, so that many logs share it.
_latest: list[_Search] = []


def _search_of(library: Library) -> _Search:
    if not _latest or _latest[0].library is not library:
        _latest[:] = [_Search(library)]
    return _latest[0]
