"""File events as hints of when to look.

One watch a folder, never one a file. What an event says is only "look at this path"; a lost one
costs a delay until the next sweep. Where events don't work the reason is said once, and the sweep
does it alone, more often.
"""

from __future__ import annotations

import errno
import logging
import os
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final

from loopdetect.follow.bell import Bell

if TYPE_CHECKING:
    from watchdog.events import FileSystemEvent

TELLING: Final = frozenset({"modified", "created", "moved", "deleted"})
LIMITS: Final = {
    errno.ENOSPC: "the system's limit of file watches is reached (fs.inotify.max_user_watches)",
    errno.EMFILE: "the system's limit of file watchers is reached (fs.inotify.max_user_instances)",
}


class Watches:
    """watchdog's watches on folders; without them `working` is False and nothing else changes."""

    def __init__(self, bell: Bell, say: Callable[[str], None]) -> None:
        self._bell = bell
        self._say = say
        self._observer: Any = None
        self._watched: dict[str, tuple[Any, tuple[int, int]]] = {}
        self.working = False

    def start(self) -> None:
        """Begin to listen."""
        try:
            from watchdog.observers import Observer

            # What it logs of its own threads is no news to a user.
            logging.getLogger("watchdog").addHandler(logging.NullHandler())
            self._observer = Observer()
            self._observer.daemon = True
            self._observer.start()
            self.working = True
        except (ImportError, OSError, RuntimeError) as problem:
            self._give_up(problem)

    def cover(self, folders: Iterable[str]) -> None:
        """Watch these folders and no others; a folder that was made anew is watched anew."""
        if not self.working:
            return
        wanted = {folder: place for folder in folders if (place := _place(folder)) is not None}
        for folder, (watch, place) in list(self._watched.items()):
            if wanted.get(folder) != place or not self._alive(watch):
                self._forget(folder, watch)
        for folder, place in wanted.items():
            if folder not in self._watched and self.working:
                self._add(folder, place)

    def stop(self) -> None:
        """Stop listening; may be called more than once."""
        observer, self._observer = self._observer, None
        self.working = False
        if observer is not None:
            observer.stop()
            observer.join(2.0)

    def _add(self, folder: str, place: tuple[int, int]) -> None:
        try:
            watch = self._observer.schedule(_handler(self._bell), folder, recursive=False)
        except (OSError, RuntimeError) as problem:
            code = getattr(problem, "errno", None)
            if code in LIMITS:
                self._give_up(problem)
            return  # the folder went away meanwhile; the next sweep sees
        self._watched[folder] = (watch, place)

    def _forget(self, folder: str, watch: Any) -> None:
        del self._watched[folder]
        try:
            self._observer.unschedule(watch)
        except (KeyError, OSError, RuntimeError):
            return

    def _alive(self, watch: Any) -> bool:
        emitters = getattr(self._observer, "emitters", ())
        return any(emitter.watch == watch and emitter.is_alive() for emitter in emitters)

    def _give_up(self, problem: Exception) -> None:
        code = getattr(problem, "errno", None)
        reason = LIMITS.get(code or 0, f"file events do not work here ({problem})")
        self.stop()
        self._say(f"{reason}; looking at the files every half second instead")


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
