"""Token buckets and windows, which all workers share."""

import pytest

from jobs.destinations import rate_limit
from tests.kit import at_once

pytestmark = pytest.mark.django_db


def test_it_holds_a_burst_and_is_refilled_at_its_rate(clock) -> None:
    def take() -> float:
        return rate_limit.take_token("x", rate=1 / 3600, burst=3)

    assert [take() for _ in range(3)] == [0, 0, 0]
    assert 3000 < take() <= 3600
    clock.step(3600)
    assert take() == 0
    assert 3000 < take() <= 3600
    clock.step(36_000)
    assert [take() for _ in range(3)] == [0, 0, 0]
    assert take() > 0


def test_each_destination_has_its_own() -> None:
    assert rate_limit.take_token("x", rate=0.001, burst=1) == 0
    assert rate_limit.take_token("x", rate=0.001, burst=1) > 0
    assert rate_limit.take_token("y", rate=0.001, burst=1) == 0


def test_a_window_gives_its_limit_and_then_nothing(clock) -> None:
    def take(**counts: int) -> dict[str, int]:
        return rate_limit.take_from_window(counts, limit=20, seconds=3600)

    assert take(a=15, b=25) == {"a": 15, "b": 20}
    assert take(a=15, b=1) == {"a": 5, "b": 0}
    assert take(a=1, c=0) == {"a": 0, "c": 0}
    clock.step(3601)
    assert take(a=7, b=30, c=20) == {"a": 7, "b": 20, "c": 20}
    assert take(a=30) == {"a": 13}


@pytest.mark.django_db(transaction=True)
def test_takers_at_once_get_no_more_than_a_bucket_holds() -> None:
    def take(_: int) -> int:
        return [rate_limit.take_token("x", rate=0.001, burst=20) for _ in range(7)].count(0)

    assert sum(at_once(10, take)) == 20


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("begun", [False, True])
def test_takers_at_once_get_no_more_than_a_window_holds(begun: bool) -> None:
    if begun:
        rate_limit.take_from_window({"a": 0, "b": 0}, 20, 3600)

    def take(number: int) -> dict[str, int]:
        names = ["a", "b"] if number % 2 else ["b", "a"]
        return rate_limit.take_from_window(dict.fromkeys(names, 7), 20, 3600)

    given = at_once(10, take)
    assert [sum(row[name] for row in given) for name in "ab"] == [20, 20]


def test_a_paused_bucket_gives_nothing_until_the_end(clock) -> None:
    def take() -> float:
        return rate_limit.take_token("x", rate=1, burst=5)

    assert take() == 0
    rate_limit.pause("x", rate=1, seconds=20)
    assert 19 < take() <= 20
    rate_limit.pause("x", rate=1, seconds=1)
    assert take() > 18, "the longer pause counts"
    clock.step(20.1)
    assert take() == 0
    assert 0 < take() <= 1, "no burst after it"


def test_several_tokens_are_taken_by_one_statement() -> None:
    def take(wanted: int) -> tuple[int, float]:
        return rate_limit.take_tokens("x", rate=0.01, burst=5, wanted=wanted)

    assert take(1) == (1, 0)
    assert take(2) == (2, 0)
    count, wait = take(4)
    assert count == 2
    assert 95 < wait <= 100
    assert take(3)[0] == 0
    assert take(3)[1] > 90


@pytest.mark.django_db(transaction=True)
def test_takers_of_several_at_once_get_no_more_than_a_bucket_holds() -> None:
    def take(number: int) -> int:
        counts = [rate_limit.take_tokens("x", 0.001, 40, number % 4 + 1)[0] for _ in range(7)]
        return sum(counts)

    assert sum(at_once(10, take)) == 40
