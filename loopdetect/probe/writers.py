"""Who has the log open: the process that wrote what it holds, or one that was started since?"""

from __future__ import annotations

import os
import time
from typing import Final

from loopdetect.core.fusion import Writer

PROC: Final = "/proc"
# The kernel counts starts in hundredths of a second.
TICK_S: Final = 0.02


def started_at(pid: int) -> float | None:
    """Return when the process was started, in seconds since 1970; None where that is not known."""
    try:
        with open(f"{PROC}/{pid}/stat", "rb") as file:
            ticks = int(file.read().rpartition(b")")[2].split()[19])
        since_boot = ticks / os.sysconf("SC_CLK_TCK")
        return time.time() - (time.clock_gettime(time.CLOCK_BOOTTIME) - since_boot)
    except (OSError, ValueError, IndexError, AttributeError):
        return None


def writer_of(path: str, modified: float) -> Writer:
    """Return whether a process that can have written the log at `modified` still has it open.

    Processes of other users and other containers are not seen, so none means nothing.
    """
    try:
        wanted = os.stat(path)
        pids = [int(name) for name in os.listdir(PROC) if name.isdigit()]
    except OSError:
        return Writer.UNKNOWN
    starts = [
        started
        for pid in pids
        if pid != os.getpid() and _writes(pid, (wanted.st_dev, wanted.st_ino))
        if (started := started_at(pid)) is not None
    ]
    if not starts:
        return Writer.UNKNOWN
    return writer_by_start(min(starts), modified)


def writer_by_start(started: float, modified: float) -> Writer:
    """Return whether a process that was started then can have written the log at `modified`."""
    return Writer.SAME if started <= modified + TICK_S else Writer.NEWER


def _writes(pid: int, wanted: tuple[int, int]) -> bool:
    folder = f"{PROC}/{pid}/fd"
    try:
        names = os.listdir(folder)
    except OSError:
        return False
    for name in names:
        try:
            found = os.stat(f"{folder}/{name}")
            if (found.st_dev, found.st_ino) == wanted and os.lstat(
                f"{folder}/{name}"
            ).st_mode & 0o200:
                return True
        except OSError:
            continue
    return False
