"""What the system tells of files, as hints of when to look.

One watch a folder, never one a file: watchdog's file events, or its polling observer where no
events arrive. What a hint says is only "look at this path"; a lost one costs a delay until the
next sweep. Where events don't work the reason is said once.
"""

from __future__ import annotations

import errno
import logging
import os
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

from loopdetect.follow.bell import Bell

if TYPE_CHECKING:
    from watchdog.events import FileSystemEvent

TELLING: Final = frozenset({"modified", "created", "moved", "deleted"})
# How often the polling observer compares a folder with what it was.
POLLED_EVERY: Final = 0.5
LIMITS: Final = {
    errno.ENOSPC: "the system's limit of file watches is reached (fs.inotify.max_user_watches)",
    errno.EMFILE: "the system's limit of file watchers is reached (fs.inotify.max_user_instances)",
}


class How(Enum):
    """How a folder is watched."""

    EVENTS = "events"
    POLLING = "polling"


@dataclass(frozen=True, slots=True)
class _Watched:
    place: tuple[int, int]
    watch: Any


class Watches:
    """watchdog's watches on folders; without any `working` is False and nothing else changes."""

    def __init__(self, bell: Bell, say: Callable[[str], None], *, events: bool = True) -> None:
        self._bell = bell
        self._say = say
        self._events = events
        self._observers: dict[How, Any] = {}
        self._watched: dict[tuple[str, How], _Watched] = {}
        self.working = False

    @property
    def listening(self) -> bool:
        """True while file events are listened to."""
        return self.working and self._events

    def start(self) -> None:
        """Begin to listen."""
        # What it logs of its own threads is no news to a user.
        logging.getLogger("watchdog").addHandler(logging.NullHandler())
        self.working = True
        if self._events:
            self._observer(How.EVENTS)

    def cover(self, folders: Iterable[str], silent: Collection[str] = ()) -> None:
        """Watch these folders and no others; the `silent` ones are polled as well.

        A folder that was made anew is watched anew.
        """
        if not self.working:
            return
        places = {folder: place for folder in folders if (place := _place(folder)) is not None}
        wanted = {(folder, self._how): place for folder, place in places.items()}
        wanted |= {(folder, How.POLLING): places[folder] for folder in silent if folder in places}
        for key, known in list(self._watched.items()):
            if wanted.get(key) != known.place or not self._alive(key):
                self._forget(key)
        for (folder, asked), place in wanted.items():
            how = How.POLLING if asked is How.POLLING else self._how  # events may just have failed
            if (folder, how) not in self._watched:
                self._add(folder, how, place)

    def stop(self) -> None:
        """Stop listening; may be called more than once."""
        self.working = False
        self._watched.clear()
        for how in list(self._observers):
            self._end(how)

    def _observer(self, how: How) -> Any:
        """Return the observer of a kind, started when it is first needed; None if it can't be."""
        if how not in self._observers:
            try:
                self._observers[how] = _started(how)
            except (OSError, RuntimeError) as problem:
                self._do_without(how, problem)
        return self._observers.get(how)

    @property
    def _how(self) -> How:
        return How.EVENTS if self._events else How.POLLING

    def _add(self, folder: str, how: How, place: tuple[int, int]) -> None:
        observer = self._observer(how)
        if observer is None:
            return
        try:
            watch = observer.schedule(_handler(self._bell), folder, recursive=False)
        except (OSError, RuntimeError) as problem:
            if how is How.EVENTS and getattr(problem, "errno", None) in LIMITS:
                self._do_without(how, problem)
                self._add(folder, self._how, place)
            return  # the folder went away meanwhile; the next sweep sees
        self._watched[folder, how] = _Watched(place, watch)

    def _forget(self, key: tuple[str, How]) -> None:
        known = self._watched.pop(key)
        try:
            self._observers[key[1]].unschedule(known.watch)
        except (KeyError, OSError, RuntimeError):
            return

    def _alive(self, key: tuple[str, How]) -> bool:
        watch = self._watched[key].watch
        emitters = getattr(self._observers.get(key[1]), "emitters", ())
        return any(emitter.watch == watch and emitter.is_alive() for emitter in emitters)

    def _do_without(self, how: How, problem: Exception) -> None:
        """Say why a kind of watching does not work, and go on with the other or with none."""
        self._end(how)
        lost = {folder: known.place for (folder, old), known in self._watched.items() if old is how}
        self._watched = {key: known for key, known in self._watched.items() if key[1] is not how}
        if how is How.POLLING:
            self.working = self._events
            self._say(f"folders cannot be polled here ({problem}); looking at the files only")
            return
        self._events = False
        code = getattr(problem, "errno", None)
        reason = LIMITS.get(code or 0, f"file events do not work here ({problem})")
        self._say(f"{reason}; looking every half second instead")
        for folder, place in lost.items():
            if (folder, How.POLLING) not in self._watched:
                self._add(folder, How.POLLING, place)

    def _end(self, how: How) -> None:
        observer = self._observers.pop(how, None)
        if observer is not None and observer.is_alive():
            observer.stop()
            observer.join(2.0)


def _started(how: How) -> Any:
    from watchdog.observers import Observer
    from watchdog.observers.polling import PollingObserver

    observer = Observer() if how is How.EVENTS else PollingObserver(timeout=POLLED_EVERY)
    observer.daemon = True
    observer.start()
    return observer


def _handler(bell: Bell) -> Any:
    from watchdog.events import FileSystemEventHandler

    class Handler(FileSystemEventHandler):
        """Rings for what changes a file; our own opening and closing is no news."""

        def on_any_event(self, event: FileSystemEvent) -> None:
            """Note the paths that the event names."""
            if event.event_type in TELLING:
                paths = (event.src_path, getattr(event, "dest_path", ""))
                bell.ring(*(os.fsdecode(path) for path in paths if path))

    return Handler()


def _place(folder: str) -> tuple[int, int] | None:
    try:
        status = os.stat(folder)
    except OSError:
        return None
    return status.st_dev, status.st_ino
