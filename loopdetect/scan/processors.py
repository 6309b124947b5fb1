"""How many processes pay off on this machine."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

CGROUP: Final = Path("/sys/fs/cgroup")
# What one log costs at least, how many bytes are read in a second, what a worker must be worth.
SECONDS_A_LOG: Final = 0.008
BYTES_A_SECOND: Final = 30_000_000
WORTH_SECONDS: Final = 0.25


def usable(cgroup: Path = CGROUP) -> int:
    """Return how many processors may be used: those of this process, within its container's limit."""
    count = (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )
    quota = _quota(cgroup)
    return count if quota is None else max(1, min(count, round(quota)))


def workers(logs: int, size: int, most: int) -> int:
    """Return how many of `most` workers pay off for so many logs and bytes."""
    seconds = SECONDS_A_LOG * logs + size / BYTES_A_SECOND
    return max(1, min(most, logs, int(seconds / WORTH_SECONDS)))


def _quota(cgroup: Path) -> float | None:
    """Return the container's limit in processors, None if there is none."""
    try:
        quota, period = (cgroup / "cpu.max").read_text("ascii").split()
    except (OSError, ValueError):
        try:
            quota = (cgroup / "cpu/cpu.cfs_quota_us").read_text("ascii").strip()
            period = (cgroup / "cpu/cpu.cfs_period_us").read_text("ascii").strip()
        except (OSError, ValueError):
            return None
    if not (quota.isdecimal() and period.isdecimal() and int(period)):
        return None
    return int(quota) / int(period)
