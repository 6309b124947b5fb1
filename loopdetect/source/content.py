"""Is it a log at all: refuses binary files with a hint, and reads UTF-16 as UTF-8."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from loopdetect.errors import SourceError

NUL_SHARE: Final = 0.05
CONTROL_SHARE: Final = 0.05
# Shorter heads are too small a sample for shares to mean anything.
SAMPLE_AT_LEAST: Final = 512
CONTROL: Final = bytes(set(range(32)) - set(b"\0\a\b\t\n\v\f\r\x1b")) + b"\x7f"


@dataclass(frozen=True, slots=True)
class Foreign:
    """A kind of file that is no log, told by bytes at a place."""

    magic: bytes
    title: str
    hint: str
    offset: int = 0


EXTRACT: Final = "extract it and give the log inside"
NO_LOG: Final = "give the file that the server's output was written to"

FOREIGN: Final = (
    Foreign(b"PK\x03\x04", "a zip archive", EXTRACT),
    Foreign(b"PK\x05\x06", "an empty zip archive", NO_LOG),
    Foreign(b"7z\xbc\xaf\x27\x1c", "a 7z archive", EXTRACT),
    Foreign(b"Rar!\x1a\x07", "a rar archive", EXTRACT),
    Foreign(b"ustar", "a tar archive", EXTRACT + " (tar -xf)", 257),
    Foreign(
        b"LPKSHHRH", "a binary journal", "pipe it: journalctl --file FILE | loopdetect inspect -"
    ),
    Foreign(b"\x7fELF", "a program", NO_LOG),
    Foreign(b"GGUF", "model weights", NO_LOG),
    Foreign(b"PAR1", "a parquet file", NO_LOG),
    Foreign(b"SQLite format 3\0", "a database", NO_LOG),
    Foreign(b"%PDF-", "a PDF document", NO_LOG),
    Foreign(b"\x89PNG", "an image", NO_LOG),
)

WIDE: Final = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}


def foreign(head: bytes) -> Foreign | None:
    """Return what kind of other file begins like `head`, or None if it may be a log."""
    for kind in FOREIGN:
        if head.startswith(kind.magic, kind.offset):
            return kind
    if len(head) < SAMPLE_AT_LEAST:
        return None
    nuls = head.count(0)
    controls = len(head) - len(head.translate(None, CONTROL))
    if nuls > NUL_SHARE * len(head) or controls > CONTROL_SHARE * len(head):
        return Foreign(b"", "a binary file", NO_LOG)
    return None


def readable(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Yield `chunks` as text that a log can be; raises SourceError if they are not.

    A log that was truncated while its writer went on begins with a hole of NUL bytes: the hole is
    left out.
    """
    for head in chunks:
        text = head.lstrip(b"\0")
        if not text:
            continue
        encoding = WIDE.get(head[:2])
        if encoding:
            yield from _narrow(encoding, head[2:], chunks)
            return
        kind = foreign(head if len(text) == len(head) else text)
        if kind:
            raise SourceError(f"this is {kind.title}, not a log", kind.hint)
        yield text
        break
    yield from chunks


def _narrow(encoding: str, head: bytes, chunks: Iterator[bytes]) -> Iterator[bytes]:
    decoder = codecs.getincrementaldecoder(encoding)("replace")
    yield decoder.decode(head).encode("utf-8", "replace")
    for chunk in chunks:
        yield decoder.decode(chunk).encode("utf-8", "replace")
    yield decoder.decode(b"", final=True).encode("utf-8", "replace")
