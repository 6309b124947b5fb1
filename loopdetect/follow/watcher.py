"""The loop that follows many sources: sleep, look where something may have happened, judge, tell.

A sweep over all sources makes a lost hint a short delay, and is all there is where nothing can be
watched. One look at a quiet file is one `stat`. A source is judged when it grew
or when time alone may have changed its state, at most about ten times a second.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, Protocol

from loopdetect.follow import mounts
from loopdetect.follow.bell import Bell
from loopdetect.follow.happened import Happened, Memory, What
from loopdetect.follow.pipe import Pipe
from loopdetect.follow.rotated import Mark, base_name
from loopdetect.follow.source import Followed, Reading
from loopdetect.follow.tail import CHUNK, Tail, Work
from loopdetect.follow.targets import STDIN, Targets
from loopdetect.follow.wake import Watches

SWEEP: Final = 2.0
SWEEP_ALONE: Final = 0.5
SOON: Final = 0.25
# Folders and links are looked at again with every so many sweeps.
COVER_EVERY: Final = 4
# Reading is left for judging after so long, however much there still is to read.
READ_FOR: Final = 0.1
# A source that was judged just now is not judged again at once, whatever it says.
LEAST: Final = 0.02
SAVE_EVERY: Final = 5.0
# A file out of a folder or glob that is gone for so long is forgotten.
FORGET_AFTER: Final = 600.0


@dataclass(frozen=True, slots=True)
class Saved:
    """What an earlier watcher left of a source."""

    mark: Mark | None
    state: bytes
    memories: dict[str | None, Memory]


class Listener(Protocol):
    """Is told what happens, and keeps what must outlive the watcher."""

    def happened(self, followed: Followed, events: list[Happened]) -> None:
        """A source was looked at: tell of what happened, which may be nothing."""

    def forgot(self, name: str) -> None:
        """A source is followed no longer."""

    def save(self, followed: Followed) -> None:
        """Keep where the reading stands."""

    def recall(self, name: str) -> Saved | None:
        """Return what was kept of a source."""

    def swept(self, now: float) -> None:
        """A round is over."""


class Watcher:
    """Follows all sources of one call until it is stopped."""

    def __init__(
        self,
        targets: Targets,
        reading: Reading,
        listener: Listener,
        *,
        bell: Bell,
        say: Callable[[str], None],
        events: bool = True,
        clock: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.targets = targets
        self.reading = reading
        self.sources: dict[str, Followed] = {}
        self.work = Work()
        self.bell = bell
        self._listener = listener
        self._say = say
        self._clock, self._monotonic = clock, monotonic
        self._watches = Watches(bell, say, events=events)
        self._silent: str | None = None
        self._names: dict[str, set[str]] = {}
        self._aliases: dict[str, tuple[int, int]] = {}
        self._gone: dict[str, float] = {}
        self._due: dict[str, float] = {}
        self._hungry: set[str] = set()
        self._next_sweep = 0.0
        self._sweeps = 0

    # -- the door

    def begin(self, *, following: bool = True) -> None:
        """Find the sources, read what stands in them, and sum it up."""
        if following:
            self._watches.start()
        for path in self.targets.found():
            self._add(path, live=False)
        if following:
            self._cover()
        if self.targets.stdin:
            self._add_pipe()
        hungry = set(self.sources)
        while hungry and following:
            hungry = {name for name in hungry if self._read(self.sources[name])}
        while hungry:  # a look once: the pipe is read to its end
            hungry = {name for name in hungry if self._read(self.sources[name])}
            pipe = self.sources.get(STDIN)
            if pipe is not None and not pipe.ended:
                self.bell.wait(SOON)
                hungry.add(STDIN)
        for followed in list(self.sources.values()):
            if not following:
                followed.flush(self._clock())
            self._judge(followed)
        self._next_sweep = self._monotonic() + self._interval

    def step(self, most: float | None = None) -> None:
        """Do one round; sleeps until something may have happened, at most `most` seconds."""
        wait = self._wait()
        paths = self.bell.wait(wait if most is None else min(wait, most))
        touched = {name for path in paths for name in self._names.get(path, ())}
        touched |= self._hungry
        now = self._monotonic()
        if now >= self._next_sweep:
            touched |= self._sweep(now)
        elif self.targets.growing and any(path not in self._names for path in paths):
            touched |= self._find_new()
        pipe = self.sources.get(STDIN)
        if pipe is not None and not pipe.ended:
            touched.add(STDIN)
        touched |= {name for name, at in self._due.items() if at <= self._clock()}
        self._read_all(touched)
        self._judge_due()
        self._listener.swept(self._clock())

    def stop(self) -> None:
        """Read what is there, tell it, keep the state, close everything."""
        self._watches.stop()
        for followed in self.sources.values():
            with contextlib.suppress(OSError):
                while self._read(followed):
                    pass
                followed.flush(self._clock())
            self._judge(followed, final=True)
            self._listener.save(followed)
        self.close()

    def close(self) -> None:
        """Close every file."""
        for followed in self.sources.values():
            if isinstance(followed.origin, Tail):
                followed.origin.close()

    @property
    def over(self) -> bool:
        """True when every source has ended: pipes do, files never."""
        return bool(self.sources) and not self.targets.growing and all(
            followed.ended for followed in self.sources.values()
        )  # fmt: skip

    def reload(self, reading: Reading) -> None:
        """Go on with profiles that were read anew, and look for new files."""
        self.reading = reading
        for followed in self.sources.values():
            if not followed.relearn(reading):
                self._say(f"{followed.name}: the new profiles apply from its next start on")
        self._next_sweep, self._sweeps = 0.0, COVER_EVERY - 1
        self.bell.ring()

    # -- sources

    def _add(self, path: str, *, live: bool) -> None:
        tail = Tail(path, self.work)
        followed = Followed.new(path, self.reading, tail, live=live)
        self.sources[path] = followed
        for known in {os.path.abspath(path), os.path.realpath(path)}:
            self._names.setdefault(known, set()).add(path)
        saved = self._listener.recall(path)
        if saved is None:
            return
        usable = followed.restore(saved.state, saved.memories)
        if usable and saved.mark is not None:
            followed.take(tail.resume(saved.mark), self._clock())

    def _add_pipe(self) -> None:
        pipe = Pipe(self.bell.ring)
        reading = replace(self.reading, salt=f"{self._clock()}")
        self.sources[STDIN] = Followed.new(STDIN, reading, pipe, live=True)
        pipe.start()

    def _find_new(self) -> set[str]:
        """Add the files that folders and globs have come to hold; rotated copies are not new."""
        new = [path for path in self.targets.found() if path not in self.sources]
        if not new:
            return set()
        open_files = {place for followed in self.sources.values() for place in _places(followed)}
        added = set()
        for path in new:
            try:
                status = os.stat(path)
            except OSError:
                continue
            place = (status.st_dev, status.st_ino)
            folder, name = os.path.split(path)
            base = base_name(name)
            if place in open_files or (base and os.path.join(folder, base) in self.sources):
                self._aliases[path] = place
            elif self._aliases.get(path) != place:
                self._add(path, live=True)
                added.add(path)
                self._tell_new(path)
        return added

    def _tell_new(self, path: str) -> None:
        followed = self.sources[path]
        now = self._clock()
        event = followed.happened(now, What.APPEARED, "a new file is followed")
        self._listener.happened(followed, [event])

    def _forget_gone(self, now: float) -> None:
        for name, followed in list(self.sources.items()):
            if not _missing(followed) or name in self.targets.paths:
                self._gone.pop(name, None)
            elif now - self._gone.setdefault(name, now) >= FORGET_AFTER:
                assert isinstance(followed.origin, Tail)
                followed.origin.close()
                del self.sources[name], self._gone[name]
                self._due.pop(name, None)
                self._listener.forgot(name)

    # -- rounds

    @property
    def _interval(self) -> float:
        return SWEEP if self._watches.working else SWEEP_ALONE

    def _wait(self) -> float:
        if self._hungry:
            return 0.0
        wait = self._next_sweep - self._monotonic()
        soonest = min(self._due.values(), default=None)
        if soonest is not None:
            wait = min(wait, soonest - self._clock())
        return max(0.0, wait)

    def _sweep(self, now: float) -> set[str]:
        self._next_sweep = now + self._interval
        self._sweeps += 1
        if self._sweeps % COVER_EVERY == 0 or any(map(_missing, self.sources.values())):
            self._cover()
        if self.targets.growing and (self._sweeps % COVER_EVERY == 0 or not self._watches.working):
            self._find_new()
            self._forget_gone(now)
        clock = self._clock()
        for followed in self.sources.values():
            grown = followed.grown_at is not None and followed.grown_at > followed.saved_at
            if grown and clock - followed.saved_at >= SAVE_EVERY and not followed.dirty:
                self._listener.save(followed)
        return set(self.sources)

    def _cover(self) -> None:
        """Watch the folders of all files, of what links lead to, and of files yet to come."""
        folders = set(map(os.path.abspath, self.targets.watched_folders()))
        for name in self.sources:
            if name == STDIN:
                continue
            real = os.path.realpath(name)
            folders |= {os.path.dirname(os.path.abspath(name)), os.path.dirname(real)}
            self._names.setdefault(real, set()).add(name)
        kinds = self._silent_folders(folders) if self._watches.listening else {}
        self._watches.cover(folders, kinds)
        if kinds and self._silent is None:
            self._silent = min(kinds.values())
            self._say(
                f"file events may not arrive on {self._silent}; looking there every half second too"
            )

    def _silent_folders(self, folders: set[str]) -> dict[str, str]:
        """Return the folders where no events may arrive, each with its kind of file system."""
        table = mounts.current_table()
        kinds = {folder: mounts.silent_type(folder, table) for folder in folders}
        return {folder: kind for folder, kind in kinds.items() if kind is not None}

    def _read_all(self, names: set[str]) -> None:
        """Read each source a piece at a time, so that a flood in one starves no other."""
        until = self._monotonic() + READ_FOR
        waiting = deque(name for name in names if name in self.sources)
        self._hungry = set()
        while waiting:
            name = waiting.popleft()
            if self._read(self.sources[name]):
                waiting.append(name)
            if self._monotonic() >= until and len(waiting) > 0:
                self._hungry = set(waiting)
                return

    def _read(self, followed: Followed) -> bool:
        more = followed.read(self._clock(), self._monotonic(), CHUNK)
        events = followed.happenings(self._clock())
        if events:
            self._listener.happened(followed, events)
        self._plan(followed)
        return more

    def _judge_due(self) -> None:
        now = self._clock()
        for name in [name for name, at in self._due.items() if at <= now]:
            followed = self.sources.get(name)
            if followed is None:
                del self._due[name]
            elif not (name in self._hungry and followed.backlog):
                self._judge(followed)

    def _judge(self, followed: Followed, *, final: bool = False) -> None:
        now = self._clock()
        events = followed.judge(now, final=final or followed.ended)
        if followed.ended and followed.last_word:
            followed.last_word = False
            states = ", ".join(report.verdict.state.value for report in followed.reports)
            events.append(followed.happened(now, What.END, f"the input has ended: {states}"))
        self._listener.happened(followed, events)
        self._plan(followed, least=LEAST)

    def _plan(self, followed: Followed, least: float = 0.0) -> None:
        now = self._clock()
        wait = followed.due(now)
        if followed.origin.waiting:
            wait = SOON if wait is None else min(wait, SOON)
        if wait is None:
            self._due.pop(followed.name, None)
        else:
            self._due[followed.name] = now + max(least, wait)


def _missing(followed: Followed) -> bool:
    return isinstance(followed.origin, Tail) and followed.origin.missing


def _places(followed: Followed) -> list[tuple[int, int]]:
    if not isinstance(followed.origin, Tail):
        return []
    current = [followed.origin.current] if followed.origin.current else []
    return [(each.device, each.inode) for each in [*followed.origin.old, *current]]
