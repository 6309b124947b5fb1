"""Who reads the logs: this process, its workers, or a cluster; results in the order of paths."""

from __future__ import annotations

from contextlib import closing

from loopdetect.scan import processors
from loopdetect.scan.found import Logs
from loopdetect.scan.objects import is_address
from loopdetect.scan.order import in_turn, largest_first
from loopdetect.scan.outcome import Judged
from loopdetect.scan.work import Judge


def outcomes(logs: Logs, judge: Judge, jobs: int | None, cluster: str | None) -> Judged:
    """Yield what becomes of each log, by its index, in order; close it to end what reads.

    Raises LoopdetectError where nobody can begin to read.
    """
    workers = 1 if cluster else _workers(logs, jobs)
    if cluster is None and workers < 2:
        yield from ((index, judge(history)) for index, history in enumerate(logs.histories))
        return
    with closing(_spread(logs, judge, jobs, workers, cluster)) as done:
        yield from in_turn(done)


def _workers(logs: Logs, jobs: int | None) -> int:
    others = len(logs.histories) - len(logs.here)
    if jobs is not None:
        return min(jobs, others)
    return processors.workers(others, sum(logs.sizes), processors.usable())


def _spread(
    logs: Logs, judge: Judge, jobs: int | None, workers: int, cluster: str | None
) -> Judged:
    yield from ((index, judge(logs.histories[index])) for index in sorted(logs.here))
    tasks = (
        (index, logs.histories[index])
        for index in largest_first(logs.sizes, jobs or workers)
        if index not in logs.here
    )
    if cluster is not None:
        from loopdetect.scan.cluster import judged

        yield from judged(tasks, judge, cluster, jobs)
    else:
        from loopdetect.scan import local

        remote = any(is_address(history.name) for history in logs.histories)
        yield from local.judged(tasks, judge, workers, local.start_method(remote))
