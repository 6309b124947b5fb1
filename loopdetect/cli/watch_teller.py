"""What a watch does with events: keep them, write them, act on them, count them."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from typing import Final, Protocol

from loopdetect.alert.channel import Channel
from loopdetect.alert.message import Message, message
from loopdetect.follow.freeze import maker
from loopdetect.follow.happened import Happened, Memory, What
from loopdetect.follow.rotated import Mark
from loopdetect.follow.source import Followed
from loopdetect.follow.tail import Tail
from loopdetect.follow.watcher import Saved
from loopdetect.metrics.board import Board
from loopdetect.model import Phase, State
from loopdetect.state.store import Place, Store

SAVE_FACTOR: Final = 50.0
TROUBLE: Final = frozenset({What.UNREADABLE})


class Output(Protocol):
    """Where events are written."""

    def write(self, events: Iterable[Happened]) -> None:
        """Write the events."""

    def written(self, event: Happened) -> bool:
        """True when it is known that the event was written before."""

    def close(self) -> None:
        """Nothing comes any more."""


class Teller:
    """The listener of a watch: first the store, then the output, then the channels."""

    def __init__(
        self,
        board: Board,
        output: Output,
        *,
        store: Store | None = None,
        channels: Sequence[Channel] = (),
        say: Callable[[str], None],
        on_round: Sequence[Callable[[float], None]] = (),
    ) -> None:
        self._board = board
        self._output = output
        self._store = store
        self._channels = tuple(channels)
        self._say = say
        self._on_round = tuple(on_round)
        self._troubles: set[str] = set()
        board.count_alerts(self._alerts)

    def begin(self) -> None:
        """Write and send what an earlier watcher could not."""
        if self._store is None:
            return
        left = [(key, _event(data)) for key, data in self._store.unprinted()]
        self._output.write(event for _, event in left if not self._output.written(event))
        self._kept(lambda store: store.printed([key for key, _ in left]))
        for channel in self._channels:
            for key, body in self._store.undelivered(channel.name):
                channel.put(Message(key, body))

    # -- the listener

    def happened(self, followed: Followed, events: list[Happened]) -> None:
        """Tell of one source's events."""
        self._board.put(followed.name, followed.reports, followed.grown_at)
        if not events:
            return
        reports = {report.stream: report for report in followed.reports}
        alarms = [
            message(event, reports.get(event.stream)) for event in events if event.alarm
        ] if self._channels else []  # fmt: skip
        self._kept(lambda store: self._save(store, followed, events, alarms))
        self._board.count(events)
        for event in events:
            if event.what in TROUBLE:
                self._say(f"{event.source}: {event.text}")
        self._output.write(events)
        self._kept(lambda store: store.printed([event.id for event in events]))
        for channel in self._channels:
            for alarm in alarms:
                channel.put(alarm)

    def forgot(self, name: str) -> None:
        """A source is followed no longer."""
        self._board.drop(name)

    def save(self, followed: Followed) -> None:
        """Keep where the reading of a source stands."""
        self._kept(lambda store: self._save(store, followed, [], [], place=True))

    def recall(self, name: str) -> Saved | None:
        """Return what an earlier watcher left of a source."""
        if self._store is None:
            return None
        place = self._store.place(name)
        memories = {
            stream: Memory.loaded(data) for stream, data in self._store.memories(name).items()
        }
        if place is None:
            return Saved(None, b"", memories) if memories else None
        mark = Mark(place.device, place.inode, place.offset, place.head, place.tail, place.modified)
        state = place.state if place.made_by == maker() else b""
        return Saved(mark, state, memories)

    def swept(self, now: float) -> None:
        """A round is over: note what was delivered, refresh what is shown."""
        for channel in self._channels:
            done = channel.done()
            if done:
                self._kept(lambda store, c=channel, d=done: _delivered(store, c.name, d))  # type: ignore[misc]
        for each in self._on_round:
            each(now)

    def close(self, seconds: float) -> None:
        """Let the channels finish; what they can't is kept for the next watcher."""
        left = sum(channel.close(seconds) for channel in self._channels)
        for channel in self._channels:
            done = channel.done()
            self._kept(lambda store, c=channel, d=done: _delivered(store, c.name, d))  # type: ignore[misc]
        if left:
            kept = "kept for the next watch" if self._store else "lost; --state-dir keeps them"
            self._say(f"{left} alarms could not be sent in time: {kept}")
        self._output.close()

    # -- keeping

    def _kept(self, write: Callable[[Store], None]) -> None:
        """Write to the store; a full disk is said once and does not stop the watching."""
        if self._store is None:
            return
        try:
            with self._store.together():
                write(self._store)
        except sqlite3.Error as problem:
            if str(problem) not in self._troubles:
                self._troubles.add(str(problem))
                self._say(f"--state-dir: cannot keep the state: {problem}; watching goes on")

    def _save(
        self,
        store: Store,
        followed: Followed,
        events: Iterable[Happened],
        alarms: Iterable[Message],
        *,
        place: bool = False,
    ) -> None:
        tail = followed.origin
        mark = tail.mark() if isinstance(tail, Tail) else None
        # A large state is not written with each event; what is read again is not told again.
        due = followed.saved_at + SAVE_FACTOR * followed.freeze_cost
        if not place and followed.judged_at < due:
            mark = None
        # Between reading and judging the two don't belong together: the place waits.
        state = followed.frozen() if mark is not None else None
        if mark is not None and state is not None:
            store.save_place(
                followed.name,
                Place(
                    mark.device, mark.inode, mark.offset, mark.head, mark.tail, mark.modified,
                    maker(), state,
                ),
            )  # fmt: skip
            followed.saved_at = max(followed.judged_at, followed.grown_at or 0.0)
        for stream, story in followed.stories.items():
            store.save_memory(followed.name, stream, story.memory.saved())
        for event in events:
            store.add_event(event.id, json.dumps(asdict(event)))
        for alarm in alarms:
            for channel in self._channels:
                store.add_delivery(channel.name, alarm.id, alarm.body)

    def _alerts(self) -> dict[tuple[str, str], int]:
        return {
            (channel.name.strip("-"), result): count
            for channel in self._channels
            for result, count in (("sent", channel.sent), ("failed", channel.failed))
        }


def _delivered(store: Store, channel: str, ids: Iterable[str]) -> None:
    for event_id in ids:
        store.delivered(channel, event_id)


def _event(data: str) -> Happened:
    raw = json.loads(data)
    raw["what"], raw["state"] = What(raw["what"]), State(raw["state"])
    raw["phase"] = Phase(raw["phase"])
    raw["previous"] = State(raw["previous"]) if raw["previous"] else None
    return Happened(**raw)


def raise_file_limit(wanted: int) -> None:
    """Let this process open as many files as it follows, as far as the system lets it."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < wanted:
        target = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (target, hard))


def service_notice(text: str) -> None:
    """Tell systemd, if it started this and wants to know (`Type=notify`)."""
    import socket

    place = os.environ.get("NOTIFY_SOCKET", "")
    if not place:
        return
    address = "\0" + place[1:] if place.startswith("@") else place
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as channel:
            channel.sendto(text.encode(), address)
    except OSError:
        return
