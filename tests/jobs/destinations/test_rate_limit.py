"""Token buckets and windows, which all workers share."""

import pytest

from tailrace.jobs.destinations import rate_limit
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


def test_tokens_are_reserved_ahead_of_their_time(clock) -> None:
    def reserve(wanted: int) -> tuple[list[float], float]:
        waits, after = rate_limit.reserve_tokens("x", rate=0.01, burst=2, ahead=300, wanted=wanted)
        return [round(wait, -1) for wait in waits], round(after, -1)

    assert reserve(3) == ([0, 0, 100], 200)
    assert reserve(5) == ([200, 300], 400), "what comes later than 300 s is not taken"
    assert reserve(5) == ([], 400)
    clock.step(150)
    assert reserve(5) == ([250], 350), "the others' are theirs"
    clock.step(3600)
    assert reserve(2) == ([0, 0], 100)


def test_a_pause_counts_behind_what_is_reserved(clock) -> None:
    rate_limit.reserve_tokens("x", rate=1, burst=1, ahead=5, wanted=9)
    rate_limit.pause("x", rate=1, seconds=20)
    waits, after = rate_limit.reserve_tokens("x", rate=1, burst=1, ahead=5, wanted=9)
    assert not waits
    assert 19 < after <= 20


@pytest.mark.django_db(transaction=True)
def test_takers_of_several_at_once_get_no_more_than_a_bucket_holds() -> None:
    def take(number: int) -> list[float]:
        calls = [
            rate_limit.reserve_tokens("x", 0.001, 20, 20_000, number % 4 + 1) for _ in range(7)
        ]
        return [wait for waits, _after in calls for wait in waits]

    waits = sorted(wait for waits in at_once(10, take) for wait in waits)
    assert len(waits) == 40
    expected = [0.0] * 20 + [1000.0 * number for number in range(1, 21)]
    assert all(abs(wait - each) < 60 for wait, each in zip(waits, expected, strict=True))
