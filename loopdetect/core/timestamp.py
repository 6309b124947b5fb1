"""Times in logs: every shape the servers and collectors print, as seconds on the log's own clock.

A zone is dropped on purpose: a log has one clock, and only differences on it are used. A time
without a year lives in the frame of the year 2000; a time of day alone in the frame of one day.
`Clock` puts all times of a stream into the frame of its first one and carries them over midnight
and New Year.
"""

from __future__ import annotations

import re
from calendar import timegm
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache
from typing import Final

YEARLESS: Final = 2000
KEPT: Final = 256
KEPT_WIDTH: Final = 48
DAY: Final = 86400.0
# TAI64N counts from 2^62 and was 10 s ahead of UTC when that count began; s6 and daemontools keep it so.
TAI_EPOCH: Final = 2**62 + 10
# The journal names months in the language of whoever reads it; which language, no line says.
MONTHS: Final = {
    name: number
    for number, names in enumerate(
        (
            "jan janv ene gen янв sty oca led tammi", "feb févr fev фев lut şub úno helmi",
            "mar mär mars mrt мар bře maalis", "apr avr avril abr апр kwi nis dub huhti",
            "may mai mag mei maj май мая kvě touko", "jun juin giu июн cze haz kesä",
            "jul juil lug июл lip tem čec heinä", "aug août ago авг sie ağu srp elo",
            "sep sept set сен wrz eyl zář syys", "oct okt ott out окт paź eki říj loka",
            "nov ноя lis kas marras", "dec dez déc dic дек gru ara pro joulu",
        ),
        1,
    )
    for name in names.split()
}  # fmt: skip


class Frame(IntEnum):
    """How much of a date a time carries."""

    DAY_TIME = 0
    YEARLESS = 1
    FULL = 2


# What a report calls the clock that its times are on.
CLOCKS: Final = {Frame.FULL: "wall", Frame.YEARLESS: "wall-no-year", Frame.DAY_TIME: "time-of-day"}


@dataclass(frozen=True, slots=True)
class Stamp:
    """A time as printed: seconds within its frame."""

    seconds: float
    frame: Frame


_HMS: Final = r"(?P<h>[0-2]?\d):(?P<mi>[0-5]\d):(?P<s>[0-6]\d)(?:[.,:](?P<f>\d{1,9}))?"
_SHAPES: Final = tuple(
    re.compile(shape)
    for shape in (
        rf"(?P<y>\d{{4}})[-/](?P<mo>\d\d)[-/](?P<d>\d\d)(?: - |[ T_-]){_HMS}",
        rf"(?P<mo>\d{{1,2}})/(?P<d>\d{{1,2}})/(?P<y>\d{{4}})(?:, |[- ]){_HMS}(?: (?P<half>[AP])M\b)?",
        rf"(?P<mon>[A-Z][a-z]{{2}}) (?P<d>\d{{1,2}}), (?P<y>\d{{4}}) @ {_HMS}",
        rf"(?P<mo>\d\d)-(?P<d>\d\d) {_HMS}",
        rf"(?:[A-Z][a-z]{{2}},? )?(?P<d>\d{{1,2}}) (?P<mon>[A-Z][a-z]{{2}}) (?P<y>\d{{4}}) {_HMS}",
        rf"(?:[A-Z][a-z]{{2}} )?(?P<mon>[A-Z][a-z]{{2}}) +(?P<d>\d{{1,2}}) {_HMS}(?: (?P<y>\d{{4}}))?",
        rf"(?:(?P<mon>[^\W\d_]{{3,6}})\.?|\ ?(?P<mo>1?\d)[月월]) +(?P<d>\d{{1,2}}) {_HMS}",
        rf"(?P<mo>[01]\d)(?P<d>[0-3]\d) {_HMS}",
        r"(?P<tai>4[0-9a-f]{15})[0-9a-f]{8}",
        r"(?P<epoch>1[4-9]\d{8}|2\d{9})(?:\.(?P<f>\d{1,9}))?(?!\d)",
        rf"{_HMS}(?: (?P<half>[AP])M\b)?",
    )
)


def parse(text: str) -> Stamp | None:
    """Read the time at the start of `text`, or None."""
    return _read_again(text) if len(text) <= KEPT_WIDTH else _read(text)


def _read(text: str) -> Stamp | None:
    for shape in _SHAPES:
        match = shape.match(text)
        if match:
            return _stamp(match.groupdict())
    return None


# Lines that follow each other often carry the same second.
_read_again: Final = lru_cache(maxsize=KEPT)(_read)


def _stamp(g: dict[str, str | None]) -> Stamp | None:
    fraction = float(f"0.{g['f']}") if g.get("f") else 0.0
    if g.get("tai"):
        return Stamp(float(int(str(g["tai"]), 16) - TAI_EPOCH), Frame.FULL)
    if g.get("epoch"):
        return Stamp(int(g["epoch"] or 0) + fraction, Frame.FULL)
    hour, minute, second = int(g["h"] or 0), int(g["mi"] or 0), int(g["s"] or 0)
    if g.get("half"):
        hour = hour % 12 + (12 if g["half"] == "P" else 0)
    if hour > 23:
        return None
    of_day = hour * 3600 + minute * 60 + second + fraction
    if not g.get("d"):
        return Stamp(of_day, Frame.DAY_TIME)
    month = MONTHS.get(str(g["mon"]).lower(), 0) if g.get("mon") else int(g["mo"] or 0)
    day = int(g["d"] or 0)
    if not 1 <= month <= 12 or not 1 <= day <= 31:
        return None
    year = int(g["y"] or 0) if g.get("y") else YEARLESS
    frame = Frame.FULL if g.get("y") else Frame.YEARLESS
    return Stamp(timegm((year, month, day, 0, 0, 0)) + of_day, frame)


class Clock:
    """Turns the stamps of one stream into seconds that only go on.

    The first stamp sets the frame. A stamp with more of a date is cut down to the frame, one with
    less is completed from the last time. A fall by more than half the frame's period is a rollover.
    """

    __slots__ = ("frame", "last", "shift")

    def __init__(self) -> None:
        self.frame: Frame | None = None
        self.last: float | None = None
        self.shift = 0.0

    def seconds(self, stamp: Stamp) -> float:
        """Return the time of `stamp` on this clock."""
        if self.frame is None:
            self.frame = stamp.frame
        value = self._framed(stamp)
        if self.frame is not Frame.FULL and self.last is not None:
            period = DAY if self.frame is Frame.DAY_TIME else 366 * DAY
            while value + self.shift < self.last - period / 2:
                self.shift += period
            value += self.shift
            if value > self.last + period / 2 and self.shift >= period:
                value -= period
                return value
        self.last = value if self.last is None else max(self.last, value)
        return value

    def now(self, seconds: float) -> float:
        """Put a wall-clock time (seconds since 1970) on this clock."""
        if self.frame in (None, Frame.FULL):
            return seconds
        saved = (self.last, self.shift)
        value = self.seconds(Stamp(seconds, Frame.FULL))
        self.last, self.shift = saved
        return value

    def _framed(self, stamp: Stamp) -> float:
        if stamp.frame is self.frame:
            return stamp.seconds
        if self.frame is Frame.DAY_TIME:
            return stamp.seconds % DAY
        if stamp.frame is Frame.DAY_TIME:
            base = self.last if self.last is not None else 0.0
            midnight = base - base % DAY
            value = midnight + stamp.seconds
            return value + DAY if value < base - DAY / 2 else value
        _, month, day = _date(stamp.seconds)
        of_day = stamp.seconds % DAY
        if self.frame is Frame.YEARLESS:
            return timegm((YEARLESS, month, day, 0, 0, 0)) + of_day
        last_year = _date(self.last or 0.0)[0]
        value = timegm((last_year, month, day, 0, 0, 0)) + of_day
        if self.last is not None and value < self.last - 183 * DAY:
            value = timegm((last_year + 1, month, day, 0, 0, 0)) + of_day
        return value


def _date(seconds: float) -> tuple[int, int, int]:
    from time import gmtime

    t = gmtime(seconds)
    return t.tm_year, t.tm_mon, t.tm_mday
