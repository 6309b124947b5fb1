"""Logs in object stores and other remote file systems, through fsspec."""

from __future__ import annotations

import importlib
import logging
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from loopdetect.errors import SourceError
from loopdetect.source.files import CHUNK, MAGIC

_ADDRESS: Final = re.compile(r"[a-z][a-z0-9+.-]+(?:::[a-z][a-z0-9+.-]*)*://", re.ASCII)
_LOCAL: Final = re.compile(r"(?:file|local)://", re.ASCII)
# File systems that live in the memory of one process.
_HERE: Final = re.compile(r"memory://", re.ASCII)
# What the stores call the time of the last change.
_MODIFIED: Final = ("mtime", "LastModified", "last_modified", "updated", "modified", "created")
CHECK: Final = "check the address and your credentials"
INSTALL: Final = "install it: pip install 'loopdetect-llm[objects]'"
INSTALL_ALSO: Final = "install it; what s3 and gs need comes with 'loopdetect-llm[objects]'"


def is_address(word: str) -> bool:
    """True for `s3://…` and its like, not for `file://…`."""
    return bool(_ADDRESS.match(word)) and not _LOCAL.match(word)


def is_here(word: str) -> bool:
    """True where only this process can read the address."""
    return bool(_HERE.match(word))


def local_path(word: str) -> str:
    """Return the path that `file:///path` names; other words stay."""
    return _LOCAL.sub("", word)


@dataclass(frozen=True, slots=True, order=True)
class StoredObject:
    """`name` is a whole address, `size` in bytes, `modified` seconds since 1970."""

    name: str
    size: int
    modified: float | None


def listed(address: str) -> list[StoredObject]:
    """Return the objects that `address` means, by name.

    It may name an object, a folder or a glob. Raises SourceError.
    """
    try:
        system, path = _filesystem(address)
        found = _found(system, path)
    except SourceError:
        raise
    except FileNotFoundError:
        raise SourceError(f"{address}: no such object", "check the address") from None
    except Exception as problem:
        raise SourceError(f"{address}: cannot be listed: {_said(problem)}", CHECK) from problem
    if found is None:
        raise SourceError(f"{address}: no object matches", "check the pattern")
    before = _before(system, address, path)
    return sorted(
        StoredObject(before + name, int(info.get("size") or 0), _modified(info))
        for name, info in found.items()
        if info.get("type") != "directory" and not name.endswith("/")
    )


def chunks_of(address: str) -> Iterator[bytes]:
    """Yield an object's bytes; raises SourceError, OSError once bytes were given."""
    given = False
    try:
        system, path = _filesystem(address)
        with system.open(path, "rb") as file:
            while chunk := file.read(CHUNK):
                given = True
                yield bytes(chunk)
    except SourceError:
        raise
    except FileNotFoundError:
        raise SourceError("no such object", "check the address") from None
    except Exception as problem:
        if given:
            raise OSError(_said(problem)) from problem
        raise SourceError(f"cannot be read: {_said(problem)}", CHECK) from problem


def _filesystem(address: str) -> tuple[Any, str]:
    try:
        url_to_fs = importlib.import_module("fsspec.core").url_to_fs
    except ImportError:
        raise SourceError(f"{address}: this needs the package fsspec", INSTALL) from None
    try:
        system, path = url_to_fs(address)
    except ImportError as problem:
        raise SourceError(f"{address}: {_said(problem)}", INSTALL_ALSO) from problem
    # Libraries of stores log what they raise; it is said once, by us.
    logging.getLogger().addHandler(logging.NullHandler())
    return system, str(path)


def _found(system: Any, path: str) -> dict[str, Any] | None:
    """Return what is at the path, or below it, by name; None for a glob that matches nothing."""
    try:
        info = system.info(path)
    except FileNotFoundError:
        if MAGIC.isdisjoint(path):
            raise
        return _matching(system, path)
    return _below(system, path) if info.get("type") == "directory" else {path: info}


def _matching(system: Any, pattern: str) -> dict[str, Any] | None:
    found: dict[str, Any] = {}
    for name, info in system.glob(pattern, detail=True).items():
        if info.get("type") != "directory":
            found[name] = info
        elif "**" not in pattern:
            found |= _below(system, name)
    return found or None


def _below(system: Any, folder: str) -> dict[str, Any]:
    top = folder.rstrip("/") + "/"
    return {
        name: info
        for name, info in system.find(folder, detail=True).items()
        if not any(part.startswith(".") for part in name.removeprefix(top).split("/"))
    }


def _before(system: Any, address: str, path: str) -> str:
    """Return what stands before a path in an address; the host must not be lost."""
    if address.rstrip("/").endswith(path.rstrip("/")):
        return address.rstrip("/").removesuffix(path.rstrip("/"))
    return str(system.unstrip_protocol(path)).removesuffix(path)


def _modified(info: dict[str, Any]) -> float | None:
    from datetime import datetime

    value = next((info[key] for key in _MODIFIED if info.get(key) is not None), None)
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            return None
    if isinstance(value, datetime):
        return value.timestamp()
    return float(value) if isinstance(value, int | float) else None


def _said(problem: Exception) -> str:
    text = str(problem).strip().split("\n")[0]
    return f"{type(problem).__name__}: {text[:300]}" if text else type(problem).__name__
