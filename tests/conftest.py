"""Options and fixtures that every test may use."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

GOLDEN = Path(__file__).parent / "golden"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write the expected outputs anew")


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Keep the profiles and colour wishes of whoever runs the tests out of them."""
    for name in ("NO_COLOR", "LOOPDETECT_PROFILES", "LOOPDETECT_DEBUG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "no-config"))


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Compare a text with a file under tests/golden, or write it with --update-golden."""

    def compare(name: str, text: str) -> None:
        path = GOLDEN / name
        data = text.encode("utf-8", "surrogateescape")
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        assert path.exists(), f"{name} is missing: run pytest --update-golden"
        assert data == path.read_bytes()

    return compare
