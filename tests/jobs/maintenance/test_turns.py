"""One process at a time gets the turn of each piece of upkeep, and none holds it."""

import pytest
from django.db import connection, transaction

from tailrace.jobs.engine.maintenance.workers import turns
from tailrace.jobs.models import Pulse
from tests.kit import at_once

pytestmark = pytest.mark.django_db(transaction=True)


def take(by: str = "me", interval: float = 1000) -> bool:
    return turns.take("tick", interval, by)[0]


def test_a_turn_comes_once_per_interval(clock) -> None:
    clock.stop()
    assert not take()  # the row is created, and nobody has missed a turn yet
    taken = []
    for number in range(1, 41):
        clock.step(100.1)
        if take():
            taken.append(number)
    assert taken == [10, 20, 30, 40]


def test_one_of_many_gets_the_turn(clock) -> None:
    take()
    for _ in range(5):
        clock.step(1100)
        assert sum(at_once(8, lambda number: take(f"process {number}"))) == 1
    assert Pulse.objects.get(pk="tick").by.startswith("process ")


def test_the_wait_is_what_is_left_of_the_interval(clock) -> None:
    take()
    clock.step(400)
    mine, wait = turns.take("tick", 1000, "me")
    assert not mine
    assert 0 < wait <= 600


def test_a_locked_turn_makes_nobody_wait(clock) -> None:
    take()
    clock.step(1100)

    def others(_number: int) -> list[bool]:
        with connection.cursor() as cursor:
            cursor.execute("SET lock_timeout = '60s'")
        return [take(), take()]

    with transaction.atomic():
        Pulse.objects.select_for_update().get(pk="tick")
        assert at_once(1, others) == [[False, False]]
        clock.step(1000 * turns.OVERDUE)
        # Nobody could take it for long: it is done without being taken.
        assert at_once(1, others) == [[True, True]]
    assert take()
    assert not take()


def test_a_database_clock_set_back_stops_no_turn(clock) -> None:
    take()
    clock.step(1100)
    assert take()
    clock.step(-360_000)
    assert take()
    assert not take()
