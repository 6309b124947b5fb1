"""One line on standard error for each problem."""

from __future__ import annotations

import sys

from loopdetect.render.escape import visible


def _ended(sentence: str) -> str:
    return sentence if sentence.endswith(("?", "!")) else sentence.rstrip(".") + "."


def complain(message: str, hint: str | None = None, word: str = "error") -> None:
    """Write what happened and what to do, in one line; never fails."""
    text = " ".join(message.split("\n"))
    if hint:
        told = " ".join(hint.split("\n"))
        text = f"{_ended(text)} {told[:1].upper()}{told[1:]}"
    line = f"loopdetect: {word}: {visible(text)}\n"
    try:
        encoding = sys.stderr.encoding or "utf-8"
        sys.stderr.write(line.encode(encoding, "backslashreplace").decode(encoding))
        sys.stderr.flush()
    except (OSError, ValueError, AttributeError):
        return
