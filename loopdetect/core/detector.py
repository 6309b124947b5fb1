"""The only door to the core: bytes in, reports out.

How this works: bytes are cut into regions of whole segments. A region is searched for the literals
of the rules that could tell something new, and only the segments that hold one are cut out, freed
from their envelopes and handed to the stream they belong to. While a stream reads a traceback, or
a cause waits for the lines after it, segments are taken one after the other. Until the server is
known the literals of all profiles are searched for; afterwards only those of the profiles in play.
"""

from __future__ import annotations

import copy
import re
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from loopdetect.core.context import NEAR, Contexts
from loopdetect.core.envelope import Enveloped, peel, uncoloured, whole
from loopdetect.core.line import Line
from loopdetect.core.lines import CUT_MARK, MAX_SEGMENT, Cutter
from loopdetect.core.margin import line_numbers_of, margins_of, without
from loopdetect.core.newest_first import MAX_TURNED, is_newest_first, renumbered, turned
from loopdetect.core.place import LOOKBACK
from loopdetect.core.polling import looks_like_transcript
from loopdetect.core.programs import (
    TAILED,
    several_programs,
    tailed_file,
)
from loopdetect.core.recognise import Unknown
from loopdetect.core.search import Aim, search_of
from loopdetect.core.stream import HEAD_LINES, Stream
from loopdetect.core.streams import Streams, service_names
from loopdetect.core.transcode import ESCAPED, goes_on, is_json_envelope, pieces, transcode
from loopdetect.core.verdict import report_of
from loopdetect.core.walk import Walk
from loopdetect.model import Policy, Report, SourceFile
from loopdetect.profiles import ALWAYS, Library

if TYPE_CHECKING:
    from loopdetect.core.transcript import Finding, Transcript

HEAD: Final = 16 * 1024
UNKNOWN_AFTER: Final = 256 * 1024
LOOKED_AT: Final = 2000


class Detector:
    """Follows one source, however its bytes are chunked, and says what its servers are doing."""

    def __init__(
        self,
        library: Library,
        policy: Policy | None = None,
        *,
        source: str = "-",
        profile: str | None = None,
        transcript: bool | None = None,
    ) -> None:
        self._library = library
        self._as_transcript = transcript
        self._policy = policy or Policy()
        self._source = source
        self._forced = profile
        self._search = search_of(library)
        self._cutter = Cutter()
        self._head: bytearray | None = bytearray()
        self._transcode = False
        self._margins: tuple[re.Pattern[bytes], ...] = ()
        self._transcript: Transcript | None = None
        self._finding: Finding | None = None
        self._contexts = Contexts()
        self._streams = Streams(library, self._search.identify, profile, self._contexts)
        self._walk = Walk(self._search)
        self._place = self._walk.place
        self._names: frozenset[str] = frozenset()
        self._part_hit = False
        self._read_last: tuple[int, float] | None = None
        self._turned: bytearray | None = None
        self._files: list[SourceFile] = []
        self._ends_open = False
        self._was_turned = False
        self._aims: tuple[object, Aim] | None = None
        self._finished = False

    # -- the door

    def feed(self, data: bytes, *, now: float | None = None) -> None:
        """Add bytes in any chunking; `now` is not needed to read, only to judge."""
        if not data:
            return
        self._ends_open = not data.endswith(b"\n")
        if self._head is not None:
            self._head += data
            if len(self._head) < HEAD:
                return
            self._open()
            return
        if self._turned is not None:
            self._hold(data)
            return
        self._read(data)

    def finish(self, *, now: float | None = None) -> tuple[Report, ...]:
        """End the log and report on each of its streams; `now` is on the log's own clock."""
        if not self._finished:
            if self._head is not None:
                self._open()
            if self._turned is not None:
                held, self._turned = bytes(self._turned), None
                self._was_turned = True
                self._read(turned(held))
            rest = self._cutter.finish()
            if rest:
                self._region(rest, 0, len(rest))
            if self._transcript is not None:
                self._finding = self._transcript.play(self._streams.made(None))
            for stream in self._streams.all.values():
                stream.finish()
            self._finished = True
        return self._reports(now)

    def next_file(self, name: str, *, restarted: bool = False) -> None:
        """Go on with the next file of the same history; `restarted` says that it is a new process's."""
        if self._ends_open:
            self.feed(b"\n")
        if self._files and self._head is not None and self._head:
            self._open()
        if self._files and restarted:
            for stream in self._streams.all.values():
                stream.decide()
                stream.machine.file_ended()
        self._files.append(SourceFile(name, self._place.line))

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
            self._read(held)

    def _open(self) -> None:
        head, self._head = bytes(self._head or b""), None
        sample = head[:HEAD]
        self._margins = line_numbers_of(sample)
        sample = without(self._margins, sample)
        polled = self._as_transcript
        if polled is None:
            polled = looks_like_transcript(sample)
            margins = () if polled or is_json_envelope(sample) else margins_of(sample)
            if margins:
                self._margins += margins
                sample = without(margins, sample)
                polled = looks_like_transcript(sample)
        self._transcode = is_json_envelope(sample)
        self._names = service_names(sample)
        self._streams.programs = several_programs(uncoloured(sample.decode("utf-8", "replace")))
        if polled:
            from loopdetect.core.transcript import Transcript

            self._transcript = Transcript(sample)
        self._cutter.only_newlines = bool(
            self._transcode or self._margins or self._transcript is not None
        )
        if self._transcript is None and is_newest_first(sample):
            self._turned = bytearray()
            self._hold(head)
            return
        self._read(head)

    # -- regions

    def _read(self, data: bytes) -> None:
        for buffer, start, stop in self._cutter.regions(data):
            self._region(buffer, start, stop)

    def _region(self, buffer: bytes, start: int, stop: int) -> None:
        if self._margins:
            buffer = without(self._margins, buffer[start:stop])
            start, stop = 0, len(buffer)
        if self._transcode and self._transcript is None:
            for first, last in pieces(buffer, start, stop):
                if not self._passes(buffer, first, last):
                    plain = transcode(buffer[first:last])
                    self._walk.region(plain, 0, len(plain), self)
            return
        if self._transcode:
            buffer = transcode(buffer[start:stop])
            start, stop = 0, len(buffer)
        if self._transcript is not None:
            self._place.enter(buffer, start, stop)
            self._transcript.feed(buffer[start:stop])
            self._place.leave()
            return
        self._walk.region(buffer, start, stop, self)

    def _passes(self, buffer: bytes, start: int, stop: int) -> bool:
        """Pass over a piece of JSON records in which nothing is found; False if it is to be read."""
        return (
            buffer.find(ESCAPED, start, stop) < 0
            and not goes_on(buffer, start, stop)
            and self._walk.passes(buffer, start, stop, self)
        )

    def sequential(self) -> bool:
        """True while every segment is wanted, not only the hits."""
        if not self._streams.all or self._part_hit or self._contexts.waiting:
            return True
        for stream in self._streams.all.values():
            if stream.collecting:
                return True
        return self._place.line <= HEAD_LINES and self._place.read < HEAD

    def aim(self, offset: int) -> Aim:
        """Return what could tell something new from an offset of the source on."""
        streams = self._streams.all.values()
        if offset > UNKNOWN_AFTER:
            for stream in streams:
                stream.decide()
        known = tuple([stream.standing for stream in streams])
        if self._aims is None or self._aims[0] != known:
            self._aims = known, self._aim_at(known)
        return self._aims[1]

    def _aim_at(self, known: tuple[tuple[tuple[str, ...], Unknown, bool, bool], ...]) -> Aim:
        names = frozenset(name for profiles, *_ in known for name in profiles)
        if not names:
            names = frozenset(self._library.profiles)
        single = len(known) == 1
        return Aim(
            names | frozenset(ALWAYS),
            known[0][1] if single else Unknown.EVERYTHING,
            alive=not known or any(alive for *_, alive, _ in known),
            serving=bool(known) and all(serving for *_, serving in known),
        )

    # -- segments

    def take(self, raw: bytes, at: int, hit: bool) -> None:
        """Take the segment at an offset of the region that is being read."""
        self._take(raw, self._place.line, at, hit, self._place.head_of(at))

    def take_earlier(self, raw: bytes, line: int) -> None:
        """Take the segment that ended right before the region, which nothing was found in."""
        self._take(raw, line, self._place.first, False, None)
        self._read_last = None

    def _take(self, raw: bytes, number: int, at: int, hit: bool, head: bytes | None) -> None:
        if len(raw) > MAX_SEGMENT:
            raw = raw[:MAX_SEGMENT] + CUT_MARK
        text = uncoloured(raw.decode("utf-8", "replace"))
        if head is None:
            enveloped = peel(text, self._names)
            if "cri" in enveloped.kinds:
                if _is_part(raw):
                    self._part_hit = self._part_hit or hit
                    return
                enveloped = whole(self._joined(at, enveloped))
                hit, self._part_hit = hit or self._part_hit, False
        else:
            outer = peel(uncoloured(head.decode("utf-8", "replace")), self._names)
            enveloped = Enveloped(
                text, outer.stamp, outer.stream, outer.process, outer.pid, outer.level, outer.kinds
            )
        if text.startswith(TAILED):
            self._streams.tailed = tailed_file(text) or self._streams.tailed
            return
        enveloped = self._streams.named(enveloped, partial(self._place.before, at))
        if self._contexts.waiting:
            self._contexts.after(number, enveloped.text)
        stream = self._streams.of(enveloped)
        if stream is None:
            return
        before, known = stream.failures, bool(stream.names)
        look_back = partial(self._time_before, at, stream) if hit and known else None
        told = partial(self._lines_before, at) if look_back else None
        stream.take(Line(number, enveloped, hit, look_back, told))
        self._read_last = None
        if (
            stream.read_at is not None
            and head is None
            and self._streams.alone
            and len(raw) <= LOOKED_AT
        ):
            self._read_last = self._place.offset(at) + len(raw) + 1, stream.read_at
        opened = stream.machine.open
        if known and opened is not None and opened.failures and stream.failures != before:
            self._contexts.want(opened.failures[-1], number, self._lines_before(at), enveloped.text)

    def _joined(self, start: int, enveloped: Enveloped) -> Enveloped:
        """Put the parts of a line that the container runtime split together again."""
        parts: list[str] = []
        for line in reversed(self._place.before(start).split(b"\n")[:-1]):
            if not _is_part(line):
                break
            parts.append(uncoloured(line.split(b" ", 3)[3].decode("utf-8", "replace")))
        if not parts:
            return enveloped
        return replace(enveloped, text="".join(reversed(parts)) + enveloped.text)

    def _lines_before(self, start: int) -> tuple[str, ...]:
        lines = [
            line
            for line in self._place.before(start).replace(b"\r", b"\n").split(b"\n")
            if line.strip()
        ]
        return tuple(
            peel(uncoloured(line.decode("utf-8", "replace")), self._names).text
            for line in lines[-NEAR:]
        )

    def _time_before(self, start: int, stream: Stream) -> float | None:
        """Return when the line before was written; the end of a run that printed no end."""
        last = self._read_last
        if (
            last is not None
            and last[0] == self._place.offset(start)
            and self._place.begins_line(start)
        ):
            return last[1]
        for raw in reversed(self._place.before(start).rsplit(b"\n", 12)[-12:]):
            if raw.strip() and not (len(raw) <= LOOKED_AT and stream.tells_no_time(raw)):
                line = peel(uncoloured(raw[-LOOKED_AT:].decode("utf-8", "replace")), self._names)
                if line.stream == stream.name or line.stream is None:
                    time = stream.peek_time(line)
                    if time is not None:
                        return time
        return None

    # -- reports

    def _reports(self, now: float | None) -> tuple[Report, ...]:
        lines = self._place.line - (1 if self._ends_with_newline() else 0)
        if self._cutter.total == 0 and not self._streams.all:
            lines = 0
        last_times = self._last_times()
        reports = []
        for stream in self._streams.worth_a_report():
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
            from loopdetect.core.snapshots import with_snapshots

            return tuple(with_snapshots(report, self._finding) for report in reports)
        if len(self._files) > 1:
            reports = [replace(report, files=tuple(self._files)) for report in reports]
        if self._was_turned:
            return tuple(renumbered(report) for report in reports)
        return tuple(reports)

    def _ends_with_newline(self) -> bool:
        return self._place.tail(1) == b"\n"

    def _last_times(self) -> dict[str | None, float]:
        """Return when the last line of each stream was written."""
        times: dict[str | None, float] = {}
        tail = self._place.tail()
        near = max(0, len(tail) - LOOKBACK)
        for raw in tail[near:].split(b"\n"):
            self._read_time(raw, times)
        if not times and self._streams.all:
            for raw in reversed(tail[:near].split(b"\n")):
                if self._read_time(raw, times):
                    break
        for stream in self._streams.all.values():
            if stream.last_time is not None:
                known = times.get(stream.name, stream.last_time)
                times[stream.name] = max(known, stream.last_time)
        return times

    def _read_time(self, raw: bytes, times: dict[str | None, float]) -> bool:
        line = peel(uncoloured(raw.decode("utf-8", "replace")), self._names)
        stream = self._streams.all.get(line.stream)
        if stream is None and len(self._streams.all) == 1:
            stream = next(iter(self._streams.all.values()))
        time = stream.peek_time(line) if stream is not None else None
        if stream is None or time is None:
            return False
        times[stream.name] = max(time, times.get(stream.name, time))
        return True


def _is_part(line: bytes) -> bool:
    """True for a line of a container runtime's log that goes on in the next one."""
    fields = line[:80].split(b" ", 3)
    return (
        len(fields) == 4
        and fields[1] in (b"stdout", b"stderr")
        and fields[2].split(b":", 1)[0] == b"P"
    )
