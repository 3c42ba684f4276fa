"""Jobs that are merged into the unstarted job of their unique key."""

from typing import Any

import pytest
from django.db import transaction

from tailrace.db.query import query
from tailrace.events.publish import NewEvent, publish
from tailrace.jobs.enqueue import enqueue, enqueue_many
from tailrace.jobs.handler import ClaimedJob, Handler
from tailrace.jobs.models import Job, QueueActivity
from tailrace.jobs.operations.cancel import cancel
from tailrace.jobs.platform.checks.handlers import check_handlers
from tailrace.jobs.runtime.states import UNSTARTED
from tests.kit import at_once, claimed, run_and_settle, wait_until
from tests.properties.test_races import meanwhile
from tests.sandbox.event_types import Happened
from tests.sandbox.handlers import Debounced, Fair, Ordered, Work, Working
from tests.sandbox.models import Effect

pytestmark = pytest.mark.django_db(transaction=True)


def by_another(work: Any) -> Any:
    """Return what `work` returns on another connection."""
    return at_once(1, lambda _: work())[0]


# --- what holds -----------------------------------------------------------------------------------


@pytest.mark.parametrize("handler", [Working, Fair, Ordered])
def test_no_worker_begins_a_job_before_a_merge_commits(handler: type[Handler]) -> None:
    job = enqueue(handler, unique_key="k", lane="a")
    with transaction.atomic():
        assert enqueue(handler, unique_key="k", lane="a") == job
        assert by_another(lambda: claimed(handler.name)) == []
    assert [claim.id for claim in by_another(lambda: claimed(handler.name))] == [job]


def test_what_a_merged_publisher_changed_is_worked_on(scripted) -> None:
    document = Effect.objects.create(job_id=0, claim_no=0, note="version 1")
    indexed = []
    scripted("test.work", lambda job: indexed.append(Effect.objects.get(pk=document.pk).note))

    def work() -> None:
        if jobs := claimed("test.work"):
            run_and_settle(jobs)

    enqueue(Working, unique_key="document")
    with transaction.atomic():
        Effect.objects.filter(pk=document.pk).update(note="version 2")
        enqueue(Working, unique_key="document")
        by_another(work)
    by_another(work)
    assert indexed == ["version 2"]


def test_a_job_that_began_before_gets_no_merges() -> None:
    begun = enqueue(Working, unique_key="k")
    assert [job.id for job in claimed("test.work")] == [begun]
    assert enqueue(Working, unique_key="k") not in (begun, None)


def test_a_merge_waits_for_a_claim_that_is_not_committed() -> None:
    begun = enqueue(Working, unique_key="k")
    new = meanwhile(lambda: claimed("test.work"), lambda: enqueue(Working, unique_key="k"))
    assert new not in (begun, None)
    assert Job.objects.get(pk=new).state == "pending"


def test_a_publisher_that_waited_for_the_first_one_is_merged() -> None:
    first: list[int | None] = []
    merged = meanwhile(
        lambda: first.append(enqueue(Working, unique_key="k")),
        lambda: enqueue(Working, unique_key="k"),
    )
    assert [merged] == first
    assert Job.objects.get().merged == 1


def test_nothing_is_merged_into_what_is_being_cancelled() -> None:
    old = enqueue(Working, unique_key="k")
    new = meanwhile(lambda: cancel([old]), lambda: enqueue(Working, unique_key="k"))
    assert Job.objects.get(pk=new).state == "pending"


def test_publishers_that_merge_do_not_wait_for_each_other() -> None:
    job = enqueue(Working, unique_key="k")
    with transaction.atomic():
        enqueue(Working, unique_key="k")
        assert by_another(lambda: enqueue(Working, unique_key="k")) == job


def test_a_merge_that_is_rolled_back_leaves_nothing() -> None:
    publish(NewEvent(Happened, {"who": "w"}))
    with transaction.atomic():
        publish(NewEvent(Happened, {"who": "w"}))
        transaction.set_rollback(True)
    job = Job.objects.get(handler="test.debounced")
    assert (job.state, job.merged) == ("pending", 0)


def test_a_claim_that_passed_a_merge_over_is_repeated() -> None:
    enqueue(Working, unique_key="k")
    with transaction.atomic():
        enqueue(Working, unique_key="k", delay=60)
        by_another(lambda: claimed("test.work"))
        QueueActivity.objects.filter(name="test.work").update(awake=False)
    wait_until(lambda: QueueActivity.objects.get(name="test.work").awake)


PUBLISHERS, WORKERS = 4, 3


@pytest.mark.slow
def test_in_a_race_the_last_version_is_worked_on(scripted) -> None:
    """Each publisher writes a version of each document, while workers index them."""
    documents = sorted(Effect.objects.create(job_id=0, claim_no=0, note="0").pk for _ in range(60))
    indexed: list[tuple[int, int]] = []
    published: list[int] = []

    def index(job: ClaimedJob) -> None:
        document = int(job.routing_key)
        indexed.append((document, int(Effect.objects.get(pk=document).note)))
        query("SELECT 1 FROM pg_sleep(0.02)")  # in which jobs pile up

    def write() -> None:
        for pair in zip(documents[::2], documents[1::2], strict=True):
            with transaction.atomic():
                for row in Effect.objects.filter(pk__in=pair).order_by("pk").select_for_update():
                    row.note = str(int(row.note) + 1)
                    row.save()
                keys = [str(document) for document in reversed(pair)]
                enqueue_many(Working, [{"routing_key": key, "unique_key": key} for key in keys])
                query("SELECT 1 FROM pg_sleep(0.005)")  # in which workers may claim

    def work() -> None:
        done = False
        while not done:
            done = len(published) == PUBLISHERS
            while jobs := claimed("test.work", 1):
                run_and_settle(jobs)
                done = False

    def run(number: int) -> None:
        if number >= PUBLISHERS:
            work()
            return
        try:
            write()
        finally:
            published.append(number)

    scripted("test.work", index)
    at_once(PUBLISHERS + WORKERS, run, seconds=300)
    assert not Job.objects.filter(state__in=UNSTARTED).exists()
    assert {document for document, version in indexed if version == PUBLISHERS} == {*documents}


# --- keep and replace -----------------------------------------------------------------------------


def test_a_job_keeps_its_payload_and_counts_merges() -> None:
    job = enqueue(Working, {"note": "first"}, unique_key="k", delay=60)
    for _ in range(3):
        enqueue(Working, {"note": "later"}, unique_key="k")
    row = Job.objects.get()
    assert (row.pk, row.payload["note"], row.merged) == (job, "first", 3)
    assert row.due_at > row.created_at


def test_a_merge_beside_an_open_one_is_counted_later() -> None:
    enqueue(Working, unique_key="k")
    with transaction.atomic():
        enqueue(Working, unique_key="k")
        by_another(lambda: enqueue(Working, unique_key="k"))
    assert Job.objects.get().merged == 2


def test_replace_gives_the_job_the_newest_payload(monkeypatch) -> None:
    monkeypatch.setattr(Working, "merge", "replace")
    job = enqueue(Working, {"note": "first"}, unique_key="k", delay=60, priority=2)
    first = Job.objects.get()
    Job.objects.update(attempt=2, error="a timeout")
    enqueue(Working, Work(note="second"), unique_key="k", routing_key="r", delay=90, priority=3)
    row = Job.objects.get()
    assert (row.pk, row.payload["note"], row.routing_key, row.merged) == (job, "second", "r", 1)
    assert (row.attempt, row.error, row.priority) == (0, "", 2)
    assert row.due_at == first.due_at, "a burst cannot put it off"
    enqueue(Working, {"note": "third"}, unique_key="k", priority=0)
    row = Job.objects.get()
    assert (row.payload["note"], row.priority, row.merged) == ("third", 0, 2)
    assert row.due_at < first.due_at
    assert enqueue_many(Working, [{"payload": {"note": n}, "unique_key": "k"} for n in "xyz"]) == 0
    row = Job.objects.get()
    assert (row.payload["note"], row.merged) == ("z", 5)


def test_no_worker_begins_a_job_that_is_being_replaced(monkeypatch) -> None:
    monkeypatch.setattr(Working, "merge", "replace")
    enqueue(Working, {"note": "first"}, unique_key="k")
    with transaction.atomic():
        enqueue(Working, {"note": "second"}, unique_key="k")
        assert by_another(lambda: claimed("test.work")) == []
    (job,) = claimed("test.work")
    assert job.payload.note == "second"


def test_an_event_whose_job_was_merged_says_into_which() -> None:
    first, second = publish([NewEvent(Happened, {"who": "w", "n": n}) for n in range(2)])
    (third,) = publish(NewEvent(Happened, {"who": "w"}))
    job = Job.objects.get(handler="test.debounced", event=first.id)
    assert (job.state, job.merged) == ("pending", 2)
    for event in (second, third):
        merged = Job.objects.get(handler="test.debounced", event=event.id)
        assert (merged.state, merged.error) == ("skipped", f"merged into job {job.pk}")
        assert merged.finished_at is not None, "or it would never be pruned"


def test_with_replace_the_job_is_of_the_newest_event(
    monkeypatch, clock, run_jobs, scripted
) -> None:
    monkeypatch.setattr(Debounced, "merge", "replace")
    handled = []
    scripted("test.debounced", lambda job: handled.append(job.event.id))
    events = publish([NewEvent(Happened, {"who": "w", "n": n}) for n in range(3)])
    events += publish(NewEvent(Happened, {"who": "w"}))
    clock.step(61)
    run_jobs("test.debounced")
    assert handled == [events[-1].id]
    jobs = {job.event_id: job for job in Job.objects.filter(handler="test.debounced")}
    own = jobs.pop(events[-1].id)
    assert (own.state, own.merged) == ("completed", 3)
    assert {event: job.error for event, job in jobs.items()} == {
        event.id: f"merged into job {own.pk}" for event in events[:-1]
    }


def test_a_job_of_an_event_that_has_one_is_not_merged() -> None:
    (event,) = publish(NewEvent(Happened, {"who": "w"}))
    Job.objects.filter(handler="test.debounced").update(state="running", claim_no=1)
    assert enqueue(Debounced, event_id=event.id, unique_key="w") is None
    enqueue(Debounced, unique_key="w")
    assert enqueue(Debounced, event_id=event.id, unique_key="w") is None
    assert not Job.objects.exclude(merged=0).exists()


def test_another_merge_than_keep_and_replace_is_an_error(monkeypatch) -> None:
    monkeypatch.setattr(Working, "merge", "newest")
    errors = [error.msg for error in check_handlers(None) if error.obj is Working]
    assert errors == ["handler 'test.work': merge is 'newest'; it must be 'keep' or 'replace'"]
