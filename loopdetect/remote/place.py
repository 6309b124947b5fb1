"""Which file on which machine: `--ssh HOST FILE` or `ssh://user@host:port/path`."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote, urlsplit

from loopdetect.errors import UsageProblem

SCHEME: Final = "ssh://"
_HOME: Final = re.compile(r"(~[A-Za-z0-9._-]*)(?:/|$)")


@dataclass(frozen=True, slots=True)
class Place:
    """A file on a host; `host` and `port` as `ssh` takes them."""

    host: str
    path: str
    port: int | None = None

    @property
    def title(self) -> str:
        """The place in one word, for people."""
        return f"{self.host}:{self.path}"


def place_of(log: str, host: str | None) -> Place | None:
    """Return where the log is, None if it is on this machine; raises UsageProblem."""
    if log.startswith(SCHEME):
        if host is not None:
            raise UsageProblem(f"--ssh and {log} both name a host", "give one of them")
        return _by_url(log)
    if host is None:
        return None
    if log == "-":
        raise UsageProblem("--ssh and - cannot go together", "name the file on the host")
    return Place(_sound(host), log)


def _by_url(text: str) -> Place:
    hint = "write it like ssh://user@host:22/path/to/server.log"
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError as problem:
        raise UsageProblem(f"{text!r} is no place: {problem}", hint) from problem
    # What `?` and `#` mean in other URLs, they do not mean in the name of a file.
    path = unquote("/" + text.removeprefix(SCHEME).partition("/")[2], errors="surrogateescape")
    host = parts.hostname
    if not host or path == "/" or "\0" in path or port == 0:
        raise UsageProblem(f"{text!r} names no file on a host", hint)
    user = unquote(parts.username or "")
    netloc = parts.netloc.rpartition("@")[2]
    # urlsplit makes host names small; an alias in the user's configuration may have capitals.
    named = host if netloc.startswith("[") else netloc.partition(":")[0]
    if path.startswith("/~"):
        path = path[1:]
    return Place(_sound(f"{user}@{named}" if user else named), path, port)


def _sound(host: str) -> str:
    if not host or host.startswith("-") or re.search(r"[\s\0]", host):
        raise UsageProblem(f"--ssh: {host!r} is no host", "write it as for ssh: host or user@host")
    return host


def shell_word(path: str) -> str:
    """Return the path as a word for a POSIX shell, in which only a leading `~` means more."""
    home = _HOME.match(path)
    if home:
        return f"{home[1]}/{shlex.quote(path[home.end() :])}"
    # No program may take the path for an option.
    return shlex.quote(f"./{path}" if path.startswith("-") else path)
