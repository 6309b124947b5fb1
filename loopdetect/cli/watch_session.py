"""One call of `loopdetect watch`: built from its options, run until it is told to stop."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from types import FrameType
from typing import TYPE_CHECKING, Final

from loopdetect.cli import library
from loopdetect.cli.complaint import complain
from loopdetect.cli.exit_codes import ExitCode
from loopdetect.cli.output import Destination, destination, write
from loopdetect.cli.watch_output import LineOutput
from loopdetect.cli.watch_rows import lines, table
from loopdetect.cli.watch_teller import Output, Teller, raise_file_limit, service_notice
from loopdetect.errors import LoopdetectError
from loopdetect.follow.bell import Bell, ReaderGone
from loopdetect.follow.happened import Manner
from loopdetect.follow.lines import json_line, text_line
from loopdetect.follow.source import Reading
from loopdetect.follow.targets import Targets, sort_out
from loopdetect.follow.watcher import Watcher
from loopdetect.metrics.board import Board
from loopdetect.model import Policy
from loopdetect.render import RenderOptions, renderer
from loopdetect.render.paint import BOLD, STATE_COLORS, painter

if TYPE_CHECKING:
    from loopdetect.alert.channel import Channel
    from loopdetect.metrics.families import Families
    from loopdetect.state.store import Store

ENDING: Final = {
    signal.SIGTERM: ExitCode.TERMINATED,
    signal.SIGINT: ExitCode.INTERRUPTED,
}
METRICS_EVERY: Final = 5.0
# Open files besides the followed ones.
SPARE_FILES: Final = 200
FILES_WANTED: Final = 20_000
LAST_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True)
class Request:
    """What the command line asks for; times in seconds."""

    logs: tuple[str, ...]
    form: str
    output: str | None
    color: str
    once: bool
    poll: bool
    profiles: tuple[str, ...]
    policy: Policy
    manner: Manner
    on_change: str | None
    action_limit: float
    webhook: str | None
    secret_env: str
    metrics: str | None
    metrics_file: str | None
    state_dir: str | None
    quiet: bool


@dataclass(slots=True)
class Asked:
    """What signals have asked for."""

    ending: ExitCode | None = None
    reload: bool = False


def warn(text: str) -> None:
    """Say something on standard error that is no reason to stop."""
    complain(text, word="warning")


def once(request: Request) -> int:
    """Print the current state of every source."""
    raise_file_limit(FILES_WANTED + SPARE_FILES)
    target = destination(request.output, request.color)
    watcher, board, missing = _look_once(request)
    rows = board.rows()
    if request.form == "jsonl":
        reports = [row.report for row in rows]
        write(renderer("jsonl")(reports, RenderOptions()), target)
    elif rows:
        write(_plain_table(board, target), target)
    watcher.close()
    return ExitCode.UNABLE if missing else ExitCode.OK


def _look_once(request: Request) -> tuple[Watcher, Board, bool]:
    targets = sort_out(request.logs)
    for path in targets.absent():
        complain(f"{path}: no such file", "check the path")
    for place in targets.empty():
        complain(f"{place}: no log is there", "check the path")
    missing = bool(targets.absent() or targets.empty())
    targets = replace(targets, paths=tuple(p for p in targets.paths if p not in targets.absent()))
    board = Board()
    teller = Teller(board, _Silent(), say=warn)
    watcher = Watcher(targets, _reading(request), teller, bell=Bell(), say=warn)
    watcher.begin(following=False)
    refused = {name for name, followed in watcher.sources.items() if followed.refused}
    for name in refused:
        board.drop(name)
    return watcher, board, missing or bool(refused)


def _plain_table(board: Board, target: Destination) -> str:
    paint = painter(target.color)
    out = [
        paint(line, BOLD if state is None else STATE_COLORS[state])
        for line, state in lines(table(board.rows()), target.width)
    ]
    return "\n".join(out) + "\n"


class _Silent:
    """An output that writes nothing."""

    def write(self, events: object) -> None:
        """Write nothing."""

    def written(self, event: object) -> bool:
        """Nothing was."""
        return False

    def close(self) -> None:
        """Nothing to close."""


# -- following


def follow(request: Request) -> int:
    """Follow the sources until a signal comes, or every pipe has ended."""
    raise_file_limit(FILES_WANTED + SPARE_FILES)
    asked = Asked()
    bell = Bell()
    with contextlib.ExitStack() as stack:
        stack.callback(bell.close)
        stack.enter_context(_signals(asked, bell))
        reading = _reading(request)
        targets = sort_out(request.logs)
        _say_what_is_missing(targets)
        store = _store(request)
        if store is not None:
            stack.callback(store.close)
        else:
            reading = replace(reading, salt=f"{time.time_ns():x}")
        board = Board()
        channels = _channels(request)
        metrics = _metrics(request, board, reading, stack)
        output, refresh = _output(request, board)
        if isinstance(output, LineOutput) and request.output is None:
            bell.mind(sys.stdout.fileno())
        rounds = [refresh, metrics, _Heartbeat()]
        teller = Teller(
            board,
            output,
            store=store,
            channels=channels,
            say=warn,
            on_round=[each for each in rounds if each is not None],
        )
        watcher = Watcher(targets, reading, teller, bell=bell, say=warn, events=not request.poll)
        return _run(request, watcher, teller, asked)


def _run(request: Request, watcher: Watcher, teller: Teller, asked: Asked) -> int:
    gone = False
    try:
        teller.begin()
        watcher.begin()
        service_notice("READY=1")
        while asked.ending is None and not watcher.over:
            watcher.step()
            if asked.reload:
                asked.reload = False
                _reload(request, watcher)
    except (ReaderGone, BrokenPipeError):
        gone = True
    finally:
        service_notice("STOPPING=1")
        gone = _finish(watcher, teller) or gone
    if gone:
        raise BrokenPipeError
    return asked.ending or ExitCode.OK


def _finish(watcher: Watcher, teller: Teller) -> bool:
    """Tell what is left and save the state; True when the reader has gone."""
    gone = False
    try:
        watcher.stop()
    except BrokenPipeError:
        gone = True
    with contextlib.suppress(BrokenPipeError):
        teller.swept(time.time())
        teller.close(LAST_SECONDS)
    return gone


def _reload(request: Request, watcher: Watcher) -> None:
    service_notice(f"RELOADING=1\nMONOTONIC_USEC={time.monotonic_ns() // 1000}")
    try:
        reading = replace(_reading(request), salt=watcher.reading.salt)
    except LoopdetectError as problem:
        hint = "the profiles that were in force stay so"
        complain(f"after SIGHUP: {problem}", hint, word="warning")
    else:
        watcher.reload(reading)
    service_notice("READY=1")


@contextlib.contextmanager
def _signals(asked: Asked, bell: Bell) -> Iterator[None]:
    def end(number: int, frame: FrameType | None) -> None:
        asked.ending = ENDING[signal.Signals(number)]
        bell.ring()

    def reload(number: int, frame: FrameType | None) -> None:
        asked.reload = True
        bell.ring()

    handlers = {signal.SIGTERM: end, signal.SIGINT: end, signal.SIGHUP: reload}
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


# -- the parts


def _reading(request: Request) -> Reading:
    known, forced = library.load(request.profiles)
    return Reading(known, forced, request.policy, request.manner)


def _store(request: Request) -> Store | None:
    if request.state_dir is None:
        return None
    from pathlib import Path

    from loopdetect.state.store import Store

    return Store(Path(request.state_dir))


def _say_what_is_missing(targets: Targets) -> None:
    for path in targets.absent():
        warn(f"{path}: not there yet; waiting for it")
    for place in targets.empty():
        warn(f"{place}: no log is there yet; waiting for one")


def _output(request: Request, board: Board) -> tuple[Output, Callable[[float], None] | None]:
    target = destination(request.output, request.color)
    form = request.form
    if form == "auto":
        live = target.width is not None and os.environ.get("TERM") != "dumb"
        form = "table" if live else "text"
    if form == "table":
        from loopdetect.cli.watch_table import LiveTable

        shown = LiveTable(board, color=target.color, quiet=request.quiet)
        return shown, lambda now: shown.refresh(changed=True)
    if form == "jsonl":
        return LineOutput(json_line, target.path, quiet=request.quiet), None
    line = lambda event: text_line(event, color=target.color)  # noqa: E731
    return LineOutput(line, target.path, quiet=request.quiet), None


def _channels(request: Request) -> list[Channel]:
    from loopdetect.alert.channel import Channel

    channels = []
    if request.on_change:
        from loopdetect.alert.command import Command

        channels.append(Channel(Command(request.on_change, request.action_limit), warn))
    if request.webhook:
        from loopdetect.alert.webhook import Webhook

        secret = os.environ.get(request.secret_env)
        channels.append(Channel(Webhook(request.webhook, secret), warn))
    return channels


def _metrics(
    request: Request, board: Board, reading: Reading, stack: contextlib.ExitStack
) -> Callable[[float], None] | None:
    """Serve the metrics, and return what writes their file from time to time."""
    if request.metrics is None and request.metrics_file is None:
        return None
    from loopdetect.metrics.families import Families

    families = Families(board, reading.library.reasons)
    if request.metrics is not None:
        from loopdetect.metrics.serve import address, serve

        host, asked_port = address(request.metrics)
        port, stop = serve(host, asked_port, families)
        stack.callback(stop)
        shown = f"[{host}]" if ":" in host else host
        complain(f"metrics at http://{shown}:{port}/metrics", word="note")
    if request.metrics_file is None:
        return None
    writer = _MetricsFile(request.metrics_file, families)
    writer(0.0)
    stack.callback(writer, float("inf"))
    return writer


class _MetricsFile:
    """Writes the metrics for node_exporter's textfile collector; a problem is said once."""

    def __init__(self, path: str, families: Families) -> None:
        self._path = path
        self._families = families
        self._next = float("-inf")
        self._trouble = False

    def __call__(self, now: float) -> None:
        """Write the file if it is time."""
        if now < self._next:
            return
        self._next = now + METRICS_EVERY
        from loopdetect.metrics.families import exposition

        try:
            write(exposition(self._families), Destination(self._path, False))
            self._trouble = False
        except LoopdetectError as problem:
            if not self._trouble:
                warn(f"--metrics-file: {problem}")
            self._trouble = True


class _Heartbeat:
    """Tells systemd's watchdog that the loop turns."""

    def __init__(self) -> None:
        micros = os.environ.get("WATCHDOG_USEC", "")
        self._every = int(micros) / 2e6 if micros.isdecimal() else None
        self._next = 0.0

    def __call__(self, now: float) -> None:
        """Send a sign of life if it is time."""
        if self._every is not None and now >= self._next:
            self._next = now + self._every
            service_notice("WATCHDOG=1")
