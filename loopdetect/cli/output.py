"""Where a report goes: standard output, or a file that is replaced in one step."""

from __future__ import annotations

import contextlib
import os
import stat
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final, TextIO

from loopdetect.errors import LoopdetectError

COLOR_CHOICES: Final = ("auto", "always", "never")


@dataclass(frozen=True, slots=True)
class Destination:
    """An output file (None is standard output) and whether it takes colours."""

    path: str | None
    color: bool

    @property
    def width(self) -> int | None:
        """The columns of the terminal, None if it is none."""
        if self.path or not _is_terminal(sys.stdout):
            return None
        import shutil

        return max(shutil.get_terminal_size().columns, 40)

    @property
    def ascii(self) -> bool:
        """Whether what is written must do without signs that draw."""
        return self.path is None and ascii_only(os.environ, sys.stdout)


def destination(path: str | None, color: str) -> Destination:
    """Return where the report goes; `-` is standard output."""
    target = None if path in (None, "-") else path
    return Destination(
        target, wants_color(color, os.environ, _is_terminal(sys.stdout) and not target)
    )


def wants_color(choice: str, environ: Mapping[str, str], terminal: bool) -> bool:
    """Return whether to colour: the option, then NO_COLOR, then what stands at the other end."""
    if choice != "auto":
        return choice == "always"
    return terminal and not environ.get("NO_COLOR") and environ.get("TERM") != "dumb"


def ascii_only(environ: Mapping[str, str], stream: TextIO) -> bool:
    """Return whether the terminal, or the encoding of the output, can't draw."""
    if environ.get("TERM") == "dumb" and _is_terminal(stream):
        return True
    try:
        "✓━–".encode(stream.encoding or "utf-8")
    except (LookupError, UnicodeEncodeError):
        return True
    return False


def _is_terminal(stream: TextIO | None) -> bool:
    try:
        return stream is not None and stream.isatty()
    except ValueError:
        return False


def write(text: str, to: Destination) -> None:
    """Write the text; raises LoopdetectError where that can't be done."""
    if to.path is None:
        _to_stdout(text)
        return
    try:
        _replace(Path(to.path), text.encode("utf-8", "backslashreplace"))
    except OSError as problem:
        what = problem.strerror or str(problem)
        raise LoopdetectError(
            f"{to.path}: cannot write it: {what}", "give -o a file in a folder you can write to"
        ) from problem


def _to_stdout(text: str) -> None:
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(text.encode(encoding, "backslashreplace").decode(encoding))
    sys.stdout.flush()


def _replace(path: Path, data: bytes) -> None:
    with replaced(path) as file:
        file.write(data)


@contextlib.contextmanager
def replaced(path: Path) -> Iterator[BinaryIO]:
    """Give a file that takes the place of `path` in one step, once all of it is written."""
    path = path.resolve()
    if path.exists() and not stat.S_ISREG(path.stat().st_mode):
        with path.open("wb") as file:
            yield file
        return
    import tempfile

    handle, name = tempfile.mkstemp(prefix=f".{path.name[:40]}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
        os.chmod(name, _mode(path))
        os.replace(name, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise


def _mode(path: Path) -> int:
    if path.exists():
        return stat.S_IMODE(path.stat().st_mode)
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
