"""Times on a log's own clock, with no more of a date than the log prints."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Final

from loopdetect.render.duration import NONE

# Report.clock -> ISO 8601 (a missing year or date is left out), and the same for people.
_ISO: Final = MappingProxyType({"wall-no-year": "--%m-%dT%H:%M:%S", "time-of-day": "T%H:%M:%S"})
_READABLE: Final = MappingProxyType({"wall-no-year": "%m-%d %H:%M:%S", "time-of-day": "%H:%M:%S"})


def _moment(seconds: float | None) -> datetime | None:
    if seconds is None:
        return None
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, OSError, ValueError):
        return None


def _since_start(moment: datetime) -> str:
    """A clock that counts from the start has no date; its hours go on past 23."""
    seconds = int(moment.timestamp())
    return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"


def iso(seconds: float | None, clock: str | None = None) -> str | None:
    """Return `YYYY-MM-DDTHH:MM:SS[.fff]`; no zone, and no year or date that the log lacks."""
    moment = _moment(seconds)
    if moment is None:
        return None
    if clock == "uptime":
        return f"T{_since_start(moment)}"
    fraction = f".{moment.microsecond // 1000:03d}" if moment.microsecond >= 1000 else ""
    return moment.strftime(_ISO.get(clock or "", "%Y-%m-%dT%H:%M:%S")) + fraction


def readable(seconds: float | None, clock: str | None = None) -> str | None:
    """Return `YYYY-MM-DD HH:MM:SS`, without a year or date that the log lacks."""
    moment = _moment(seconds)
    if clock == "uptime" and moment is not None:
        return f"+{_since_start(moment)}"
    form = _READABLE.get(clock or "", "%Y-%m-%d %H:%M:%S")
    return moment.strftime(form) if moment else None


def column(times: Iterable[float | None]) -> list[str]:
    """Return times for one table column; the date is shown only where it tells something."""
    moments = [_moment(time) for time in times]
    days = {moment.date() for moment in moments if moment}
    form = "%H:%M:%S" if len(days) < 2 else "%m-%d %H:%M:%S"
    return [moment.strftime(form) if moment else NONE for moment in moments]
