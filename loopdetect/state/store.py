"""A watcher's memory in one SQLite file: where each source stands, what was told, what is to send.

How this works: the events of a look, the memory that they were told, and the place in the file are
written in one transaction before anything is printed. Whatever moment the watcher dies at, the next
one finds either none of it, and sees the same again, or all of it, with the lines that were not
marked as printed. The file is of one version of loopdetect; another version reads the logs anew
but remembers what it has told.
"""

from __future__ import annotations

import fcntl
import json
import os
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from loopdetect.errors import UsageProblem

SCHEMA: Final = 1
NAME: Final = "watch.sqlite3"
KEPT_EVENTS: Final = 10_000
_TABLES: Final = """
CREATE TABLE IF NOT EXISTS source (
    name TEXT PRIMARY KEY, device INTEGER, inode INTEGER, offset INTEGER, head BLOB, tail BLOB,
    modified INTEGER, made_by TEXT, state BLOB);
CREATE TABLE IF NOT EXISTS memory (
    name TEXT, stream TEXT, data TEXT, PRIMARY KEY (name, stream));
CREATE TABLE IF NOT EXISTS event (
    number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT UNIQUE, data TEXT, printed INTEGER);
CREATE TABLE IF NOT EXISTS delivery (
    number INTEGER PRIMARY KEY AUTOINCREMENT, channel TEXT, id TEXT, data TEXT,
    UNIQUE (channel, id));
"""


@dataclass(frozen=True, slots=True)
class Place:
    """Where the reading of a source stands; see `Mark`. `state` is the detector's."""

    device: int
    inode: int
    offset: int
    head: bytes
    tail: bytes
    modified: int
    made_by: str
    state: bytes


class Store:
    """The open state folder; one watcher at a time. Raises UsageProblem where it can't be used."""

    def __init__(self, folder: Path) -> None:
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as problem:
            raise UsageProblem(
                f"{folder}: cannot keep state there: {problem.strerror}",
                "give --state-dir a folder that you can write to",
            ) from problem
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as problem:
            os.close(self._lock)
            raise UsageProblem(
                f"{folder}: another loopdetect watch uses this state folder",
                "stop it, or give this one a folder of its own",
            ) from problem
        self.path = folder / NAME
        self._base = self._opened()

    def _opened(self) -> sqlite3.Connection:
        try:
            return _connect(self.path)
        except sqlite3.DatabaseError:
            aside = self.path.with_suffix(".broken")
            with suppress(OSError):
                os.replace(self.path, aside)
            for left in ("-wal", "-shm"):
                with suppress(OSError):
                    os.unlink(f"{self.path}{left}")
            try:
                return _connect(self.path)
            except sqlite3.Error as problem:
                raise UsageProblem(
                    f"{self.path}: cannot keep state there: {problem}",
                    "remove the file, or give --state-dir another folder",
                ) from problem

    # -- writing

    @contextmanager
    def together(self) -> Iterator[None]:
        """Write all that is saved inside in one step, or nothing of it. Raises sqlite3.Error."""
        self._base.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            with suppress(sqlite3.Error):
                self._base.execute("ROLLBACK")
            raise
        self._base.execute("COMMIT")

    def save_place(self, name: str, place: Place) -> None:
        """Keep where a source stands."""
        self._base.execute(
            "INSERT OR REPLACE INTO source VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                _text(name),
                place.device,
                _signed(place.inode),
                place.offset,
                place.head,
                place.tail,
                place.modified,
                place.made_by,
                place.state,
            ),
        )

    def save_memory(self, name: str, stream: str | None, data: Mapping[str, Any]) -> None:
        """Keep what was told of a stream."""
        self._base.execute(
            "INSERT OR REPLACE INTO memory VALUES (?, ?, ?)",
            (_text(name), json.dumps(stream), json.dumps(data)),
        )

    def add_event(self, event_id: str, data: str) -> None:
        """Keep an event that is not printed yet; one that is known stays as it is."""
        self._base.execute(
            "INSERT OR IGNORE INTO event (id, data, printed) VALUES (?, ?, 0)", (event_id, data)
        )

    def printed(self, event_ids: list[str]) -> None:
        """Note that these events were printed; old ones are dropped."""
        marks = [(event_id,) for event_id in event_ids]
        self._base.executemany("UPDATE event SET printed = 1 WHERE id = ?", marks)
        self._base.execute(
            "DELETE FROM event WHERE printed = 1 AND number <= (SELECT max(number) FROM event) - ?",
            (KEPT_EVENTS,),
        )

    def add_delivery(self, channel: str, event_id: str, data: str) -> None:
        """Keep what is to be sent until `delivered`."""
        self._base.execute(
            "INSERT OR IGNORE INTO delivery (channel, id, data) VALUES (?, ?, ?)",
            (channel, event_id, data),
        )

    def delivered(self, channel: str, event_id: str) -> None:
        """Forget what was sent, or given up."""
        self._base.execute("DELETE FROM delivery WHERE channel = ? AND id = ?", (channel, event_id))

    # -- reading

    def place(self, name: str) -> Place | None:
        """Return where a source stood."""
        row = self._base.execute(
            "SELECT device, inode, offset, head, tail, modified, made_by, state "
            "FROM source WHERE name = ?",
            (_text(name),),
        ).fetchone()
        return Place(row[0], _unsigned(row[1]), *row[2:]) if row else None

    def memories(self, name: str) -> dict[str | None, dict[str, Any]]:
        """Return what was told of each stream of a source."""
        rows = self._base.execute("SELECT stream, data FROM memory WHERE name = ?", (_text(name),))
        return {json.loads(stream): json.loads(data) for stream, data in rows}

    def unprinted(self) -> list[tuple[str, str]]:
        """Return (id, data) of the events that may not have been printed, in order."""
        rows = self._base.execute("SELECT id, data FROM event WHERE printed = 0 ORDER BY number")
        return [(row[0], row[1]) for row in rows]

    def undelivered(self, channel: str) -> list[tuple[str, str]]:
        """Return (id, data) of what is still to be sent, in order."""
        rows = self._base.execute(
            "SELECT id, data FROM delivery WHERE channel = ? ORDER BY number", (channel,)
        )
        return [(row[0], row[1]) for row in rows]

    def close(self) -> None:
        """Write all and let go of the folder."""
        with suppress(sqlite3.Error):
            self._base.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        with suppress(sqlite3.Error):
            self._base.close()
        with suppress(OSError):
            os.close(self._lock)


def _connect(path: Path) -> sqlite3.Connection:
    base = sqlite3.connect(path, isolation_level=None, timeout=5.0)
    try:
        base.execute("PRAGMA journal_mode = WAL")
        base.execute("PRAGMA synchronous = NORMAL")
        version = base.execute("PRAGMA user_version").fetchone()[0]
        if version not in (0, SCHEMA):
            for table in ("source", "memory", "event", "delivery"):
                base.execute(f"DROP TABLE IF EXISTS {table}")
        base.executescript(_TABLES)
        base.execute(f"PRAGMA user_version = {SCHEMA}")
        os.chmod(path, 0o600)
    except BaseException:
        base.close()
        raise
    return base


def _text(name: str) -> str:
    """Names of files may hold bytes that are no text; SQLite wants text."""
    return json.dumps(name)


def _signed(number: int) -> int:
    return number - (1 << 64) if number >= 1 << 63 else number


def _unsigned(number: int) -> int:
    return number + (1 << 64) if number < 0 else number
