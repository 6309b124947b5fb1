"""`--webhook`: posts each alarm as JSON, signed, and tries again where that may help."""

from __future__ import annotations

import hashlib
import hmac
import threading
from collections.abc import Sequence
from typing import Final
from urllib.parse import urlsplit

from loopdetect import __version__
from loopdetect.alert.message import Message
from loopdetect.errors import UsageProblem

SIGNATURE: Final = "X-Loopdetect-Signature"
WAITS: Final = (1.0, 2.0, 5.0, 15.0, 60.0)
LONGEST_WAIT: Final = 120.0
# What a receiver may answer that is worth another try.
PASSING: Final = frozenset({408, 425, 429})


class Webhook:
    """Posts to one URL; raises UsageProblem for a URL that can't be posted to."""

    name = "--webhook"

    def __init__(
        self,
        url: str,
        secret: str | None = None,
        *,
        waits: Sequence[float] = WAITS,
        time_limit: float = 10.0,
    ) -> None:
        self._url = url
        self._secret = secret
        self._waits = tuple(waits)
        self._limit = time_limit
        self._where = check(url)

    def send(self, message: Message, stopping: threading.Event) -> str | None:
        """Post the message; return why it was given up."""
        problem: str | None = None
        for wait in (*self._waits, None):
            problem, again = self._post(message)
            if problem is None or again is None or wait is None:
                return problem
            if stopping.wait(max(wait, min(again, LONGEST_WAIT))):
                return problem
        return problem

    def _post(self, message: Message) -> tuple[str | None, float | None]:
        """Return what went wrong, and how long to wait for another try, None if none may help."""
        import urllib3

        body = message.body.encode("utf-8", "backslashreplace")
        try:
            answer = urllib3.request(
                "POST",
                self._url,
                body=body,
                headers=self._headers(message, body),
                timeout=urllib3.Timeout(total=self._limit),
                retries=False,
                redirect=False,
                preload_content=False,
            )
            answer.close()
        except (urllib3.exceptions.HTTPError, OSError) as problem:
            return f"{self._where} cannot be reached: {_short(problem)}", 0.0
        if 200 <= answer.status < 300:
            return None, None
        said = f"{self._where} answered {answer.status}"
        if answer.status in PASSING or answer.status >= 500:
            return said, _seconds(answer.headers.get("Retry-After"))
        return f"{said}; it will not be tried again", None

    def _headers(self, message: Message, body: bytes) -> dict[str, str]:
        headers = {
            "Content-Type": "application/json; charset=utf-8",
            "User-Agent": f"loopdetect/{__version__}",
            "X-Loopdetect-Delivery": message.id,
        }
        if self._secret:
            headers[SIGNATURE] = signature(self._secret, body)
        return headers


def signature(secret: str, body: bytes) -> str:
    """Return `sha256=` and the HMAC of the body in hexadecimal."""
    return "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


def check(url: str) -> str:
    """Return scheme and host of a URL, without what may be secret; raises UsageProblem."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        host = port = None
        parts = urlsplit("")
    if parts.scheme not in ("http", "https") or not host:
        raise UsageProblem("--webhook: this is no URL to post to", "write https://host/path")
    return f"{parts.scheme}://{host}" + (f":{port}" if port else "")


def _seconds(text: str | None) -> float:
    try:
        return max(0.0, float(text or 0))
    except ValueError:
        return 0.0


def _short(problem: Exception) -> str:
    """Name the problem without the URL, which may hold a secret."""
    reason = getattr(problem, "reason", None)
    inner = reason if isinstance(reason, Exception) else problem
    return type(inner).__name__
