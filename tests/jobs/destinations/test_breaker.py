"""Circuit breakers, which all workers share."""

import pytest

from tailrace.jobs.destinations import breaker
from tailrace.jobs.models import Breaker
from tests.kit import at_once

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize("known", [False, True])
def test_failures_at_once_are_all_counted(known: bool) -> None:
    if known:
        breaker.record_failure("x", "500", at_once=False)
    waits = at_once(8, lambda _: breaker.record_failure("x", "500", at_once=False))
    row = Breaker.objects.get()
    assert (row.failures, row.opened) == (8 + known, 1)
    assert sum(wait == 0 for wait in waits) == 4 - known


def test_what_fails_at_once_opens_a_breaker_once() -> None:
    waits = at_once(8, lambda _: breaker.record_failure("x", "refused", at_once=True))
    row = Breaker.objects.get()
    assert (row.failures, row.opened) == (8, 1), "each opening would double how long it is open"
    assert min(waits) > 0


def test_a_failure_from_before_it_opened_shortens_no_wait() -> None:
    breaker.open_for("x", "429", seconds=600)
    assert breaker.record_failure("x", "refused", at_once=True) > 500


def test_a_probe_that_fails_opens_it_for_twice_as_long(clock) -> None:
    breaker.record_failure("x", "refused", at_once=True)
    clock.step(6)
    assert breaker.check("x").probe
    assert breaker.record_failure("x", "refused", at_once=True) > 20, "the probe is on its way"
    assert breaker.record_failure("x", "refused", at_once=True, probe=True) == 10


def test_workers_at_once_get_one_probe(clock) -> None:
    breaker.record_failure("x", "refused", at_once=True)
    clock.step(6)
    states = at_once(8, lambda _: breaker.check("x"))
    assert [state.probe for state in states].count(True) == 1
