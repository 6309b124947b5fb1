"""The health URL as the host sees it, through a port that `ssh` forwards."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol
from urllib.parse import urlsplit

from loopdetect.core.fusion import Health
from loopdetect.errors import UsageProblem
from loopdetect.probe.http_probe import (
    HttpProbe,
    Target,
    certificates,
    target_of,
    unix_link,
    unix_pool,
)
from loopdetect.probe.seen import HealthProbe, HealthSeen

if TYPE_CHECKING:
    from urllib3.connectionpool import HTTPConnectionPool

PATIENCE_S: Final = 3.0
# The reason that the host gave for not connecting -> what that says of the server, and the words.
REFUSALS: Final = (
    ("prohibited", Health.UNKNOWN, "the ssh server does not allow forwarding"),
    ("refused", Health.DOWN, "connection refused"),
    ("timed out", Health.DOWN, "no answer in time"),
    ("No such file", Health.DOWN, "the socket does not exist yet"),
    ("resolve", Health.DOWN, "the host name is not known there"),
    ("known", Health.DOWN, "the host name is not known there"),
)
_HOST: Final = re.compile(r"[A-Za-z0-9._-]+|[0-9A-Fa-f:.]+")


class Reachable(Protocol):
    """The link that the forwarded port depends on."""

    lost: str | None

    def refused(self) -> tuple[int, str]:
        """Return how often the host would not connect the forwarded port, and why at last."""

    def answers(self, within: float) -> bool:
        """True when the host says something more in that many seconds."""


@dataclass(frozen=True, slots=True)
class Forward:
    """A socket here that leads to where a URL leads on the host."""

    url: str
    path: str

    @property
    def words(self) -> str:
        """The two ends as `ssh -L` takes them; raises UsageProblem."""
        target = target_of(self.url)
        if target.socket_path is not None:
            if ":" in target.socket_path:
                raise UsageProblem(f"{self.url!r}: ssh cannot forward a path with a colon in it")
            return f"{self.path}:{target.socket_path}"
        host, port = _end_of(target.url)
        return f"{self.path}:[{host}]:{port}"

    def probe(
        self, token: str | None, ca_file: str | None, verify: bool, link: Reachable
    ) -> RemoteHealth:
        """Return what asks the URL through the socket."""
        target = target_of(self.url)
        maker: Callable[[], HTTPConnectionPool] | None = None
        path = target.url
        if target.socket_path is None:
            parts = urlsplit(target.url)
            path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
            url = target.url
            maker = lambda: pool_through(self.path, url, ca_file, verify)  # noqa: E731
        probe = HttpProbe(Target(path, self.path), token=token, pool_maker=maker)
        return RemoteHealth(probe, link)


def _end_of(url: str) -> tuple[str, int]:
    parts = urlsplit(url)
    host = parts.hostname or ""
    if not _HOST.fullmatch(host):
        raise UsageProblem(f"{url!r}: {host!r} is no name of a host", "check the health URL")
    return host, parts.port or (443 if parts.scheme == "https" else 80)


def pool_through(path: str, url: str, ca_file: str | None, verify: bool) -> HTTPConnectionPool:
    """Return a pool that speaks as if to the URL's host, but connects to a socket here."""
    host, port = _end_of(url)
    if urlsplit(url).scheme != "https":
        return unix_pool(path, host, port)
    from urllib3.connection import HTTPSConnection
    from urllib3.connectionpool import HTTPSConnectionPool

    class SecureConnection(HTTPSConnection):
        def _new_conn(self) -> socket.socket:
            return unix_link(path, self.timeout)

    class SecurePool(HTTPSConnectionPool):
        ConnectionCls = SecureConnection

    return SecurePool(host, port, cert_reqs=certificates(verify), ca_certs=ca_file)


class RemoteHealth:
    """Asks through the link; what the link itself fails at is not the server's failure."""

    def __init__(self, probe: HealthProbe, link: Reachable) -> None:
        self._probe, self._link = probe, link

    def __call__(self) -> HealthSeen:
        """Return what the URL says just now."""
        if self._link.lost is not None:
            return self._unknown()
        before = self._link.refused()
        seen = self._probe()
        if seen.status is not None:
            return seen
        # No answer counts only if the host is known to have been in reach at that moment.
        if not self._link.answers(PATIENCE_S):
            return self._unknown()
        told = self._link.refused()
        for mark, health, words in REFUSALS:
            if told != before and mark in told[1]:
                return HealthSeen(health, words)
        return seen

    def _unknown(self) -> HealthSeen:
        return HealthSeen(Health.UNKNOWN, "health is out of sight")
