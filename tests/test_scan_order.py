"""In which order logs are read and told, and by how many processes."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopdetect.scan import processors
from loopdetect.scan.order import FIRST_A_WORKER, FIRST_AT_LEAST, in_turn, largest_first
from loopdetect.scan.outcome import Outcome


def test_the_largest_are_read_first_and_equals_in_order() -> None:
    assert list(largest_first([5, 9, 5, 0, 7], 2)) == [1, 4, 0, 2, 3]


@given(st.lists(st.integers(0, 50), max_size=400))
def test_every_log_is_read_once(sizes: list[int]) -> None:
    assert sorted(largest_first(sizes, 2)) == list(range(len(sizes)))


def test_of_very_many_only_some_are_taken_out_of_turn() -> None:
    count = FIRST_AT_LEAST + 1000
    order = list(largest_first(list(range(count)), 1))
    assert order[:2] == [count - 1, count - 2]
    assert order[FIRST_AT_LEAST:] == list(range(1000))
    assert list(largest_first([1] * 5000, 100))[FIRST_A_WORKER * 100] == FIRST_A_WORKER * 100


@given(st.permutations(range(30)))
def test_results_come_in_turn_whatever_is_done_first(done: list[int]) -> None:
    outcomes = [Outcome(None, lines=str(n)) for n in range(30)]
    assert list(in_turn((n, outcomes[n]) for n in done)) == list(enumerate(outcomes))


def test_a_result_is_told_as_soon_as_its_turn_has_come() -> None:
    asked: list[int] = []

    def done() -> object:
        for index in (1, 0, 2):
            asked.append(index)
            yield index, Outcome(None)

    turns = in_turn(done())  # type: ignore[arg-type]
    assert next(turns)[0] == 0
    assert asked == [1, 0]


def test_what_waits_for_its_turn_stays_little() -> None:
    dice = random.Random(7)
    sizes = [dice.randrange(1000) for _ in range(20_000)]
    waiting, turn, most = set(), 0, 0
    for index in largest_first(sizes, 8):
        waiting.add(index)
        while turn in waiting:
            waiting.discard(turn)
            turn += 1
        most = max(most, len(waiting))
    assert turn == len(sizes)
    assert most <= FIRST_AT_LEAST


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"cpu.max": "50000 100000\n"}, 1),
        ({"cpu.max": "100000 100000\n"}, 1),
        ({"cpu.max": "max 100000\n"}, None),
        ({"cpu.max": "nonsense\n"}, None),
        ({"cpu/cpu.cfs_quota_us": "100000\n", "cpu/cpu.cfs_period_us": "100000\n"}, 1),
        ({"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, None),
        ({}, None),
    ],
)
def test_a_container_has_the_processors_of_its_limit(
    files: dict[str, str], expected: int | None, tmp_path: Path
) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert processors.usable(tmp_path) == (expected or processors.usable(tmp_path / "none"))


@pytest.mark.parametrize(
    ("logs", "size", "most", "expected"),
    [(0, 0, 8, 1), (3, 10_000, 8, 1), (1, 10**12, 8, 1), (5000, 0, 8, 8), (2, 10**10, 8, 2)],
)
def test_as_many_workers_as_pay_off(logs: int, size: int, most: int, expected: int) -> None:
    assert processors.workers(logs, size, most) == expected
