"""`--metrics ADDR:PORT`: the endpoint that Prometheus scrapes."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from loopdetect.errors import LoopdetectError, UsageProblem
from loopdetect.metrics.families import Families, registry

_ADDRESS: Final = re.compile(r"(?:(?P<host>\[[0-9a-fA-F:.%]+\]|[^:\[\]\s]*):)?(?P<port>\d{1,5})")


def address(text: str) -> tuple[str, int]:
    """Read `ADDR:PORT`, `:PORT` or `PORT`; without an address it is this machine alone.

    Raises UsageProblem.
    """
    found = _ADDRESS.fullmatch(text.strip())
    if not found or int(found["port"]) > 65535:
        raise UsageProblem(
            f"--metrics: {text!r} is no address", "write it like 127.0.0.1:9109 or :9109"
        )
    return (found["host"] or "127.0.0.1").strip("[]"), int(found["port"])


def serve(host: str, port: int, families: Families) -> tuple[int, Callable[[], None]]:
    """Serve in the background; return the port and a function that ends it.

    Raises LoopdetectError where the address can't be had.
    """
    from prometheus_client import start_http_server

    try:
        server, thread = start_http_server(port, host, registry(families))
    except OSError as problem:
        raise LoopdetectError(
            f"--metrics: cannot listen on {host}:{port}: {problem.strerror or problem}",
            "give another address or port",
        ) from problem

    def stop() -> None:
        server.shutdown()
        server.server_close()
        thread.join(2.0)

    return int(server.server_address[1]), stop
