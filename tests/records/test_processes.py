"""The pipeline in real worker processes on PostgreSQL."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.db import transaction
from django.db.models import Max

from tailrace.db.query import database_now, query
from tailrace.domains.records.depositions.submit import submit
from tailrace.domains.records.models import Deposition, KeywordEntry, Record, VectorEntry
from tailrace.events.models import Event
from tailrace.events.publish import NewEvent, publish
from tailrace.jobs.engine.maintenance.ticking import tick
from tailrace.jobs.models import Attempt, Job
from tailrace.jobs.platform.inspection.queues import stats
from tests.kit import empty_broker, wait_until, worker
from tests.records.kit import draft, harvested, source
from tests.records.test_chain import CHAIN
from tests.sandbox.indexing.scripted import LEASE, NAME, VARIABLE
from tests.sandbox.models import Effect

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]
COUNT = 300
INDEX = CHAIN[-1]
SECONDS = 10
"""Of a lease, where a worker is killed."""
ENDED = ["completed", "skipped", "failed"]


def is_done(deposited: int) -> bool:
    """Whether all jobs of so many depositions have ended, but for those that are retried later."""
    tick.tick()
    indexed = Job.objects.filter(handler=INDEX, routing_key=NAME).count()
    due = Job.objects.filter(handler__in=CHAIN, attempt=0).exclude(state__in=ENDED)
    running = Job.objects.running().filter(handler__in=CHAIN)
    return indexed == deposited and not due.exists() and not running.exists()


def waits() -> bool:
    tick.tick()
    return Effect.objects.filter(note="wait").exists()


def all_completed() -> bool:
    tick.tick()
    return not Job.objects.filter(handler__in=CHAIN).exclude(state="completed").exists()


def claims() -> list[tuple[str, str, int]]:
    """Return handler, routing keys and jobs of every claim: a worker's name is of one claim."""
    return query("""
        SELECT handler, string_agg(DISTINCT routing_key, ','), count(*) FROM tailrace_jobs_job
        WHERE handler LIKE 'records.%%' GROUP BY handler, worker""")


def check_effects(deposited: int) -> None:
    """Each job was claimed once, and each step has its effect once."""
    jobs = Job.objects.filter(handler__in=CHAIN)
    assert Counter(jobs.values_list("handler", flat=True)) == {
        **dict.fromkeys(CHAIN[:3], deposited),
        INDEX: 3 * deposited,
    }
    assert set(jobs.values_list("state", "claim_no", "attempt")) == {("completed", 1, 1)}
    assert not Attempt.objects.exists(), "no claim was lost, and none was retried"
    assert set(Record.objects.values_list("version", flat=True)) == {1}
    assert Record.objects.count() == KeywordEntry.objects.count() == deposited
    assert VectorEntry.objects.count() == Effect.objects.count() == deposited
    assert len(set(Effect.objects.values_list("job_id", flat=True))) == deposited
    types = Counter(Event.objects.values_list("type", flat=True))
    assert [count for name, count in types.items() if name.startswith("records.")] == [
        deposited
    ] * 4


def check_routing_keys() -> None:
    """No claim has jobs of two indexes, and each index has batches of its own size."""
    largest: Counter[str] = Counter()
    for handler, keys, count in claims():
        if handler == INDEX:
            assert "," not in keys, f"a claim took jobs of {keys}"
            largest[keys] = max(largest[keys], count)
    assert largest["keyword"] == 1
    assert largest[NAME] == 10
    assert 10 < largest["vector"] <= 100


def seconds_to_claim(deposition: int) -> float:
    """Return how long the first job of a deposition waited for its claim."""
    subject = f"deposition/{deposition}"
    job = Job.objects.get(handler=CHAIN[0], event__subject=subject)
    assert job.started_at is not None
    return (job.started_at - job.created_at).total_seconds()


def test_the_pipeline_in_five_processes(process_env: dict[str, str], tmp_path: Path) -> None:
    empty_broker()
    env = process_env | {VARIABLE: "10"}
    with worker(env, CHAIN, log=tmp_path / "worker.log", concurrency=5):
        # What is rolled back leaves nothing; what is committed is claimed within the tick and 1 s.
        with transaction.atomic():
            submit([draft("rolled back")])
            transaction.set_rollback(True)
        waits = []
        for number in range(3):
            [id] = submit([draft(f"committed {number}")])
            wait_until(lambda: is_done(len(waits) + 1))
            waits.append(seconds_to_claim(id))
        assert min(waits) < 2, "a busy machine may delay one, but not all"
        assert Deposition.objects.count() == len(waits)

        # Hundreds of records, five processes.
        submit(harvested(COUNT, source()))
        wait_until(lambda: is_done(COUNT + 3))
        check_effects(COUNT + 3)
        check_routing_keys()
        processes = Counter(Effect.objects.values_list("process", flat=True))
        assert len(processes) > 1, "the processes share the work"

        # Of a batch of ten, the third and the seventh raise, in one index of three.
        Job.objects.all().delete()
        titles = [f"{'raise' if n in (3, 7) else 'sound'} {n}" for n in range(1, 11)]
        submit([draft(title) for title in titles])
        wait_until(lambda: is_done(10))
        jobs = Job.objects.filter(handler=INDEX)
        states = Counter(jobs.values_list("routing_key", "state", "attempt"))
        assert states == {
            ("keyword", "completed", 1): 10,
            ("vector", "completed", 1): 10,
            (NAME, "completed", 1): 8,
            (NAME, "pending", 1): 2,
        }
        waiting = jobs.filter(state="pending").values_list("event__payload__title", flat=True)
        assert sorted(waiting) == ["raise 3", "raise 7"]

        # They are due later, so they are no lag.
        [queue] = [queue for queue in stats.queues() if queue.name == INDEX]
        assert (queue.pending, queue.due, queue.oldest_due) == (2, 0, None)

        # An unknown type, or a payload of another schema, is set aside once, without jobs.
        known = set(Job.objects.values_list("pk", flat=True))
        for _ in range(2):
            publish(
                [
                    NewEvent("records.unknown", {"record": 1}, "other", "unknown"),
                    NewEvent("records.record_published", {"record": "x"}, "other", "schema"),
                ],
                outside=True,
            )
        aside = Event.objects.filter(source="other").order_by("source_id")
        assert [(event.type, event.payload["type"]) for event in aside] == [
            ("events.quarantined", "records.record_published"),
            ("events.quarantined", "records.unknown"),
        ]
        assert set(Event.objects.flagged()) == set(aside), "operators see them"
        tick.tick()
        assert set(Job.objects.values_list("pk", flat=True)) == known


@pytest.mark.long
def test_a_worker_is_killed_in_a_batch_of_a_hundred(
    process_env: dict[str, str], settings: Any, tmp_path: Path, run_jobs: Callable[..., int]
) -> None:
    empty_broker()
    submit([draft(f"sound {number}") for number in range(99)] + [draft("wait")])
    run_jobs(*CHAIN[:3])
    jobs = Job.objects.filter(handler=INDEX, routing_key="vector")
    ids = list(jobs.values_list("pk", flat=True))
    jobs.update(routing_key=NAME, lane=NAME)
    batch = Job.objects.filter(pk__in=ids)
    env = process_env | {VARIABLE: "100", LEASE: str(SECONDS)}
    with worker(env, [INDEX], log=tmp_path / "killed.log", concurrency=2) as killed:
        wait_until(waits)
        with worker(env, [INDEX], log=tmp_path / "other.log"):
            assert set(batch.values_list("state", "claim_no")) == {("running", 1)}
            assert batch.values("worker").distinct().count() == 1
            Record.objects.filter(title="wait").update(title="sound")
            killed_at = database_now()
            killed.kill()
            wait_until(all_completed)
    assert set(batch.values_list("state", "attempt", "claim_no")) == {("completed", 2, 2)}
    assert Attempt.objects.filter(job__in=ids, outcome="lost").count() == 100
    ended_at = batch.aggregate(at=Max("finished_at"))["at"]
    assert (ended_at - killed_at).total_seconds() < SECONDS + settings.JOBS_SWEEP_SECONDS
