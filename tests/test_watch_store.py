"""The state folder: what it keeps, and what it stands."""

from __future__ import annotations

import os
import sqlite3
import stat
from pathlib import Path

import pytest

from loopdetect.errors import UsageProblem
from loopdetect.state.store import KEPT_EVENTS, NAME, Place, Store

PLACE = Place(1, 2**63 + 5, 77, b"head\0", b"tail\xff", 5, "0.1", b"state")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "state"


def test_everything_comes_back_as_it_was(folder: Path) -> None:
    name = os.fsdecode(b"odd-\xff.log")
    store = Store(folder)
    with store.together():
        store.save_place(name, PLACE)
        store.save_memory(name, None, {"run": 1})
        store.save_memory(name, "web-1", {"run": 2})
        store.add_event("a-1", "one")
        store.add_event("a-2", "two")
        store.add_event("a-1", "again")
        store.add_delivery("--webhook", "a-1", "body")
        store.printed(["a-1"])
    store.close()
    again = Store(folder)
    assert again.place(name) == PLACE
    assert again.memories(name) == {None: {"run": 1}, "web-1": {"run": 2}}
    assert again.unprinted() == [("a-2", "two")]
    assert again.undelivered("--webhook") == [("a-1", "body")]
    again.delivered("--webhook", "a-1")
    assert again.undelivered("--webhook") == []
    assert again.place("other") is None
    again.close()


def test_what_fails_in_the_middle_leaves_nothing(folder: Path) -> None:
    store = Store(folder)

    def fail() -> None:
        with store.together():
            store.add_event("a-1", "one")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert store.unprinted() == []
    store.close()


def test_only_its_owner_can_read_it(folder: Path) -> None:
    store = Store(folder)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((folder / NAME).stat().st_mode) == 0o600
    store.close()


def test_a_second_watcher_is_told_to_use_another_folder(folder: Path) -> None:
    store = Store(folder)
    with pytest.raises(UsageProblem, match="another loopdetect watch"):
        Store(folder)
    store.close()
    Store(folder).close()


def test_a_broken_file_is_put_aside(folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / NAME).write_bytes(b"this is no database at all" * 100)
    store = Store(folder)
    assert store.unprinted() == []
    assert (folder / "watch.broken").exists()
    store.close()


def test_the_file_of_another_schema_is_begun_anew(folder: Path) -> None:
    store = Store(folder)
    store.add_event("a-1", "one")
    store.close()
    base = sqlite3.connect(folder / NAME)
    base.execute("PRAGMA user_version = 99")
    base.close()
    again = Store(folder)
    assert again.unprinted() == []
    again.close()


def test_old_events_are_dropped(folder: Path) -> None:
    store = Store(folder)
    ids = [f"a-{number}" for number in range(KEPT_EVENTS + 50)]
    with store.together():
        for each in ids:
            store.add_event(each, "x")
        store.printed(ids)
    store.close()
    base = sqlite3.connect(folder / NAME)
    assert base.execute("SELECT count(*) FROM event").fetchone()[0] == KEPT_EVENTS
    base.close()


def test_a_folder_that_cannot_be_made_is_a_users_problem(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageProblem, match="cannot keep state"):
        Store(tmp_path / "file" / "state")
