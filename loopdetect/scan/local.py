"""Logs judged in processes of this machine.

Each worker has a pipe of its own, by which it is given one log at a time. So it is known which log
a worker was reading when it died: that log counts as unreadable, and a new worker goes on.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, Final

from loopdetect.errors import LoopdetectError
from loopdetect.scan.outcome import Judged, Outcome, Trouble
from loopdetect.scan.work import Judge, parcel
from loopdetect.source.histories import History

Task = tuple[int, History]
HELD_BACK: Final = (signal.SIGINT, signal.SIGTERM)


@dataclass(slots=True, eq=False)
class _Worker:
    process: BaseProcess
    channel: Connection
    task: Task | None = None
    ready: bool = False


def start_method(remote: bool) -> str:
    """Return how workers begin: a fork shares what is loaded, but no connection survives it."""
    return "fork" if sys.platform == "linux" and not remote else "spawn"


def judged(tasks: Iterator[Task], judge: Judge, workers: int, method: str) -> Judged:
    """Yield what becomes of each task as it is done; raises LoopdetectError if no worker begins.

    Closing the generator ends the workers at once.
    """
    pool = _Pool(judge, method)
    try:
        for _ in range(workers):
            pool.start()
        while pool.workers:
            for worker in pool.speaking():
                done = pool.listen(worker)
                pool.give(worker, tasks)
                if done is not None:
                    yield done
    finally:
        pool.end()


class _Pool:
    def __init__(self, judge: Judge, method: str) -> None:
        self._context: Any = get_context(method)
        # A forked worker has the judge already; another interpreter must make its own.
        self._begin = (lambda: judge) if method == "fork" else parcel(judge).judge
        self._forks = method == "fork"
        self.workers: list[_Worker] = []

    def start(self) -> None:
        """Start a worker. A signal that comes meanwhile is ours, not the worker's."""
        ours, theirs = self._context.Pipe()
        inherited = [ours, *(w.channel for w in self.workers)] if self._forks else []
        process = self._context.Process(
            target=_work, args=(theirs, inherited, self._begin), daemon=True
        )
        signal.pthread_sigmask(signal.SIG_BLOCK, HELD_BACK)
        try:
            process.start()
            self.workers.append(_Worker(process, ours))
        except OSError as problem:
            raise LoopdetectError(
                f"cannot start a worker: {problem.strerror}", "give fewer --jobs"
            ) from problem
        finally:
            theirs.close()
            signal.pthread_sigmask(signal.SIG_UNBLOCK, HELD_BACK)

    def speaking(self) -> list[_Worker]:
        """Wait, and return the workers that have said something or are gone."""
        channels = set(map(id, wait([worker.channel for worker in self.workers])))
        return [worker for worker in self.workers if id(worker.channel) in channels]

    def listen(self, worker: _Worker) -> tuple[int, Outcome] | None:
        """Return what became of the worker's log, None if it had none."""
        task, worker.task = worker.task, None
        try:
            said = worker.channel.recv()
        except (EOFError, OSError):
            self._buried(worker)
            if task is None:
                return None
            self.start()
            return task[0], Outcome(None, (_died(task[1], worker.process.exitcode),))
        if isinstance(said, Trouble):
            raise LoopdetectError(f"a worker cannot begin: {said.text}", said.hint)
        worker.ready = True
        return (task[0], said) if task is not None else None

    def give(self, worker: _Worker, tasks: Iterator[Task]) -> None:
        """Give the worker its next log, or send it home if there is none."""
        if worker not in self.workers:
            return
        worker.task = next(tasks, None)
        with suppress(OSError):  # gone by now: that is seen when it is listened to
            worker.channel.send(worker.task[1] if worker.task else None)
        if worker.task is None:
            self._buried(worker)

    def _buried(self, worker: _Worker) -> None:
        worker.channel.close()
        worker.process.join()
        self.workers.remove(worker)
        if not worker.ready:
            raise LoopdetectError(
                f"a worker ended before it began ({_ending(worker.process.exitcode)})",
                "give --jobs 1 to read in one process",
            )

    def end(self) -> None:
        """End every worker at once; none has anything to lose."""
        for worker in self.workers:
            worker.process.kill()
        for worker in self.workers:
            worker.process.join()
            worker.channel.close()
        self.workers = []


def _died(history: History, code: int | None) -> Trouble:
    return Trouble(
        f"{history.name}: the process that read it ended ({_ending(code)}), out of memory perhaps",
        "read it alone: loopdetect inspect FILE, or give fewer --jobs",
    )


def _ending(code: int | None) -> str:
    if code is None or code >= 0:
        return f"exit code {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"


def _work(channel: Connection, inherited: list[Connection], begin: Callable[[], Judge]) -> None:
    """Judge what comes through the pipe until it ends: the life of a worker."""
    # Ctrl-C goes to the whole group; who ends the workers is the process that started them.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, HELD_BACK)
    # Ends of pipes that are held here too would hide that the process that started us is gone.
    for other in inherited:
        other.close()
    try:
        try:
            judge = begin()
        except Exception as problem:
            channel.send(Trouble(str(problem), getattr(problem, "hint", None)))
            return
        channel.send(None)
        while (history := channel.recv()) is not None:
            channel.send(judge(history))
    except (EOFError, OSError):
        return
