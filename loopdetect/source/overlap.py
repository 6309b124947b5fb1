"""Making chunks in a thread while the ones before are read: unpacking and searching overlap."""

from __future__ import annotations

from collections.abc import Iterator
from queue import Full, Queue
from threading import Event, Thread
from typing import Final

HELD: Final = 4
PATIENCE: Final = 0.1


def overlapped(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Yield `chunks`, at most a few of which are held; raises what making them raises."""
    made: Queue[bytes | BaseException | None] = Queue(HELD)
    unwanted = Event()

    def put(piece: bytes | BaseException | None) -> bool:
        while not unwanted.is_set():
            try:
                made.put(piece, timeout=PATIENCE)
            except Full:
                continue
            return True
        return False

    def make() -> None:
        end: BaseException | None = None
        try:
            for chunk in chunks:
                if not put(chunk):
                    return
        except BaseException as problem:
            end = problem
        put(end)

    maker = Thread(target=make, name="unpack", daemon=True)
    maker.start()
    try:
        while (piece := made.get()) is not None:
            if isinstance(piece, BaseException):
                raise piece
            yield piece
    finally:
        unwanted.set()
        maker.join()
