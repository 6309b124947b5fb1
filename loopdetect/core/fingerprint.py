"""What makes two things the same: masked text, and a short hash of it."""

from __future__ import annotations

import re
from typing import Final

_MASKS: Final = (
    (re.compile(r"0x[0-9a-fA-F]+"), "<hex>"),
    (re.compile(r"\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b"), "<uuid>"),
    (re.compile(r"\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{8,}\b"), "<id>"),
    (re.compile(r"(?:/[\w.@+-]+){2,}/?"), "<path>"),
    (re.compile(r"\d+(?:[.,:]\d+)*"), "<n>"),
    (re.compile(r"\s+"), " "),
)


def mask(text: str) -> str:
    """Replace what differs from start to start: numbers, addresses, ids, paths."""
    for pattern, word in _MASKS:
        text = pattern.sub(word, text)
    return text.strip()[:400]


def fingerprint(reason: str, text: str) -> str:
    """Return a short hash of a failure's reason and masked text, for grouping and baselines."""
    from hashlib import blake2b  # OpenSSL comes with it; a log without a failure needs neither

    return blake2b(f"{reason} {mask(text)}".encode("utf-8", "replace"), digest_size=6).hexdigest()


def kinship(reason: str, text: str) -> str:
    """Return what two runs share when they fail the same way.

    A reason of the closed list decides by itself, since one fault is worded differently from start
    to start. Only reasons that say little are told apart by their text.
    """
    return f"{reason} {mask(text)}" if reason in VAGUE else reason


VAGUE: Final = frozenset({"python-exception", "unknown", "app-start-failed", "abort"})
