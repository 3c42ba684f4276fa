"""A handler with a batch size for each lane: its batches have jobs of one lane alone."""

import pytest

from tailrace.jobs.engine.drain import drain
from tailrace.jobs.enqueue import enqueue, enqueue_many
from tailrace.jobs.models import Job, Queue
from tailrace.jobs.platform.inspection.explain.explanation import explain
from tests.kit import broker_length, claimed, empty_broker
from tests.sandbox.handlers import BatchByLane

pytestmark = pytest.mark.django_db
NAME = BatchByLane.name


def fill(**counts: int) -> None:
    for lane, count in counts.items():
        enqueue_many(BatchByLane, [{"lane": lane}] * count)


def batches(count: int) -> list[tuple[str, int]]:
    """Return the lane and the size of the next batches; none has jobs of two lanes."""
    taken = []
    for _ in range(count):
        jobs = claimed(NAME)
        [lane] = {job.lane for job in jobs} or {""}
        taken.append((lane, len(jobs)))
    return taken


def test_each_lane_has_batches_of_its_own_size_and_its_turn() -> None:
    fill(alone=3, others=12, threes=7)
    one_round = [("alone", 1), ("others", 5), ("threes", 3)]
    last = [("alone", 1), ("others", 2), ("threes", 1)]
    assert batches(10) == [*one_round, *one_round, *last, ("", 0)]


def test_a_call_has_jobs_of_one_lane(scripted) -> None:
    calls: list[list[str]] = []
    scripted(NAME, lambda jobs: calls.append([job.lane for job in jobs]))
    fill(alone=2, threes=6)
    assert drain(NAME) == 8
    assert sorted(calls) == [["alone"], ["alone"], ["threes"] * 3, ["threes"] * 3]


def test_a_limit_of_the_queue_counts_for_all_lanes() -> None:
    fill(threes=9, others=9)
    Queue.objects.filter(name=NAME).update(max_running=4)
    assert batches(3) == [("others", 4), ("", 0), ("", 0)]


def test_a_lane_that_fails_leaves_the_others_alone(scripted) -> None:
    def call(jobs) -> None:
        if jobs[0].lane == "threes":
            raise OSError("this index is away")

    scripted(NAME, call)
    fill(alone=5, threes=5)
    drain(NAME)
    by_lane = Job.objects.order_by("lane", "id").values_list("lane", "state", "attempt")
    assert list(by_lane) == [("alone", "completed", 1)] * 5 + [("threes", "pending", 1)] * 5


def test_a_job_that_lost_its_worker_is_alone_in_its_batch() -> None:
    fill(threes=3, others=1)
    first = Job.objects.order_by("id")[0]
    Job.objects.filter(pk=first.pk).update(isolate=True)
    assert sorted(batches(3)) == [("others", 1), ("threes", 1), ("threes", 2)]


@pytest.mark.django_db(transaction=True)
def test_a_batch_that_is_full_for_its_lane_wakes_the_queue_for_others(scripted) -> None:
    woken = []
    scripted(NAME, lambda jobs: woken.append(broker_length(NAME)))
    fill(threes=4)
    empty_broker()
    assert drain(NAME) == 4
    assert woken == [1, 1], "the second batch is not full: its message is of the first"


def test_explain_knows_the_turns() -> None:
    fill(alone=2, threes=4)
    ids = [enqueue(BatchByLane, lane="alone"), enqueue(BatchByLane, lane="threes")]
    first = Job.objects.filter(lane="threes").order_by("id")[0]
    expected = {first.pk: "turn", ids[0]: "no", ids[1]: "no"}
    assert {id: explain(id).next_claim for id in expected} == expected
    Job.objects.filter(lane="alone").delete()
    assert explain(first.pk).next_claim == "yes"
