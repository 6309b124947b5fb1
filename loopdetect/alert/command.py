"""`--on-change`: runs a command for each alarm, the report on its standard input."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
import threading
import time
from typing import IO, Final

from loopdetect.alert.message import Message, facts
from loopdetect.render.escape import visible

STEP: Final = 0.02
SHOWN: Final = 300


class Command:
    """Gives a command line to the shell; log text reaches it as data, never as words of it."""

    name = "--on-change"

    def __init__(self, line: str, time_limit: float = 30.0) -> None:
        self._line = line
        self._limit = time_limit

    def send(self, message: Message, stopping: threading.Event) -> str | None:
        """Run the command; return why it failed."""
        with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as said:
            given.write(message.body.encode("utf-8", "backslashreplace") + b"\n")
            given.seek(0)
            try:
                process = subprocess.Popen(
                    ["/bin/sh", "-c", self._line],
                    stdin=given,
                    stdout=said,
                    stderr=said,
                    env={**os.environ, **facts(message.document)},
                    start_new_session=True,
                )
            except OSError as problem:
                return f"cannot be started: {problem.strerror}"
            code = self._wait(process, stopping)
            if code is None:
                return f"took longer than {self._limit:g} s and was ended"
            if code == 0:
                return None
            how = f"exit {code}" if code > 0 else f"signal {-code}"
            return f"failed ({how}){_last_words(said)}"

    def _wait(self, process: subprocess.Popen[bytes], stopping: threading.Event) -> int | None:
        until = time.monotonic() + self._limit
        while True:
            with contextlib.suppress(subprocess.TimeoutExpired):
                return process.wait(STEP)
            if stopping.is_set() or time.monotonic() >= until:
                break
        for step in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, step)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(0.5)
        return None


def _last_words(said: IO[bytes]) -> str:
    size = said.seek(0, os.SEEK_END)
    said.seek(max(0, size - 4096))
    lines = said.read().decode("utf-8", "replace").strip().splitlines()
    return f": {visible(lines[-1])[:SHOWN]}" if lines else ""
