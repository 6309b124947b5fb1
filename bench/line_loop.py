"""The obvious way: every line, one alternation of all patterns. `python bench/line_loop.py PATTERNS LOG`."""

from __future__ import annotations

import re
import sys
from pathlib import Path


def main() -> int:
    """Count the lines that a pattern speaks for."""
    patterns = Path(sys.argv[1]).read_text("utf-8").splitlines()
    each = [re.compile(text.encode()) for text in patterns]
    with open(sys.argv[2], "rb") as log:
        found = sum(any(pattern.search(line) for pattern in each) for line in log)
    print(found)  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main())
