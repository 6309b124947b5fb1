"""A health check by URL: the status decides, the body is never read."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote, urlsplit

from loopdetect.core.fusion import Health, Port
from loopdetect.errors import UsageProblem
from loopdetect.probe.seen import HealthSeen

if TYPE_CHECKING:
    from urllib3 import BaseHTTPResponse
    from urllib3.connectionpool import HTTPConnectionPool
    from urllib3.poolmanager import PoolManager

MAX_REDIRECTS: Final = 5
_UNIX: Final = re.compile(r"unix:(?://)?(?P<path>/[^:?#]+)(?::(?P<rest>/.*))?")
# Statuses that say "not yet" without any doubt; others may mean a wrong URL, so they are explained.
EXPLAINED: Final = {
    401: "a token is needed: --health-token-env NAME",
    403: "the token is not accepted",
    404: "there is nothing at this URL: is the path right?",
    405: "this URL does not take GET: is the path right?",
}
FAILURES: Final = (
    ("refused", "connection refused"),
    ("timed out", "no answer in time"),
    ("Name or service not known", "the host name is not known"),
    ("nodename nor servname", "the host name is not known"),
    ("Temporary failure in name resolution", "the host name cannot be looked up now"),
    ("CERTIFICATE_VERIFY_FAILED", "the certificate is not trusted: --health-ca FILE"),
    ("WRONG_VERSION_NUMBER", "it does not speak TLS: is it http:// ?"),
    ("No such file or directory", "the socket does not exist yet"),
    ("Permission denied", "no permission to use the socket"),
    ("too many redirects", "too many redirects"),
    ("unreachable", "the host cannot be reached"),
    ("RemoteDisconnected", "the connection was closed without an answer"),
    ("reset by peer", "the connection was reset"),
)

Owner = Callable[[int], tuple[Port, str]]


@dataclass(frozen=True, slots=True)
class Target:
    """Where to ask: a URL, or a path at a unix socket."""

    url: str
    socket_path: str | None = None

    @property
    def local_port(self) -> int | None:
        """The TCP port, if the URL leads to this machine."""
        parts = urlsplit(self.url)
        if self.socket_path or parts.hostname not in ("localhost", "127.0.0.1", "::1", "0.0.0.0"):
            return None
        return parts.port or (443 if parts.scheme == "https" else 80)


def target_of(text: str) -> Target:
    """Read `http(s)://…`, `unix:/run/x.sock:/health` or `http+unix://%2Frun%2Fx.sock/health`.

    Raises UsageProblem.
    """
    unix = _UNIX.fullmatch(text)
    if unix:
        return Target(unix["rest"] or "/health", unix["path"])
    parts = urlsplit(text)
    try:
        port_is_sane = parts.port is None or parts.port > 0
    except ValueError:
        port_is_sane = False
    if parts.scheme == "http+unix" and parts.netloc:
        path = parts.path or "/health"
        return Target(f"{path}?{parts.query}" if parts.query else path, unquote(parts.netloc))
    if parts.scheme not in ("http", "https") or not parts.hostname or not port_is_sane:
        raise UsageProblem(
            f"{text!r} is no health URL",
            "write it like http://localhost:8000/health or unix:/run/server.sock:/health",
        )
    return Target(text)


@dataclass(slots=True)
class HttpProbe:
    """Asks one URL; `timeout` is in seconds for connecting and for the answer each."""

    target: Target
    token: str | None = None
    timeout: float = 5.0
    ca_file: str | None = None
    verify: bool = True
    owner: Owner | None = None
    pool_maker: Callable[[], HTTPConnectionPool] | None = None
    _pool: PoolManager | HTTPConnectionPool | None = field(default=None, init=False)

    def __call__(self) -> HealthSeen:
        """Return what the URL says just now."""
        try:
            status = self._ask()
        except Exception as problem:
            return HealthSeen(Health.DOWN, explain(problem))
        if not 200 <= status < 300:
            more = EXPLAINED.get(status)
            return HealthSeen(
                Health.DOWN, f"HTTP {status}" + (f" ({more})" if more else ""), status
            )
        port, name = Port.UNKNOWN, ""
        if self.owner is not None and self.target.local_port is not None:
            port, name = self.owner(self.target.local_port)
        return HealthSeen(Health.UP, f"HTTP {status}", status, port, name)

    def _ask(self) -> int:
        from urllib3.util import Retry, Timeout

        headers: Mapping[str, str] = {"User-Agent": "loopdetect", "Connection": "close"}
        if self.token:
            headers = {**headers, "Authorization": f"Bearer {self.token}"}
        pool = self._pool = self._pool or self._make_pool()
        # One try a look: the next look is the retry. Redirects drop the token at another host.
        retries = Retry(
            total=MAX_REDIRECTS, connect=0, read=0, status=0, other=0, redirect=MAX_REDIRECTS
        )
        response: BaseHTTPResponse = pool.request(
            "GET",
            self.target.url,
            headers=headers,
            retries=retries,
            timeout=Timeout(connect=self.timeout, read=self.timeout),
            preload_content=False,
        )
        try:
            return response.status
        finally:
            response.close()

    def _make_pool(self) -> PoolManager | HTTPConnectionPool:
        import urllib3

        if self.pool_maker is not None:
            return self.pool_maker()
        if self.target.socket_path is not None:
            return unix_pool(self.target.socket_path)
        return urllib3.PoolManager(cert_reqs=certificates(self.verify), ca_certs=self.ca_file)


def certificates(verify: bool) -> str:
    """Return what urllib3 is to ask of certificates; no warning of what the user chose."""
    if verify:
        return "CERT_REQUIRED"
    import warnings

    from urllib3.exceptions import InsecureRequestWarning

    warnings.simplefilter("ignore", InsecureRequestWarning)
    return "CERT_NONE"


def unix_pool(path: str, host: str = "localhost", port: int | None = None) -> HTTPConnectionPool:
    """Return a pool that speaks as if to a host, and whose connections go to a unix socket."""
    from urllib3.connection import HTTPConnection
    from urllib3.connectionpool import HTTPConnectionPool

    class UnixConnection(HTTPConnection):
        def _new_conn(self) -> socket.socket:
            return unix_link(path, self.timeout)

    class UnixPool(HTTPConnectionPool):
        ConnectionCls = UnixConnection

    return UnixPool(host, port)


def unix_link(path: str, timeout: Any) -> socket.socket:
    """Return a connection to a unix socket; `timeout` is urllib3's."""
    link = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    link.settimeout(timeout if isinstance(timeout, int | float) else None)
    try:
        link.connect(path)
    except BaseException:
        link.close()
        raise
    return link


def explain(problem: Exception) -> str:
    """Return in a few words why there was no answer."""
    text = f"{type(problem).__name__}: {problem}"
    for mark, words in FAILURES:
        if mark in text:
            return words
    cause = getattr(problem, "reason", None) or problem
    return f"no answer ({type(cause).__name__})"
