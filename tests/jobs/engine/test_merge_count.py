"""What a merge costs its publisher: the count is written by a thread, for many merges together."""

import threading
from collections import Counter
from collections.abc import Iterator

import pytest
from django.conf import LazySettings
from django.db import transaction

from tailrace.events.publish import NewEvent, publish
from tailrace.jobs.engine.inserting import merging
from tailrace.jobs.engine.waking import wake
from tailrace.jobs.enqueue import enqueue
from tailrace.jobs.models import Job
from tests import forks
from tests.kit import ROOT, at_once, wait_until
from tests.sandbox.event_types import Happened
from tests.sandbox.handlers import Working

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def threads(settings: LazySettings, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Wake-ups and counts are left to threads, which end with the test."""
    settings.JOBS_WAKE = "thread"
    monkeypatch.setattr("tailrace.jobs.engine.coalesce.IDLE_SECONDS", 0.01)
    yield
    names = {"waker", "merge_counter"}
    wait_until(lambda: not names & {thread.name for thread in threading.enumerate()})


def test_a_process_writes_the_counts_of_a_burst_together(threads, monkeypatch) -> None:
    calls: list[Counter[int]] = []
    count = merging._count
    monkeypatch.setattr(merging, "_count", lambda merges: calls.append(merges) or count(merges))
    job = enqueue(Working, unique_key="k")
    with transaction.atomic():  # locks the job, so that what is counted meanwhile is kept
        for _ in range(40):
            enqueue(Working, unique_key="k")
        for _ in range(3):
            at_once(1, lambda _: enqueue(Working, unique_key="k"))
        wait_until(lambda: calls)
    wait_until(lambda: Job.objects.get().merged == 43)
    assert merging.counter.flush(20)
    assert {id for merges in calls for id in merges} == {job}
    assert len(calls) < 43


def test_a_process_that_merges_and_ends_has_counted(process_env) -> None:
    enqueue(Working, unique_key="k")
    code = (
        "import django; django.setup();"
        "from tailrace.jobs.enqueue import enqueue;"
        "[enqueue('test.work', {}, unique_key='k') for _ in range(3)]"
    )
    forks.run(
        ["-c", code],
        cwd=ROOT, env=process_env | {"DJANGO_SETTINGS_MODULE": "tests.settings"},
        check=True, timeout=300,
    )  # fmt: skip
    assert Job.objects.get().merged == 3


@pytest.mark.parametrize("key", [None, "new", "known"])
def test_a_job_costs_one_statement(key, threads, django_assert_num_queries) -> None:
    enqueue(Working, unique_key="known", delay=60)
    with django_assert_num_queries(1):
        enqueue(Working, unique_key=key, delay=60)
    assert merging.counter.flush(20)


def test_a_merge_of_an_event_costs_no_statement(threads, django_assert_num_queries) -> None:
    for merged in (0, 1):
        with transaction.atomic(), django_assert_num_queries(2):  # the event and its jobs
            publish(NewEvent(Happened, {"who": "w"}))
        assert wake.waker.flush(20)
        assert merging.counter.flush(20)
        assert Job.objects.filter(handler="test.debounced", state="skipped").count() == merged
