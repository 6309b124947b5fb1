"""One connection: an `ssh` process that carries requests, answers and the forwarded port."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import select
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from loopdetect.errors import SourceError
from loopdetect.remote.program import MARKER, program, starter

# How long `ssh` may say nothing before the link counts as dead: 3 x 3 s, then this as the last word.
ALIVE_OPTIONS: Final = ("ServerAliveInterval=3", "ServerAliveCountMax=3")
ANSWER_S: Final = 30.0
CONNECT_S: Final = 10
LEAVE_S: Final = 1.0
STEP_S: Final = 0.25
LONGEST_LINE: Final = 4096
# Before the program's first words a login shell may say this much on its own.
LONGEST_GREETING: Final = 1 << 20
_REFUSED: Final = re.compile(r"channel \d+: open failed: (?P<why>[^\r\n]*)")
_NUMBER: Final = re.compile(r"\d+(?:\.\d+)?")


class LinkLost(Exception):
    """The host cannot be reached, or no longer; the message says why."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What the host says of the name: `kind` is file, none, folder, special or denied.

    `modified` is in seconds since 1970 by this machine's clock.
    """

    kind: str
    identity: str = ""
    size: int = 0
    stamp: str = ""
    modified: float | None = None


@dataclass(frozen=True, slots=True)
class Block:
    """Bytes that were read; `known` is what stands where the known bytes were.

    `whole` says that none went astray.
    """

    known: bytes
    data: bytes
    whole: bool
    facts: Facts


@dataclass(frozen=True, slots=True)
class Caller:
    """How to call the host; `forward` is a local socket and where it leads to, as `-L` takes it."""

    command: Sequence[str]
    host: str
    port: int | None
    log: str
    pid_file: str = ""
    forward: str | None = None

    def arguments(self, size: int) -> list[str]:
        """Return the whole command for a program of `size` bytes."""
        options = [
            "BatchMode=yes",
            f"ConnectTimeout={CONNECT_S}",
            *ALIVE_OPTIONS,
            # The user's configuration may ask for these; a command of ours cannot have them.
            "RemoteCommand=none",
            "ControlPath=none",
            "ExitOnForwardFailure=no",
            "LogLevel=INFO",
        ]
        options.append("StreamLocalBindUnlink=yes" if self.forward else "ClearAllForwardings=yes")
        words = [*self.command, "-T"]
        for option in options:
            words += ["-o", option]
        if self.forward:
            words += ["-L", self.forward]
        if self.port is not None:
            words += ["-p", str(self.port)]
        return [*words, "--", self.host, starter(size)]


class Session:
    """Talks to the program on the host; every method raises LinkLost when the link is dead."""

    def __init__(
        self, caller: Caller, limit: float, heard: Callable[[], None], over: threading.Event
    ) -> None:
        """Log in within `limit` seconds, unless it is `over`; raises SourceError without ssh."""
        self._heard, self._over = heard, over
        self._rest = b""
        self._asked = 0.0
        self._silent_since: float | None = None
        self._said: deque[str] = deque(maxlen=8)
        self.refused: tuple[int, str] = (0, "")
        token = secrets.token_hex(8)
        text = program(caller.log, caller.pid_file, token)
        try:
            self._ssh = subprocess.Popen(
                caller.arguments(len(text)),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        except OSError as problem:
            raise SourceError(
                f"{caller.command[0]}: {problem.strerror}", "install OpenSSH, or see --ssh-command"
            ) from problem
        assert self._ssh.stdin is not None
        assert self._ssh.stdout is not None
        self._in, self._out = self._ssh.stdin.fileno(), self._ssh.stdout.fileno()
        self._listener = threading.Thread(target=self._listen, name="loopdetect-ssh", daemon=True)
        self._listener.start()
        try:
            self._send(text)
            self._begin(MARKER.format(token=token).encode(), time.monotonic() + limit)
        except BaseException:
            self.close()
            raise

    def end(self) -> None:
        """Let go of the host; its program ends as its input does."""
        if self._ssh.poll() is None:
            self._ssh.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._ssh.wait(LEAVE_S)
            self._ssh.kill()
            self._ssh.wait()

    def close(self) -> None:
        """End it, and close what leads to it; not while another thread talks."""
        self.end()
        self._listener.join(LEAVE_S)
        for stream in (self._ssh.stdin, self._ssh.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()

    def silence(self) -> float:
        """Return for how many seconds an answer has been due without a byte of it."""
        since = self._silent_since
        return 0.0 if since is None else time.monotonic() - since

    def pause(self) -> None:
        """Nothing is due just now."""
        self._silent_since = None

    # -- requests

    def stat(self) -> Facts:
        """Return what stands at the name."""
        return self._facts(self._ask("stat"))

    def open(self, offset: int) -> Facts:
        """Open the file and stand at the offset; returns what stands at the name since."""
        return self._facts(self._ask(f"open {offset // 4096} {offset % 4096}"))

    def read(self, offset: int, first: int, last: int, size: int, count: int = 1) -> Block:
        """Read on, up to `count` pieces of `size` bytes.

        With them come the `first` bytes of the file and the `last` ones before the offset.
        """
        words = self._ask(f"read {offset - last} {last} {size} {count} {first}")
        data = self._bytes(size * count)
        records = re.fullmatch(r"records (\d+)\+(\d+)", self._line())
        facts = self._facts(self._line())
        try:
            known = bytes.fromhex(words.removeprefix("before").strip())
        except ValueError as problem:
            raise LinkLost("the shell on the host gives no sense") from problem
        if records is None:
            return Block(known, b"", False, facts)
        return Block(known, data[: int(records[1]) * size], records[2] == "0", facts)

    def process(self, pid: int) -> list[str]:
        """Return what the host says of a process, in words."""
        return self._ask(f"process {pid}").split()

    def pid(self) -> int | None:
        """Return the number in the pid file."""
        words = self._ask("pid").split()
        return int(words[1]) if words[0] == "pid" and 0 < len(words[1]) <= 10 else None

    # -- the wire

    def _ask(self, request: str) -> str:
        self._asked, self._silent_since = time.time(), time.monotonic()
        self._send(f"{request}\n".encode())
        return self._line()

    def _facts(self, line: str) -> Facts:
        words = line.split()
        if words[:1] != ["file"] or len(words) != 5 or not words[2].isdigit():
            if words and words[0] in ("none", "folder", "special", "denied"):
                return Facts(words[0])
            raise LinkLost("the shell on the host gives no sense")
        changed, now = _NUMBER.match(words[3]), _NUMBER.match(words[4])
        modified = None
        if changed and now:
            # Only the difference crosses the wire: the host's clock may be wrong.
            middle = (self._asked + time.time()) / 2
            modified = middle - (float(now[0]) - float(changed[0]))
        return Facts("file", words[1], int(words[2]), words[3], modified)

    def _send(self, data: bytes) -> None:
        try:
            while data:
                data = data[os.write(self._in, data) :]
        except OSError as problem:
            raise LinkLost(self._reason()) from problem

    def _begin(self, marker: bytes, deadline: float) -> None:
        while (at := self._rest.find(b"\n" + marker + b"\n")) < 0:
            if len(self._rest) > LONGEST_GREETING:
                raise LinkLost("its login shell says too much and never starts a program")
            self._more(deadline, "no answer in time")
        self._rest = self._rest[at + len(marker) + 2 :]

    def _line(self) -> str:
        deadline = time.monotonic() + ANSWER_S
        while b"\n" not in self._rest:
            if len(self._rest) > LONGEST_LINE:
                raise LinkLost("the shell on the host gives no sense")
            self._more(deadline)
        line, _, self._rest = self._rest.partition(b"\n")
        return line.decode("ascii", "replace")

    def _bytes(self, count: int) -> bytes:
        pieces, missing = [self._rest], count - len(self._rest)
        while missing > 0:
            self._rest = b""
            self._more(time.monotonic() + ANSWER_S)
            pieces.append(self._rest)
            missing -= len(self._rest)
        data = b"".join(pieces)
        self._rest = data[count:]
        return data[:count]

    def _more(self, deadline: float, late: str = "the link is silent") -> None:
        while True:
            wait = min(STEP_S, max(0.0, deadline - time.monotonic()))
            ready, _, _ = select.select([self._out], [], [], wait)
            if ready:
                break
            if self._over.is_set() or time.monotonic() >= deadline:
                raise LinkLost(late)
        data = os.read(self._out, 1 << 18)
        if not data:
            raise LinkLost(self._reason())
        self._rest += data
        self._silent_since = time.monotonic()
        self._heard()

    # -- what ssh itself says

    def _listen(self) -> None:
        assert self._ssh.stderr is not None
        with self._ssh.stderr as stream:
            for raw in iter(lambda: stream.readline(LONGEST_LINE), b""):
                line = raw.decode("utf-8", "replace").strip()
                found = _REFUSED.search(line)
                if found:
                    self.refused = (self.refused[0] + 1, found["why"])
                if line:
                    self._said.append(line)

    def _reason(self) -> str:
        """Return why the link is dead, in the words of `ssh`."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._ssh.wait(LEAVE_S)
        self._listener.join(LEAVE_S)
        told = [line for line in self._said if not _REFUSED.search(line)]
        if told:
            return told[-1].removeprefix("ssh: ").rstrip(".")
        code = self._ssh.returncode
        return "the connection ended" if code in (None, 0) else f"ssh ended with exit code {code}"
