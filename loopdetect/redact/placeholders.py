"""Placeholders: the same text always gets the same one, and it has the same shape."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from loopdetect.redact.rules import Sort


def _documentation_ip(number: int) -> str:
    """Blocks that no machine has: 192.0.2.0/24, 198.51.100.0/24, 203.0.113.0/24, 198.18.0.0/15."""
    for block in ("192.0.2", "198.51.100", "203.0.113"):
        if number <= 254:
            return f"{block}.{number}"
        number -= 254
    return f"198.{18 + number // 65536 % 2}.{number // 256 % 256}.{number % 256}"


_SHAPES: Final[Mapping[Sort, Callable[[int], str]]] = {
    Sort.KEY: lambda number: f"redacted-key-{number}",
    Sort.TOKEN: lambda number: f"redacted-token-{number}",
    Sort.EMAIL: lambda number: f"user-{number}@example.com",
    Sort.IP: _documentation_ip,
    Sort.HOST: lambda number: f"host-{number}",
    Sort.USER: lambda number: f"user-{number}",
}


class Placeholders:
    """Hands out placeholders, never one that `taken` says the log holds already."""

    def __init__(self, taken: Callable[[str], bool] = lambda text: False) -> None:
        self._taken = taken
        self._given: dict[tuple[Sort, str], str] = {}
        self._numbers: dict[str, int] = {}

    @property
    def counts(self) -> dict[Sort, int]:
        """How many different texts of each sort were replaced."""
        counts: dict[Sort, int] = {}
        for sort, _ in self._given:
            counts[sort] = counts.get(sort, 0) + 1
        return counts

    def of(self, sort: Sort, text: str) -> str:
        """Return the placeholder of a text."""
        given = self._given.get((sort, text))
        if given is None:
            given = self._given[sort, text] = self._next(sort, ":" in text)
        return given

    def _next(self, sort: Sort, colons: bool) -> str:
        wide = sort is Sort.IP and colons
        counter = "ipv6" if wide else sort.value
        while True:
            number = self._numbers[counter] = self._numbers.get(counter, 0) + 1
            made = f"2001:db8::{number:x}" if wide else _SHAPES[sort](number)
            if not self._taken(made):
                return made
