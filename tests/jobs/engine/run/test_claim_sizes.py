"""How many jobs a claim takes, and what becomes of those that wait behind a slow call."""

import pytest
from django.db import connection, connections

from tailrace.jobs.engine import registry
from tailrace.jobs.engine.claiming import pace
from tailrace.jobs.engine.drain import drain
from tailrace.jobs.engine.maintenance.ticking import rescue
from tailrace.jobs.enqueue import enqueue, enqueue_many
from tailrace.jobs.handler import ClaimedJob, Permanent
from tailrace.jobs.models import Attempt, Job
from tailrace.jobs.runtime.states import State
from tests.addresses import address
from tests.kit import broker_length, claimed, empty_broker, wait_until
from tests.sandbox.handlers import Batch, Once, Other, Working
from tests.servers.relay import relay, through

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize(
    ("seconds", "count"), [(4.0, 1), (0.05, 1), (0.01, 5), (0.001, 50), (0.0, 50)]
)
def test_a_claim_takes_what_can_begin_soon(seconds: float, count: int) -> None:
    handler = registry.get("test.work")
    assert pace.claim_size(handler) == 1, "while no call is known"
    pace.record(handler, seconds)
    assert pace.claim_size(handler) == count


@pytest.mark.parametrize(("seconds", "count"), [(4.0, 1), (0.4, 1), (0.04, 12), (0.001, 500)])
def test_a_claim_takes_more_if_the_database_is_far_away(seconds: float, count: int) -> None:
    handler = registry.get("test.work")
    pace.record(handler, seconds)
    pace.record_cost(handler, "claim", 0.1)
    pace.record_cost(handler, "settle", 0.1)
    assert pace.claim_size(handler) == count


def test_a_claim_takes_at_most_half_a_second_of_work() -> None:
    """Also if a claim waits for a lock, or a settlement for a disk."""
    handler = registry.get("test.work")
    pace.record(handler, 0.001)
    pace.record_cost(handler, "settle", 30.0)
    assert pace.claim_size(handler) == 500


def test_the_first_slow_claim_and_call_of_a_process_are_forgotten_soon() -> None:
    """They connect to the database."""
    handler = registry.get("test.work")
    pace.record(handler, 0.5)
    for _ in range(8):
        pace.record(handler, 0.001)
    assert pace.claim_size(handler) > 10


def test_far_from_the_database_few_claims_take_all_jobs(scripted) -> None:
    """Each costs two round trips of 100 ms. Nine claims took them."""
    scripted("test.work", lambda job: None)
    enqueue_many(Working, [{}] * 400)
    with relay(address(dict(connection.settings_dict)), delay=0.05) as link, through(link.port):
        while Job.objects.pending().exists():
            drain("test.work")
    assert set(Job.objects.values_list("state", "attempt")) == {("completed", 1)}
    assert Job.objects.values("worker").distinct().count() <= 6, "worker is unique for each claim"


def test_one_slow_call_is_forgotten_after_fast_ones() -> None:
    handler = registry.get("test.work")
    pace.record(handler, 4.0)
    for _ in range(60):
        pace.record(handler, 0.0005)
    assert pace.claim_size(handler) > 10


def test_batches_and_last_attempts_have_sizes_of_their_own() -> None:
    pace.record(registry.get("test.once"), 0.001)
    assert pace.claim_size(registry.get("test.once")) == 1
    assert pace.claim_size(registry.get("test.batch")) == Batch.batch_size


def states() -> list[tuple[str, int, bool]]:
    return list(Job.objects.order_by("id").values_list("state", "attempt", "begun"))


def test_what_waits_behind_a_slow_call_is_given_back(scripted, ten_to_a_claim) -> None:
    first, *_others = [enqueue(Working) for _ in range(10)]
    empty_broker()
    sizes = []

    def work(job: ClaimedJob) -> None:
        if job.id == first:
            wait_until(lambda: states() == [("running", 1, True)] + [("pending", 0, False)] * 9)
            sizes.append(broker_length("test.work"))

    scripted("test.work", work)
    assert drain("test.work") == 10
    assert sizes == [1], "others were woken for them"
    assert set(Job.objects.values_list("state", "attempt")) == {("completed", 1)}
    assert Job.objects.get(pk=first).claim_no == 1
    assert not Attempt.objects.exists()


def test_what_ended_before_a_slow_call_is_settled_meanwhile(scripted, ten_to_a_claim) -> None:
    """It was done again if the worker was killed in that call."""
    ids = [enqueue(Working) for _ in range(3)]
    lost = []

    def work(job: ClaimedJob) -> None:
        if job.id == ids[1]:
            raise Permanent("broken")
        if job.id == ids[2]:
            wait_until(lambda: [state for state, *_ in states()][:2] == ["completed", "failed"])
            lost.append(Job.objects.running().get().id)

    scripted("test.work", work)
    assert drain("test.work") == 3
    assert lost == [ids[2]]
    assert [state for state, *_ in states()] == ["completed", "failed", "completed"]
    assert Attempt.objects.get().outcome == "failed"


def test_what_the_watching_thread_cannot_settle_is_settled_after_the_call(
    scripted, ten_to_a_claim, caplog
) -> None:
    ids = [enqueue(Working) for _ in range(2)]
    other = connections.create_connection("default")

    def work(job: ClaimedJob) -> None:
        if job.id == ids[1]:
            with other.cursor() as cursor:
                cursor.execute("BEGIN")
                cursor.execute(
                    "SELECT 1 FROM tailrace_jobs_live WHERE id = %s FOR UPDATE", [ids[0]]
                )
                wait_until(lambda: "lease.not_renewed" in caplog.text)
                cursor.execute("ROLLBACK")

    scripted("test.work", work)
    try:
        assert drain("test.work") == 2
    finally:
        other.close()
    assert set(Job.objects.values_list("state", "claim_no")) == {("completed", 1)}


def test_the_last_job_of_a_claim_counts_as_begun(scripted, ten_to_a_claim) -> None:
    """A crash during a long call charges it, also when nothing waits behind it."""
    ids = [enqueue(Working) for _ in range(2)]

    def work(job: ClaimedJob) -> None:
        if job.id == ids[1]:
            wait_until(lambda: states()[1] == ("running", 1, True))

    scripted("test.work", work)
    assert drain("test.work") == 2


@pytest.mark.parametrize("handler", [Working, Batch])
def test_a_claim_of_one_job_or_a_batch_has_begun(handler: type[Working]) -> None:
    enqueue_many(handler, [{}] * 3)
    claimed(handler.name, 1 if handler is Working else 10)
    begun = Job.objects.running().values_list("begun", flat=True)
    assert set(begun) == {True}


def lose_workers(clock) -> int:
    clock.step(Working.claim_timeout + 1)
    return rescue.rescue()


def test_a_crash_charges_no_job_that_had_not_begun(clock) -> None:
    """With one attempt all ten failed after one lost claim."""
    enqueue_many(Other, [{}] * 5)
    claimed("test.other")
    assert lose_workers(clock) == 5
    assert set(Job.objects.values_list("state", "attempt", "isolate")) == {("pending", 0, True)}
    outcomes = Attempt.objects.values_list("outcome", "message")
    assert set(outcomes) == {("lost", rescue.NOT_BEGUN)}


def test_a_job_without_another_attempt_is_claimed_alone(clock, scripted) -> None:
    enqueue_many(Once, [{}] * 5)
    pace.record(registry.get("test.once"), 0.001)
    assert len(claimed("test.once", pace.claim_size(registry.get("test.once")))) == 1
    assert lose_workers(clock) == 1
    assert sorted(Job.objects.values_list("state", flat=True)) == ["failed"] + ["pending"] * 4


def test_a_job_that_kills_its_workers_still_fails(clock) -> None:
    """The first loss is charged to nobody; then it is claimed alone."""
    id = enqueue(Working)
    enqueue(Working)
    claimed("test.work")
    for charged in range(Working.max_attempts + 1):
        lose_workers(clock)
        assert Job.objects.get(pk=id).attempt == charged
        if charged < Working.max_attempts:
            assert [job.id for job in claimed("test.work")] == [id]
    assert Job.objects.get(pk=id).state == State.FAILED
