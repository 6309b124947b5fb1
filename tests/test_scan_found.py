"""Which logs the PATHs of a scan mean."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from loopdetect.errors import SourceError
from loopdetect.scan.found import Found, find, grouped
from loopdetect.scan.objects import chunks_of, is_address, listed
from loopdetect.source.histories import History

Make = Callable[..., Path]


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Make:
    monkeypatch.chdir(tmp_path)

    def make(*names: str) -> Path:
        for name in names:
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b"hello\n")
        return tmp_path

    return make


@pytest.fixture
def store() -> Iterator[Callable[..., str]]:
    fsspec = pytest.importorskip("fsspec", reason="addresses need fsspec")
    system = fsspec.filesystem("memory")
    top = f"/bucket-{uuid.uuid4().hex}"

    def make(*names: str) -> str:
        for name in names:
            system.pipe(f"{top}/{name}", b"hello\n")
        return f"memory:/{top}"

    yield make
    if system.exists(top):
        system.rm(top, recursive=True)


def names(found: Found) -> list[str]:
    assert found.troubles == []
    return list(found.files)


def test_a_folder_means_every_file_below_it_that_is_not_hidden(tree: Make) -> None:
    tree(
        "logs/b.log", "logs/a", "logs/deep/er/c.txt", "logs/.hidden", "logs/.git/config",
        "logs/b.expect.toml", "logs/z.log.gz",
    )  # fmt: skip
    expected = ["logs/a", "logs/b.log", "logs/z.log.gz", "logs/deep/er/c.txt"]
    assert names(find(["logs"])) == expected
    assert names(find(["./logs/"])) == expected
    assert names(find(["logs/*"])) == [*expected[:2], expected[3], expected[2]]


def test_this_folder_means_names_as_they_are(tree: Make) -> None:
    tree("a.log", "deep/b.log")
    assert names(find(["."])) == ["a.log", "deep/b.log"]


def test_the_order_is_that_of_the_arguments_and_each_file_counts_once(tree: Make) -> None:
    tree("b/1.log", "a/2.log")
    assert names(find(["b", "a/2.log", "a", "b/1.log", "b"])) == ["b/1.log", "a/2.log"]


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("*.log", ["a.log"]),
        ("**/*.log", ["a.log", "deep/b.log"]),
        ("d*", ["deep/b.log"]),
        ("**", ["a.log", "deep/b.log"]),
        ("file://a.log", ["a.log"]),
    ],
)
def test_a_glob_means_files_and_what_is_in_folders(
    pattern: str, expected: list[str], tree: Make
) -> None:
    tree("a.log", "deep/b.log", "x.expect.toml")
    assert names(find([pattern])) == expected


def test_a_file_with_the_name_of_a_glob_is_that_file(tree: Make) -> None:
    tree("a[1].log", "a1.log")
    assert names(find(["a[1].log"])) == ["a[1].log"]


def test_a_link_counts_only_where_it_leads_to_something_new(tree: Make) -> None:
    top = tree("logs/a.log", "pods/0.log", "pods/1.log", "logs/.runs/5.log")
    for name, target in {
        "same.log": "logs/a.log", "pod.log": "pods/0.log", "pod-again.log": "pods/0.log",
        "newest.log": "logs/.runs/5.log", "gone.log": "nowhere", "loop": "logs",
    }.items():  # fmt: skip
        (top / "logs" / name).symlink_to(top / target)
    assert names(find(["logs"])) == ["logs/a.log", "logs/newest.log", "logs/pod-again.log"]


def test_the_file_that_is_written_to_is_no_log(tree: Make) -> None:
    tree("logs/a.log", "logs/report.json")
    assert names(find(["logs"], "logs/../logs/report.json")) == ["logs/a.log"]


@pytest.mark.parametrize(
    ("path", "missing", "text"),
    [
        ("gone.log", True, "gone.log: no such file"),
        ("a.log/b", True, "a.log/b: no such file"),
        ("broken.log", True, "broken.log: no such file"),
        ("x" * 300, True, f"{'x' * 300}: the name is too long"),
        ("*.gz", True, "*.gz: no file matches"),
        ("empty", False, "empty: there is no log in it"),
        ("unknown-store://x", True, "Protocol not known"),
    ],
)
def test_what_is_not_there_is_said(path: str, missing: bool, text: str, tree: Make) -> None:
    if "://" in path:
        pytest.importorskip("fsspec", reason="addresses need fsspec")
    top = tree("a.log")
    (top / "empty").mkdir()
    (top / "broken.log").symlink_to("nowhere")
    found = find(["a.log", path])
    assert list(found.files) == ["a.log"]
    assert found.missing is missing
    (trouble,) = found.troubles
    assert text in trouble.text
    assert trouble.hint


@pytest.mark.skipif(os.geteuid() == 0, reason="root may look into every folder")
def test_a_folder_that_is_closed_is_said(tree: Make) -> None:
    top = tree("logs/a.log", "logs/closed/b.log")
    (top / "logs/closed").chmod(0)
    found = find(["logs"])
    (top / "logs/closed").chmod(0o700)
    assert list(found.files) == ["logs/a.log"]
    assert "logs/closed: cannot look into it" in found.troubles[0].text


def test_rotated_files_are_one_history_and_so_are_restarts(tree: Make) -> None:
    tree("n/s.log", "n/s.log.1", "n/s.log.2", "pod/0.log", "pod/1.log")
    found = find(["."])
    logs = grouped(found, join=True, since=None)
    assert logs.histories == (
        History(("n/s.log.2", "n/s.log.1", "n/s.log")),
        History(("pod/0.log", "pod/1.log"), restarts=True),
    )
    assert logs.sizes == (18, 12)
    assert len(grouped(found, join=False, since=None).histories) == 5


def test_only_logs_that_were_written_to_since_then_are_taken(tree: Make) -> None:
    top = tree("old.log", "new.log", "s.log", "s.log.1")
    for name in ("old.log", "s.log.1"):
        os.utime(top / name, (1000, 1000))
    chosen = grouped(find(["."]), join=True, since=2000).histories
    assert [history.files for history in chosen] == [("new.log",), ("s.log.1", "s.log")]


def test_pipes_and_standard_input_are_read_here(tree: Make) -> None:
    top = tree("a.log")
    os.mkfifo(top / "pipe")
    logs = grouped(find(["-", "a.log", "pipe"]), join=True, since=None)
    assert [logs.histories[index].name for index in sorted(logs.here)] == ["-", "pipe"]
    assert names(find(["."])) == ["a.log"]


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("s3://b/k", True), ("gs://b", True), ("hdfs://nn:8020/x", True), ("memory://x", True),
        ("simplecache::s3://b/k", True), ("file:///x", False), ("/x/y://z", False), ("C://x", False),
        ("-", False), ("a:b", False),
    ],
)  # fmt: skip
def test_addresses_are_told_from_paths(word: str, expected: bool) -> None:
    assert is_address(word) is expected


def test_an_address_means_an_object_or_all_below_it(store: Callable[..., str]) -> None:
    top = store("n1/a.log", "n1/.hidden", "n2/b.log", "n2/b.expect.toml", "n2/.git/x")
    assert names(find([top])) == [f"{top}/n1/a.log", f"{top}/n2/b.log"]
    assert names(find([f"{top}/n2/"])) == [f"{top}/n2/b.log"]
    assert names(find([f"{top}/n1/a.log"])) == [f"{top}/n1/a.log"]
    assert names(find([f"{top}/*/b.log", f"{top}/n?"])) == [f"{top}/n2/b.log", f"{top}/n1/a.log"]
    logs = grouped(find([top]), join=True, since=None)
    assert logs.sizes == (6, 6)
    assert logs.here == {0, 1}


def test_objects_are_rotated_too_and_have_times(store: Callable[..., str]) -> None:
    top = store("s.log", "s.log.1")
    (history,) = grouped(find([top]), join=True, since=1_000_000_000).histories
    assert history.files == (f"{top}/s.log.1", f"{top}/s.log")
    assert grouped(find([top]), join=True, since=90_000_000_000).histories == ()


@pytest.mark.parametrize(
    ("address", "text"),
    [("gone.log", "no such object"), ("*.gz", "no object matches"), ("n/x?", "no object matches")],
)
def test_an_address_that_leads_nowhere_is_said(
    address: str, text: str, store: Callable[..., str]
) -> None:
    top = store("n/a.log")
    found = find([f"{top}/{address}"])
    assert found.missing
    assert text in found.troubles[0].text


def test_bytes_of_an_object_are_read(store: Callable[..., str]) -> None:
    top = store("a.log")
    assert b"".join(chunks_of(f"{top}/a.log")) == b"hello\n"
    with pytest.raises(SourceError, match="no such object"):
        list(chunks_of(f"{top}/b.log"))


def test_a_store_that_breaks_off_leaves_what_was_read(
    store: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import io

    from fsspec.implementations.memory import MemoryFileSystem

    class Breaking(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            if self.tell():
                raise RuntimeError("the link broke\nand more")
            return super().read(3)

    top = store("a.log")
    monkeypatch.setattr(MemoryFileSystem, "open", lambda *_, **__: Breaking(b"hello"))
    chunks = chunks_of(f"{top}/a.log")
    assert next(chunks) == b"hel"
    with pytest.raises(OSError, match=r"^RuntimeError: the link broke$"):
        next(chunks)


def test_a_store_that_refuses_is_one_line(
    store: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from fsspec.implementations.memory import MemoryFileSystem

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError("Access Denied")

    top = store("a.log")
    monkeypatch.setattr(MemoryFileSystem, "info", refuse)
    with pytest.raises(SourceError, match="cannot be listed: PermissionError: Access Denied"):
        listed(top)


def test_without_fsspec_an_address_says_what_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "fsspec.core", None)
    found = find(["s3://bucket/logs"])
    assert found.missing
    assert found.troubles[0].text == "s3://bucket/logs: this needs the package fsspec"
    assert found.troubles[0].hint == "install it: pip install 'loopdetect-llm[objects]'"


def test_the_host_of_an_address_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    class System:
        """As HDFS: the host is no part of the path."""

        def info(self, path: str) -> dict[str, object]:
            return {"name": path, "type": "directory"}

        def find(self, path: str, detail: bool) -> dict[str, dict[str, object]]:
            return {f"{path}/a.log": {"type": "file", "size": 3, "mtime": 5}}

    monkeypatch.setattr("loopdetect.scan.objects._filesystem", lambda address: (System(), "/logs"))
    (found,) = listed("hdfs://name-node:8020/logs/")
    assert (found.name, found.size, found.modified) == ("hdfs://name-node:8020/logs/a.log", 3, 5.0)
