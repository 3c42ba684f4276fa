"""What publishers of one unique key wait for, and for how long."""

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db import connection, transaction
from structlog.testing import capture_logs

from tailrace.db import locks
from tailrace.db.query import query
from tailrace.events.models import Event
from tailrace.events.publish import NewEvent, publish
from tailrace.jobs.enqueue import Blocked, enqueue, enqueue_many
from tailrace.jobs.models import Job
from tests.kit import PATIENCE, at_once, held, sessions_that_wait, wait_until
from tests.sandbox.event_types import Happened
from tests.sandbox.handlers import Working

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def impatient(monkeypatch) -> None:
    monkeypatch.setattr(locks, "WAIT_SECONDS", 0.2)


def keyed(*keys: str) -> list[dict[str, str]]:
    return [{"unique_key": key} for key in keys]


@pytest.fixture
def no_deadlock() -> Iterator[None]:
    """A call that has opened its own transaction would be repeated, and succeed."""
    with capture_logs() as logs:
        yield
    assert [line for line in logs if line["event"] == "transaction.repeated"] == []


def test_the_keys_of_a_call_are_taken_in_one_order(no_deadlock) -> None:
    """Of two calls with the same keys, one waits and is merged: no deadlock."""

    def work(number: int) -> int:
        return enqueue_many(Working, keyed(*(("a", "b", "c") if number % 2 else ("c", "b", "a"))))

    for turn in range(10):
        assert sum(at_once(6, work)) == 3, turn
        Job.objects.all().delete()


def test_a_call_of_many_keys_waits_at_the_first_that_is_held(no_deadlock) -> None:
    """It holds no key behind that one, so whoever holds it can take the others."""
    taken: list[int] = []
    thread = threading.Thread(
        target=lambda: taken.append(at_once(1, lambda _: enqueue_many(Working, keyed("b", "a")))[0])
    )
    with transaction.atomic():
        enqueue(Working, unique_key="a")
        thread.start()
        wait_until(sessions_that_wait)
        enqueue(Working, unique_key="b")
    thread.join(PATIENCE)
    assert taken == [0]
    assert Job.objects.count() == 2


def test_a_call_that_replaces_waits_at_the_first_job_that_is_held(monkeypatch) -> None:
    """It has locked none behind that one."""
    monkeypatch.setattr(Working, "merge", "replace")
    monkeypatch.setattr(locks, "WAIT_SECONDS", 60)
    enqueue_many(Working, keyed("a", "b"))
    thread = threading.Thread(
        target=lambda: at_once(1, lambda _: enqueue_many(Working, keyed("b", "a")))
    )
    with held("SELECT 1 FROM tailrace_jobs_job WHERE unique_key = 'a' FOR UPDATE"):
        thread.start()
        wait_until(sessions_that_wait)
        enqueue(Working, unique_key="b")
    thread.join(PATIENCE)
    assert set(Job.objects.values_list("unique_key", "merged")) == {("a", 1), ("b", 2)}


def test_ids_follow_the_order_of_the_call() -> None:
    enqueue_many(Working, [{"unique_key": key, "lane": key} for key in "cab"])
    assert "".join(Job.objects.order_by("id").values_list("lane", flat=True)) == "cab"


@pytest.mark.parametrize("merge", ["keep", "replace"])
def test_a_publisher_gives_up_on_a_key_that_is_held(merge, monkeypatch, impatient) -> None:
    monkeypatch.setattr(Working, "merge", merge)
    message = r"transaction has locked this for too long: the unique key 'k' of test\.work"
    with transaction.atomic():
        enqueue(Working, unique_key="k")
        with pytest.raises(Blocked, match=message):
            at_once(1, lambda _: enqueue(Working, unique_key="k"))
    assert Job.objects.count() == 1


def test_a_replacement_waits_for_another_that_is_open(monkeypatch, impatient) -> None:
    monkeypatch.setattr(Working, "merge", "replace")
    enqueue(Working, unique_key="k")
    with transaction.atomic():
        enqueue(Working, unique_key="k")
        with pytest.raises(Blocked):
            at_once(1, lambda _: enqueue(Working, unique_key="k"))


def test_a_publish_of_its_own_transaction_is_tried_again(monkeypatch) -> None:
    """The other transaction ends after the first try."""
    monkeypatch.setattr(locks, "WAIT_SECONDS", 0.2)
    first = NewEvent(Happened, {"who": "w", "n": 1})
    tried, ended = threading.Event(), threading.Event()
    monkeypatch.setattr(locks.log, "warning", lambda *_, **__: (tried.set(), ended.wait(PATIENCE)))

    def other() -> Any:
        return publish(NewEvent(Happened, {"who": "w", "n": 2}))

    thread = threading.Thread(target=lambda: at_once(1, lambda _: other()))
    with transaction.atomic():
        publish(first)
        thread.start()
        assert tried.wait(PATIENCE)
    ended.set()
    thread.join(PATIENCE)
    assert Event.objects.count() == 2
    jobs = Job.objects.filter(handler="test.debounced").values_list("state", flat=True)
    assert sorted(jobs) == ["pending", "skipped"]


def test_in_the_callers_transaction_it_is_tried_once(impatient) -> None:
    def other() -> None:
        with transaction.atomic():
            with pytest.raises(Blocked):
                publish(NewEvent(Happened, {"who": "w"}))
            transaction.set_rollback(True)

    with transaction.atomic():
        publish(NewEvent(Happened, {"who": "w"}))
        at_once(1, lambda _: other())
    assert Event.objects.count() == 1


def test_a_deadlock_across_calls_is_named() -> None:
    """Two transactions take a and b in different order, in calls of their own."""
    barrier = threading.Barrier(2)

    def work(number: int) -> str:
        try:
            with transaction.atomic():
                enqueue(Working, unique_key="ab"[number])
                barrier.wait(PATIENCE)
                enqueue(Working, unique_key="ba"[number])
        except Blocked as error:
            return str(error)
        return ""

    messages = at_once(2, work)
    assert sorted(map(bool, messages)) == [False, True]
    assert "(a deadlock)" in "".join(messages)


@pytest.mark.parametrize("own", ["0", "5s", "50ms"])
@pytest.mark.parametrize(
    "work",
    [
        lambda: enqueue(Working, unique_key="new"),
        lambda: enqueue(Working, unique_key="k"),
        lambda: publish(NewEvent(Happened, {"who": "w"})),
    ],
    ids=["insert", "merge", "publish"],
)
def test_the_callers_lock_timeout_stays(own: str, work: Callable[[], Any]) -> None:
    enqueue(Working, unique_key="k")
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute(f"SET LOCAL lock_timeout = '{own}'")
        work()
        assert query("SHOW lock_timeout") == [(own,)]
    assert query("SHOW lock_timeout") == [("0",)]


def test_a_shorter_lock_timeout_of_the_caller_holds(monkeypatch) -> None:
    monkeypatch.setattr(locks, "WAIT_SECONDS", 3600)

    def other() -> None:
        with transaction.atomic():
            query("SELECT set_config('lock_timeout', '50ms', true)")
            enqueue(Working, unique_key="k")

    with transaction.atomic():
        enqueue(Working, unique_key="k")
        with pytest.raises(Blocked):
            at_once(1, lambda _: other())
