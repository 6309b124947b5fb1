"""A machine to log in to: this one, through an `sshd` of the test's own on a loopback port."""

from __future__ import annotations

import contextlib
import getpass
import os
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from loopdetect.live.tail import Turn
from loopdetect.remote.follow import RemoteFile
from loopdetect.remote.link import Link
from loopdetect.remote.session import Caller

SSHD = shutil.which("sshd") or shutil.which("sshd", path="/usr/sbin:/usr/local/sbin")
DEADLINE_S = 20.0
NAME = "gpu-box"


def until(true: Callable[[], object]) -> None:
    """Poll with a deadline."""
    pause = threading.Event()
    end = time.monotonic() + DEADLINE_S
    while not true():
        assert time.monotonic() < end, "it did not happen in time"
        pause.wait(0.01)


@dataclass
class Host:
    """The `sshd`, and the client's configuration that leads to it as `gpu-box`."""

    folder: Path
    more: tuple[str, ...] = ()
    port: int = 0
    sshd: subprocess.Popen[bytes] | None = None
    links: list[Link] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.folder.mkdir(mode=0o700)
        self.home.mkdir()
        for name in ("host_key", "user_key"):
            command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", f"{self.folder}/{name}"]
            subprocess.run(command, check=True, stdin=subprocess.DEVNULL)
        if os.geteuid() == 0:
            Path("/run/sshd").mkdir(exist_ok=True)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self._write(
            "sshd.conf",
            f"Port {self.port}",
            "ListenAddress 127.0.0.1",
            f"HostKey {self.folder}/host_key",
            f"AuthorizedKeysFile {self.folder}/user_key.pub",
            "StrictModes no",
            "PasswordAuthentication no",
            "PermitRootLogin yes",
            "UsePAM no",
            "PidFile none",
            f"SetEnv HOME={self.home}",
            *self.more,
        )
        self._write(
            "ssh.conf",
            f"Host {NAME}",
            "  HostName 127.0.0.1",
            f"  Port {self.port}",
            f"  User {getpass.getuser()}",
            f"  IdentityFile {self.folder}/user_key",
            "  IdentitiesOnly yes",
            f"  UserKnownHostsFile {self.folder}/known_hosts",
            "  StrictHostKeyChecking yes",
            # What people have in their configuration must not get in the way.
            "  RequestTTY force",
            "  RemoteCommand echo hello",
            f"  LocalForward {self.port} localhost:9",
            "  ControlMaster auto",
            f"  ControlPath {self.folder}/%C",
        )
        self.known(self.port)
        self.rise()

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @property
    def command(self) -> str:
        return f"ssh -F {self.folder}/ssh.conf"

    def known(self, port: int) -> None:
        key = (self.folder / "host_key.pub").read_text()
        self._write("known_hosts", f"[127.0.0.1]:{port} {key}")

    def rise(self) -> None:
        assert SSHD is not None
        with (self.folder / "sshd.log").open("ab") as log:
            self.sshd = subprocess.Popen(
                [SSHD, "-D", "-e", "-f", f"{self.folder}/sshd.conf"],
                stdin=subprocess.DEVNULL,
                stderr=log,
                start_new_session=True,
            )
        until(self._listens)

    def sessions(self) -> list[psutil.Process]:
        assert self.sshd is not None
        return psutil.Process(self.sshd.pid).children(recursive=True)

    def cut(self) -> None:
        """Break all connections off; new ones are welcome."""
        assert self.sshd is not None
        broken = psutil.Process(self.sshd.pid).children()
        assert broken, "nobody is connected"
        for process in broken:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()

    def fall(self) -> None:
        """Break all connections off, for good."""
        if self.sshd is not None:
            with contextlib.suppress(psutil.NoSuchProcess):
                processes = psutil.Process(self.sshd.pid).children()
                self.sshd.send_signal(signal.SIGKILL)
                for process in processes:
                    with contextlib.suppress(psutil.NoSuchProcess):
                        process.kill()
            self.sshd.wait(DEADLINE_S)
            self.sshd = None

    def link(self, log: str, *, since_now: bool = False) -> Link:
        caller = Caller(self.command.split(), NAME, None, log)
        made = Link(caller, RemoteFile(log, skip_present=since_now))
        self.links.append(made)
        made.connect(DEADLINE_S)
        return made

    def clear(self) -> None:
        for link in self.links:
            link.close()
        self.fall()

    def _listens(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def _write(self, name: str, *lines: str) -> None:
        (self.folder / name).write_text("".join(f"{line}\n" for line in lines))


@dataclass
class Reader:
    """Takes what a link gives, as a wait does."""

    link: Link
    data: bytearray = field(default_factory=bytearray)
    turns: list[Turn] = field(default_factory=list)

    def has(self, data: bytes, turns: Sequence[Turn] | None = None) -> bool:
        """Read on; true when exactly this was read so far."""
        self.read()
        return bytes(self.data) == data and (turns is None or self.turns == list(turns))

    def read(self) -> None:
        look = self.link.look()
        while True:
            self.data += look.data
            if look.turn is not None:
                self.turns.append(look.turn)
            if not (look.data or look.turn):
                return
            look = self.link.look()
