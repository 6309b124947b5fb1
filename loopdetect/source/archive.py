"""Compressed logs: which format it is, and its bytes in pieces of bounded size.

Every format is told by its first bytes, never by its name. A file may hold several members one
after the other, as rotated logs that were appended to each other do.
"""

from __future__ import annotations

import importlib
import struct
import zlib
from collections.abc import Callable, Iterator
from typing import Any, Final, Protocol, cast

from loopdetect.errors import SourceError

PIECE: Final = 1 << 20
DEFLATE_SLICE: Final = 1 << 17
# A zstd member can grow 30 000 times and its decoder knows no limit, so it gets little at once.
ZSTD_SLICE: Final = 1 << 10

MAGIC: Final = {
    b"\x1f\x8b": "gzip",
    b"\xfd7zXZ\x00": "xz",
    b"BZh": "bzip2",
    b"\x28\xb5\x2f\xfd": "zstd",
}


class Broken(Exception):
    """The compressed data is damaged or ends too soon."""


class Member(Protocol):
    """One compressed member that is being read."""

    @property
    def eof(self) -> bool:
        """True once the member's end was read."""

    @property
    def rest(self) -> bytes:
        """What followed the member's end in the data given so far."""

    def expand(self, data: bytes) -> Iterator[bytes]:
        """Yield what `data` holds, in pieces."""


class _Sliced:
    """A decoder that is given a little at once, and so knows only a part of what followed."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self._rest = b""

    @property
    def eof(self) -> bool:
        return bool(self._inner.eof)

    @property
    def rest(self) -> bytes:
        return self._rest


class _Deflate(_Sliced):
    def __init__(self) -> None:
        super().__init__(_zlib().decompressobj(wbits=31))

    def expand(self, data: bytes) -> Iterator[bytes]:
        # What a call leaves over is copied: little at once copies little.
        for start in range(0, len(data), DEFLATE_SLICE):
            left = data[start : start + DEFLATE_SLICE]
            while True:
                piece = self._inner.decompress(left, PIECE)
                if piece:
                    yield piece
                left = self._inner.unconsumed_tail
                if self.eof:
                    self._rest = bytes(self._inner.unused_data) + data[start + DEFLATE_SLICE :]
                    return
                if not (piece or left):
                    break


class _Bounded:
    """A decoder with `max_length` and `needs_input`: bz2, lzma and Python 3.14's zstd."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    @property
    def eof(self) -> bool:
        return bool(self._inner.eof)

    @property
    def rest(self) -> bytes:
        return bytes(self._inner.unused_data)

    def expand(self, data: bytes) -> Iterator[bytes]:
        while True:
            piece = self._inner.decompress(data, PIECE)
            if piece:
                yield piece
            data = b""
            if self.eof or self._inner.needs_input:
                return


class _Zstandard(_Sliced):
    def expand(self, data: bytes) -> Iterator[bytes]:
        for start in range(0, len(data), ZSTD_SLICE):
            piece = self._inner.decompress(data[start : start + ZSTD_SLICE])
            if piece:
                yield piece
            if self.eof:
                self._rest = bytes(self._inner.unused_data) + data[start + ZSTD_SLICE :]
                return


def _zlib() -> Any:
    try:
        return importlib.import_module("isal.isal_zlib")
    except ImportError:
        return zlib


def _zstd() -> Member:
    try:
        return _Bounded(importlib.import_module("compression.zstd").ZstdDecompressor())
    except ImportError:
        pass
    try:
        inner = importlib.import_module("zstandard").ZstdDecompressor().decompressobj()
    except ImportError:
        raise SourceError(
            "zstd data cannot be read here",
            "install the package zstandard, or pipe it through zstd -dc",
        ) from None
    return _Zstandard(inner)


DECODERS: Final[dict[str, Callable[[], Member]]] = {
    "gzip": _Deflate,
    "xz": lambda: _Bounded(importlib.import_module("lzma").LZMADecompressor()),
    "bzip2": lambda: _Bounded(importlib.import_module("bz2").BZ2Decompressor()),
    "zstd": _zstd,
}


def format_of(head: bytes) -> str | None:
    """Return the name of the compressed format that begins like `head`, or None."""
    return next((name for magic, name in MAGIC.items() if head.startswith(magic)), None)


def undecided(head: bytes) -> bool:
    """True while `head` is too short to tell whether it is compressed."""
    return any(len(head) < len(magic) and magic.startswith(head) for magic in MAGIC)


def _damage() -> tuple[type[Exception], ...]:
    kinds: list[type[Exception]] = [
        zlib.error,
        OSError,
        EOFError,
        ValueError,
        struct.error,
    ]
    for module, name in (
        ("lzma", "LZMAError"),
        ("isal.isal_zlib", "IsalError"),
        ("zstandard", "ZstdError"),
        ("compression.zstd", "ZstdError"),
    ):
        try:
            kinds.append(cast(type[Exception], getattr(importlib.import_module(module), name)))
        except ImportError:
            continue
    return tuple(kinds)


def expand(name: str, chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the plain bytes of compressed `chunks`.

    Raises Broken after the last good piece when the data is damaged, cut short or followed by
    something else.
    """
    new = DECODERS[name]
    member: Member | None = None
    held = b""
    damage = _damage()
    for data in chunks:
        held += data
        while held:
            if member is None:
                held = held.lstrip(b"\0")
                if not held or undecided(held):
                    break
                if format_of(held) != name:
                    raise Broken("something that is not compressed follows the compressed data")
                member = new()
            try:
                yield from member.expand(held)
            except damage as problem:
                raise Broken(f"the {name} data is damaged") from problem
            held = member.rest if member.eof else b""
            if member.eof:
                member = None
    if member is not None or held:
        raise Broken(f"the {name} data ends too soon")
