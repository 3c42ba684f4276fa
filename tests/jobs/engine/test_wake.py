"""One message per queue with new work, after commit; no wake-up is missed."""

import subprocess
import threading
from datetime import timedelta

import pytest
from celery import current_app
from celery.signals import before_task_publish
from django.db import connection, transaction

from tailrace.events.publish import NewEvent, publish
from tailrace.jobs import tasks
from tailrace.jobs.engine.drain import drain
from tailrace.jobs.engine.maintenance.ticking import tick
from tailrace.jobs.engine.waking import wake
from tailrace.jobs.enqueue import enqueue, enqueue_many
from tailrace.jobs.models import Job, Queue, QueueActivity
from tailrace.jobs.operations.pause import pause
from tests import forks
from tests.kit import PATIENCE, ROOT, at_once, broker_length, change_queue, empty_broker
from tests.sandbox.event_types import Happened
from tests.sandbox.handlers import Working
from tests.servers import rabbit

pytestmark = [pytest.mark.django_db(transaction=True)]


@pytest.fixture(autouse=True)
def _empty() -> None:
    empty_broker()


def awake(name: str = "test.work") -> bool:
    return QueueActivity.objects.get(name=name).awake


def test_a_queue_is_woken_by_one_message_after_commit() -> None:
    with transaction.atomic():
        enqueue(Working)
        assert not awake()
        assert broker_length("test.work") == 0
    assert awake()
    assert broker_length("test.work") == 1


def test_a_tick_ends_a_pause_at_its_time_and_the_next_wakes_the_queue(clock) -> None:
    end = clock.now() + timedelta(hours=1)
    pause("test.work", "ada", "the disk is full", end)
    enqueue(Working)
    tick.tick()
    assert broker_length("test.work") == 0, "the pause has not ended"
    clock.step(3601)
    tick.tick()
    queue = Queue.objects.get(pk="test.work")
    assert (queue.paused, queue.paused_by, queue.paused_reason) == (False, "", "")
    tick.tick()
    assert broker_length("test.work") == 1
    pause("test.work", "ada")
    clock.step(10_000_000)
    tick.tick()
    assert Queue.objects.get(pk="test.work").paused, "a pause without an end does not end"


def test_a_message_expires_by_nobodys_clock() -> None:
    enqueue(Working)
    with current_app.connection_for_read() as broker, broker.channel() as channel:
        message = current_app.amqp.queues["test.work"](channel).get(no_ack=True)
    assert message.headers["task"] == "test.work"
    assert message.headers["expires"] is None
    assert "expiration" not in message.properties


def test_a_message_is_no_task_of_the_project_to_its_receivers() -> None:
    senders: list[str] = []

    def note_sender(sender: str, **kwargs: object) -> None:
        senders.append(sender)

    before_task_publish.connect(note_sender)
    try:
        enqueue(Working)
    finally:
        before_task_publish.disconnect(note_sender)
    assert broker_length("test.work") == 1
    assert senders == []


def test_a_queue_that_is_awake_gets_no_second_message() -> None:
    for _ in range(5):
        enqueue(Working)
    assert broker_length("test.work") == 1


def test_many_calls_in_a_transaction_are_one_statement(django_assert_num_queries) -> None:
    with django_assert_num_queries(6), transaction.atomic():  # begin, 3 inserts, commit, mark
        publish(NewEvent(Happened))
        enqueue(Working)
    assert broker_length("test.work") == broker_length("test.log") == 1


def test_a_rolled_back_transaction_wakes_nobody() -> None:
    with transaction.atomic():
        enqueue(Working)
        transaction.set_rollback(True)
    assert not awake()
    assert broker_length("test.work") == 0


def test_a_rolled_back_savepoint_wakes_none_of_its_queues() -> None:
    with transaction.atomic():
        enqueue("test.other")
        with transaction.atomic():
            enqueue(Working)
            transaction.set_rollback(True)
    assert (broker_length("test.work"), broker_length("test.other")) == (0, 1)


def test_a_rolled_back_inner_block_keeps_the_outer_wake_ups() -> None:
    with transaction.atomic():
        with transaction.atomic():
            enqueue(Working)
            transaction.set_rollback(True)
        enqueue(Working)
    assert broker_length("test.work") == 1


def test_a_drain_claims_what_it_releases_without_a_message(ten_to_a_claim) -> None:
    last = enqueue(Working)
    for _ in range(3):
        last = enqueue(Working, after=last)
    empty_broker()
    QueueActivity.objects.update(awake=False)
    assert drain("test.work") == 4
    assert broker_length("test.work") == 0


def test_a_drain_that_ends_by_an_error_wakes_the_queue_of_what_it_releases(
    scripted, ten_to_a_claim
) -> None:
    def exit_at_the_second(job) -> None:
        if job.id == jobs[1]:
            raise KeyboardInterrupt

    jobs = [enqueue(Working) for _ in range(2)]
    released = enqueue(Working, after=jobs[0])
    scripted("test.work", exit_at_the_second)
    empty_broker()
    QueueActivity.objects.update(awake=False)
    with pytest.raises(KeyboardInterrupt):
        drain("test.work")
    assert Job.objects.get(pk=released).state == "pending"
    assert broker_length("test.work") == 1


def test_a_job_committed_before_the_flag_clears_is_claimed(run_jobs, ten_to_a_claim) -> None:
    enqueue(Working)
    enqueue(Working)
    assert drain("test.work") == 2
    assert not awake()
    assert broker_length("test.work") == 1  # the first one's, which will find nothing


def test_a_full_claim_wakes_its_queue_before_it_runs(scripted, ten_to_a_claim) -> None:
    seen = []
    scripted("test.work", lambda job: seen.append(broker_length("test.work")) and None)
    enqueue_many(Working, [{}] * 10)
    empty_broker()
    drain("test.work")
    assert seen == [1] * 10


def test_many_wakers_at_once_send_one_message() -> None:
    marked = at_once(8, lambda _: wake.wake(["test.work", "test.other", "test.log"]))
    assert sorted(name for names in marked for name in names) == [
        "test.log",
        "test.other",
        "test.work",
    ]
    assert broker_length("test.work") == 1


def test_a_paused_queue_is_not_woken() -> None:
    Queue.objects.filter(pk="test.work").update(paused_at="2026-01-01T00:00Z")
    enqueue(Working)
    assert broker_length("test.work") == 0


PUBLISH = """
import time, django
django.setup()
from tailrace.events.publish import NewEvent, publish
from tailrace.jobs.engine.waking import wake
publish([])
began = time.monotonic()
publish([NewEvent("test.happened"), NewEvent("test.happened")])
print("took", time.monotonic() - began)
assert wake.waker.flush(seconds=100)
"""


@pytest.mark.parametrize(
    "broker",
    [
        "redis://127.0.0.1:1/0",
        pytest.param("amqp://guest:guest@127.0.0.1:1//", marks=pytest.mark.long),
    ],
)
def test_a_missing_broker_neither_fails_nor_delays_publish(process_env, broker) -> None:
    done = forks.run(
        ["-c", PUBLISH],
        cwd=ROOT,
        env=process_env | {"BROKER_URL": broker},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    assert float(done.stdout.split("took ")[1]) < 60
    assert "wake.not_sent" in done.stdout + done.stderr
    assert Job.objects.filter(handler="test.log").count() == 2


FALL_SILENT = """
import sys, time, django
django.setup()
from tailrace.jobs.engine.waking import wake
assert wake.send(["test.silence"]) == 1
print("muted?", flush=True)
sys.stdin.readline()
began = time.monotonic()
assert wake.send(["test.silence", "test.silence"]) == 0
print("took", time.monotonic() - began, flush=True)
sys.stdin.readline()
assert wake.send(["test.silence"]) == 1
"""


@pytest.mark.slow
def test_a_silent_broker_delays_a_publisher_by_seconds(process_env) -> None:
    with rabbit.exchange() as there:
        wire = rabbit.Wire(cut_after=10**9)
        process = forks.Fork(
            ["-c", FALL_SILENT], cwd=ROOT, text=True,
            env=process_env | {"BROKER_URL": wire.url},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        bound = threading.Timer(PATIENCE, process.kill)
        bound.start()
        try:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdout.readline()
            wire.muted.set()
            print(file=process.stdin, flush=True)
            took = process.stdout.readline()
            wire.muted.clear()
            _out, errors = process.communicate("\n", timeout=PATIENCE)
        finally:
            bound.cancel()
            process.kill()
            wire.close()
            there.channel.queue_delete("test.silence")
    assert process.returncode == 0, errors
    assert 2 < float(took.split()[1]) < 120
    assert "wake.not_sent" in errors


def test_a_lost_message_is_sent_again_at_growing_intervals(clock) -> None:
    clock.stop()
    enqueue(Working)
    sent = []
    for at in range(1, 201):
        clock.step(1)
        if tick.wake_due():
            sent.append(at)
    gaps = [later - earlier for earlier, later in zip([0, *sent], sent, strict=False)]
    assert gaps[:5] == sorted(gaps[:5])
    assert 2 <= gaps[0] <= 3
    assert max(gaps) <= 61
    assert len(sent) <= 8
    assert broker_length("test.work") == 1 + len(sent)


def test_after_a_flush_of_redis_the_first_message_of_the_tick_arrives(clock) -> None:
    """A flush deletes the queues of an exchange, too, which this process has declared already."""
    enqueue(Working)
    with current_app.connection_for_write() as broker, broker.channel() as channel:
        if broker.transport.driver_type != "redis":
            pytest.skip("RabbitMQ has no flush")
        channel.client.flushdb()
    assert broker_length("test.work") == 0
    clock.step(3)
    assert tick.wake_due() == ["test.work"]
    assert broker_length("test.work") == 1


def test_a_drain_resets_the_interval(clock) -> None:
    enqueue(Working, delay=10)
    change_queue("test.work", awake=True, resends=5, awake_at=clock.now())
    drain("test.work")
    assert QueueActivity.objects.get(name="test.work").resends == 0
    clock.step(11)
    assert tick.wake_due() == ["test.work"]


def test_two_tickers_at_once_send_one_message() -> None:
    with connection.cursor() as cursor:  # due work that nobody was told of
        enqueue(Working)
        cursor.execute("UPDATE tailrace_jobs_queueactivity SET awake = false")
    empty_broker()
    woken = at_once(4, lambda _: tick.tick())
    assert sum(woken) == 1 == broker_length("test.work")


def test_a_queue_without_due_work_is_not_woken(clock) -> None:
    enqueue(Working, delay=60)
    QueueActivity.objects.update(awake=False)
    assert tick.wake_due() == []
    clock.step(61)
    assert tick.wake_due() == ["test.work"]


def test_a_worker_with_older_code_leaves_the_jobs_to_others_for_seconds(clock) -> None:
    """As in a deploy: the handlers of Celery tasks share the queues of the project."""
    name = "test.newer"
    Queue.objects.create(name=name)
    QueueActivity.objects.create(name=name, slice=0, awake=False, tokens=0)
    Job.objects.create(handler=name, state="pending")
    for _ in range(6):
        assert tick.wake_due() == [name], "a message, which an old worker takes"
        assert tasks.work_off(name) == 0
        clock.step(tick.RESEND_SECONDS + 1)
