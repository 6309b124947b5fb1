"""Chunks made in a thread come whole, in order, and with what went wrong."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from loopdetect.source.files import AT_ONCE, ahead
from loopdetect.source.overlap import HELD, overlapped


def numbered(count: int) -> Iterator[bytes]:
    for number in range(count):
        yield str(number).encode()


@pytest.mark.parametrize("count", [0, 1, HELD, 500])
def test_chunks_come_in_order(count: int) -> None:
    assert list(overlapped(numbered(count))) == list(numbered(count))


@pytest.mark.parametrize("count", [0, 1, AT_ONCE, AT_ONCE + 1, 100])
def test_a_short_source_needs_no_thread(count: int) -> None:
    before = threading.active_count()
    chunks = ahead(numbered(count))
    found = []
    for chunk in chunks:
        found.append(chunk)
        if len(found) <= AT_ONCE:
            assert threading.active_count() == before
    assert found == list(numbered(count))
    assert threading.active_count() == before


def test_what_goes_wrong_comes_after_what_was_good() -> None:
    def broken() -> Iterator[bytes]:
        yield from numbered(30)
        raise ValueError("damaged")

    chunks = overlapped(broken())
    assert [next(chunks) for _ in range(30)] == list(numbered(30))
    with pytest.raises(ValueError, match="damaged"):
        next(chunks)


def test_a_reader_that_leaves_ends_the_thread() -> None:
    before = threading.active_count()
    chunks = overlapped(numbered(10_000))
    assert next(chunks) == b"0"
    assert threading.active_count() == before + 1
    chunks.close()  # type: ignore[attr-defined]
    assert threading.active_count() == before
