"""A handler with batch sizes by the end of its lanes: a batch has jobs with one such key."""

from collections import Counter
from collections.abc import Mapping

import pytest

from tailrace.jobs.engine.drain import drain
from tailrace.jobs.enqueue import enqueue, enqueue_many
from tailrace.jobs.models import Job, Queue
from tailrace.jobs.platform.inspection.explain.explanation import explain
from tests.kit import broker_length, claimed, empty_broker, held
from tests.sandbox.handlers import BatchByKey

pytestmark = pytest.mark.django_db
NAME = BatchByKey.name


def fill(**counts: int) -> None:
    fill_lanes(counts)


def fill_lanes(counts: Mapping[str, int]) -> None:
    for lane, count in counts.items():
        enqueue_many(BatchByKey, [{"lane": lane}] * count)


def batches(count: int) -> list[tuple[str, int]]:
    """Return the key and the size of the next batches; none has jobs with two keys."""
    taken = []
    for _ in range(count):
        jobs = claimed(NAME)
        [key] = {job.lane.rpartition("/")[2] for job in jobs} or {""}
        taken.append((key, len(jobs)))
    return taken


def test_each_key_has_batches_of_its_own_size_and_its_turn() -> None:
    fill(alone=3, others=12, threes=7)
    one_round = [("alone", 1), ("others", 5), ("threes", 3)]
    last = [("alone", 1), ("others", 2), ("threes", 1)]
    assert batches(10) == [*one_round, *one_round, *last, ("", 0)]


def test_a_batch_has_the_same_number_of_jobs_of_each_lane_with_its_key() -> None:
    fill_lanes({"ana/threes": 5, "bor/threes": 1, "cene/threes": 1, "ana/others": 9})
    taken = [Counter(job.lane for job in claimed(NAME)) for _ in range(4)]
    assert taken == [
        {"ana/others": 5},
        {"ana/threes": 1, "bor/threes": 1, "cene/threes": 1},
        {"ana/others": 4},
        {"ana/threes": 3},
    ]


def test_lanes_take_turns_and_no_key_waits_for_another() -> None:
    people = [f"user{number:03}" for number in range(500)]
    fill_lanes({f"{name}/alone": 2 for name in people} | {"harvest/threes": 2_000})
    served = Counter(claimed(NAME)[0].lane for _ in range(502))
    assert set(served.values()) <= {1, 2}
    assert len(served) == 501


@pytest.mark.django_db(transaction=True)
def test_a_batch_begins_with_a_lane_that_no_other_claim_has_locked() -> None:
    fill_lanes({"ana/threes": 1, "bor/others": 1})
    first = Job.objects.get(lane="ana/threes")
    with held("SELECT 1 FROM tailrace_jobs_job WHERE id = %s FOR UPDATE", first.pk):
        assert batches(2) == [("others", 1), ("", 0)]
    assert batches(1) == [("threes", 1)]


def test_a_call_has_jobs_of_one_key(scripted) -> None:
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
def test_a_batch_that_is_full_for_its_key_wakes_the_queue_for_others(scripted) -> None:
    woken = []
    scripted(NAME, lambda jobs: woken.append(broker_length(NAME)))
    fill(threes=4)
    empty_broker()
    assert drain(NAME) == 4
    assert woken == [1, 1], "the second batch is not full: its message is of the first"


def test_explain_knows_the_turns() -> None:
    fill(alone=2, threes=4)
    ids = [enqueue(BatchByKey, lane="alone"), enqueue(BatchByKey, lane="threes")]
    first = Job.objects.filter(lane="threes").order_by("id")[0]
    expected = {first.pk: "turn", ids[0]: "no", ids[1]: "no"}
    assert {id: explain(id).next_claim for id in expected} == expected
    Job.objects.filter(lane="alone").delete()
    assert explain(first.pk).next_claim == "yes"


def test_explain_knows_that_other_keys_have_turns() -> None:
    fill_lanes({"ana/others": 1, "ana/threes": 1, "bor/threes": 1})
    job = Job.objects.get(lane="ana/threes")
    assert explain(job.pk).next_claim == "turn"
    Job.objects.filter(lane="ana/others").delete()
    assert explain(job.pk).next_claim == "yes"
