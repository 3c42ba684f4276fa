"""Token buckets, which all workers share."""

import pytest

from jobs import bucket

pytestmark = pytest.mark.django_db


def test_it_holds_a_burst_and_is_refilled_at_its_rate(clock) -> None:
    assert [bucket.take("x", rate=2, burst=3) for _ in range(3)] == [0, 0, 0]
    assert bucket.take("x", rate=2, burst=3) == pytest.approx(0.5, abs=0.2)
    clock.step(0.5)
    assert bucket.take("x", rate=2, burst=3) == 0
    assert bucket.take("x", rate=2, burst=3) == pytest.approx(0.5, abs=0.2)
    clock.step(3600)
    assert [bucket.take("x", rate=2, burst=3) for _ in range(3)] == [0, 0, 0]
    assert bucket.take("x", rate=2, burst=3) > 0


def test_each_destination_has_its_own() -> None:
    assert bucket.take("x", rate=1, burst=1) == 0
    assert bucket.take("x", rate=1, burst=1) > 0
    assert bucket.take("y", rate=1, burst=1) == 0
