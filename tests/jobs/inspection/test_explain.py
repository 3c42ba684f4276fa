"""Each reason that explain gives, in words."""

from datetime import timedelta

import pytest
from celery import current_app

from tailrace.db import clock as events_clock
from tailrace.events.publish import NewEvent, publish
from tailrace.jobs.engine.claiming import pace
from tailrace.jobs.engine.maintenance.sweeping import missing_handlers
from tailrace.jobs.engine.maintenance.ticking import rescue
from tailrace.jobs.enqueue import enqueue, enqueue_many
from tailrace.jobs.models import Job, Pulse, Queue
from tailrace.jobs.operations.cancel import cancel
from tailrace.jobs.operations.pause import pause
from tailrace.jobs.platform.inspection.explain.explanation import explain
from tailrace.jobs.platform.inspection.explain.workers import broker_status
from tests.jobs.inspection.explained import ago, change, codes, words
from tests.kit import change_queue, claimed, empty_broker
from tests.sandbox.event_types import Happened
from tests.sandbox.handlers import Fair, Ordered, Other, WaitingFairly, Working

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("running_worker")]

# --- pending --------------------------------------------------------------------------------------


def test_the_next_claim_takes_it() -> None:
    enqueue(Working)
    id = enqueue(Working)
    explanation = explain(id)
    assert (explanation.ready, explanation.next_claim, explanation.before) == ("yes", "yes", 1)
    assert explanation.summary == "Ready: one of the next claims takes it; 1 job comes before it."


def test_other_jobs_come_before_it(ten_to_a_claim) -> None:
    enqueue_many(Working, [{}] * 12)
    explanation = explain(enqueue(Working))
    assert (explanation.ready, explanation.next_claim) == ("yes", "no")
    assert explanation.summary == ("Ready, but not in the next claim: 12 jobs come before it.")


def test_it_depends_on_which_lane_is_next(monkeypatch) -> None:
    monkeypatch.setattr(pace, "MOST_JOBS", 1)
    ids = [enqueue(Fair, lane=lane) for lane in "ab"]
    explanation = explain(ids[0])
    assert (explanation.ready, explanation.next_claim) == ("yes", "turn")
    assert (
        "depends on which lane is next; no job of its lane comes before it" in explanation.summary
    )


def test_all_places_of_a_process_are_taken(monkeypatch) -> None:
    monkeypatch.setattr(WaitingFairly, "concurrency", 4)
    enqueue_many(WaitingFairly, [{"lane": lane} for lane in "aaab"])
    assert len(claimed(WaitingFairly.name) + claimed(WaitingFairly.name)) == 4
    explanation = explain(enqueue(WaitingFairly, lane="a"))
    assert explanation.summary.startswith("Ready: one of the next claims takes it")
    places, of_lane = explanation.serving[-2:]
    assert "4 jobs of test.waiting_fairly are in flight" in places.words
    assert "each worker process runs at most 4 of them" in places.words
    assert "3 jobs to a are in flight" in of_lane.words
    explanation = explain(enqueue(WaitingFairly, lane="b"))
    assert explanation.serving[-1] == places


def test_it_is_not_due() -> None:
    explanation = explain(enqueue(Working, delay=3600))
    assert (explanation.ready, explanation.before) == ("no", 0)
    assert explanation.summary.startswith("Not now: The job is due at 2")
    assert "UTC (in 60 min)" in explanation.summary


def test_a_scheduled_retry_shows_the_last_error(run_jobs) -> None:
    id = enqueue(Working, {"do": "raise", "note": "no such host"})
    run_jobs("test.work")
    assert words(id, "not_due").endswith("Its last claim ended with: no such host")


def test_a_snoozed_job_has_not_failed(run_jobs) -> None:
    id = enqueue(Working, {"do": "snooze", "note": "the files are missing", "seconds": 3600})
    run_jobs("test.work")
    assert words(id, "not_due").endswith("Its last claim ended with: the files are missing")


def test_its_queue_is_paused() -> None:
    id = enqueue(Working)
    pause("test.work", by="alice")
    assert words(id, "paused").startswith("The queue test.work has been paused by alice since 2")


def test_max_running_is_reached_by_named_jobs() -> None:
    Queue.objects.filter(pk="test.work").update(max_running=2)
    first, second, third = (enqueue(Working) for _ in range(3))
    claimed("test.work")
    assert words(third, "max_running") == (
        f"test.work runs at most 2 jobs at once; running now: jobs {first} and {second}."
    )


def test_max_running_leaves_room_for_others_alone() -> None:
    Queue.objects.filter(pk="test.work").update(max_running=2)
    _first, _second, third = (enqueue(Working) for _ in range(3))
    assert words(third, "max_running") == (
        "test.work runs at most 2 jobs at once; running now: none."
        " 2 more may start, and other jobs come first."
    )


def test_the_rate_limit_shows_when_the_next_may_start() -> None:
    later = events_clock.now() + timedelta(hours=1)
    change_queue("test.work", rate_limit=0.5, tokens=0.5, tokens_at=later)
    assert words(enqueue(Working), "rate_limit") == (
        "The rate limit of test.work is 0.5 jobs per second; the next job may start in 1.0 s."
    )


def test_the_rate_limit_of_a_handler_is_named(monkeypatch) -> None:
    monkeypatch.setattr(Working, "rate_limit", 0.25)
    later = events_clock.now() + timedelta(hours=1)
    change_queue("test.work", tokens=0, tokens_at=later)
    assert words(enqueue(Working), "rate_limit") == (
        "The rate limit of test.work is 0.25 jobs per second; the next job may start in 4.0 s."
    )


def test_its_lane_is_busy_and_keeps_its_order(clock, run_jobs) -> None:
    head, second, third = (enqueue(Ordered, lane="home:alice") for _ in range(3))
    (running,) = claimed("test.ordered")
    text = words(third, "lane_busy")
    assert text.startswith("Lane home:alice runs one job at a time, and ")
    assert f"job {head} is running on {running.worker}, with a lease until 2" in text
    assert words(third, "lane_order") == (
        f"Lane home:alice runs its jobs in order, and job {second} comes first."
    )
    assert explain(third).other_jobs == [head, second]


def test_the_head_of_its_lane_is_not_due() -> None:
    head = enqueue(Ordered, lane="a", delay=3600)
    text = words(enqueue(Ordered, lane="a"), "lane_order")
    assert f"job {head} comes first, which is due at" in text


def test_it_has_no_lane_where_lanes_are_served() -> None:
    id = change(enqueue(Working), handler="test.fair")
    assert words(id, "no_lane").startswith("test.fair claims its jobs by lane")
    assert claimed("test.fair") == []


def test_another_is_claimed_alone_before_it() -> None:
    id, lost = enqueue(Working), enqueue(Working)
    change(lost, isolate=True)
    explanation = explain(id)
    assert (explanation.ready, explanation.next_claim) == ("yes", "no")
    assert explanation.summary == (
        f"Ready, but another job goes first. Job {lost} is claimed first and on its own, because a "
        "worker was lost while it ran."
    )
    assert [job.id for job in claimed("test.work")] == [lost]


def test_its_handler_is_unknown() -> None:
    id = change(enqueue(Working), handler="test.gone")
    assert words(id, "unknown_handler") == (
        "The database does not know the handler test.gone yet. The job waits until "
        "`manage.py migrate` is run with the code that has the handler."
    )
    queue = Queue.objects.create(name="test.gone")
    assert "The code that migrated last has this handler" in words(id, "unknown_handler")
    queue.retired_at = events_clock.now()
    queue.save()
    assert words(id, "unknown_handler") == (
        "This code has no handler called test.gone. Deploy a handler of that name, or the "
        "sweeper moves the job to failed."
    )


# --- who comes for it -----------------------------------------------------------------------------


def test_no_worker_listens() -> None:
    Pulse.objects.filter(name="worker:w@test").update(queues=["test.other"])
    explanation = explain(enqueue(Working))
    assert explanation.ready == "yes"
    assert explanation.summary.endswith(
        "But no worker claims it now: No worker serves test.work; workers seen in the last 30 s: 1."
    )


def test_a_worker_without_heartbeat_does_not_count() -> None:
    Pulse.objects.filter(name="worker:w@test").update(at=ago(60))
    assert "workers seen in the last 30 s: 0." in words(enqueue(Working), "no_worker")


def test_the_tick_is_away() -> None:
    Pulse.objects.filter(name="tick").update(at=ago(60))
    assert words(enqueue(Working), "no_tick").startswith("The tick last ran 60 s ago")


@pytest.fixture
def broker_unreachable(monkeypatch) -> None:
    """Point the broker's address at a closed port."""
    scheme = current_app.conf.broker_url.partition("://")[0]
    nowhere = "redis://127.0.0.1:1/0" if scheme.startswith("redis") else "amqp://127.0.0.1:1//"
    monkeypatch.setattr(current_app.conf, "broker_url", nowhere)


def test_the_broker_is_away(broker_unreachable) -> None:
    id = enqueue(Working)
    assert words(id, "broker_away").startswith("The broker does not answer (Connection")
    assert "But no worker claims it now: The broker does not answer" in explain(id).summary


def test_a_wake_up_is_at_the_broker() -> None:
    empty_broker()
    id = enqueue(Working)
    change_queue("test.work", awake=True, awake_at=ago(1), drained_at=ago(50))
    current_app.send_task("test.work", queue="test.work")
    assert broker_status("test.work").messages == 1
    text = words(id, "awake")
    assert "and the last drain started 2" in text
    assert "The wake-up is still at the broker" in text
    assert "The tick sends another" in text
    empty_broker()


def test_a_wake_up_is_at_a_worker_or_lost() -> None:
    empty_broker()
    id = enqueue(Working)
    change_queue("test.work", awake=True, awake_at=ago(1), drained_at=None)
    text = words(id, "awake")
    assert "no drain has started yet. A worker received the wake-up" in text


def test_no_wake_up_is_on_its_way() -> None:
    id = enqueue(Working)
    change_queue("test.work", awake=False, drained_at=ago(3))
    assert words(id, "asleep").startswith("No wake-up is on its way; the last drain started 2")


def test_its_queue_is_retired_though_the_handler_is_here() -> None:
    id = enqueue(Working)
    Queue.objects.filter(pk="test.work").update(retired_at=ago(60))
    assert "`manage.py migrate` with this code restores the queue" in words(id, "queue_retired")


# --- waiting and running --------------------------------------------------------------------------


def test_it_waits_for_a_job() -> None:
    parent = enqueue(Working)
    child = enqueue(Other, after=parent)
    assert words(child, "waits") == (
        f"The job waits for job {parent} (test.work), which is queued."
    )
    change(parent, state="failed")
    assert "the sweeper cancels it within seconds" in words(child, "parent_finished")
    Job.objects.filter(pk=parent).delete()
    assert "was deleted, so the sweeper cancels it" in words(child, "parent_gone")


def test_a_running_job_shows_worker_and_lease() -> None:
    id = enqueue(Working)
    (job,) = claimed("test.work")
    job.progress(3, 10, "halfway")
    cancel([job.id])
    assert words(id, "running").startswith(f"The job has been running on {job.worker} since 2")
    assert words(id, "running").endswith("attempt 1 of 3, claim 1.")
    assert words(id, "progress") == "Its progress is 3 of 10 (halfway)."
    assert "(in 60 s); the worker renews the lease" in words(id, "lease").replace("59 s", "60 s")
    assert words(id, "cancel_requested").startswith("A stop was requested")


def test_a_claimed_job_is_told_from_one_that_has_begun() -> None:
    """Others of its claim are called first; a lost worker charges it nothing."""
    id, _other = enqueue(Working), enqueue(Working)
    (job, _) = claimed("test.work")
    assert words(id, "claimed").startswith(f"The job was claimed by {job.worker} 2")
    Job.objects.filter(pk=id).update(lease_until=events_clock.now() - timedelta(hours=1))
    assert words(id, "lease_expired").endswith("this counts as no attempt.")


@pytest.mark.parametrize(
    ("fields", "then", "state"),
    [
        ({}, "The tick queues the job again, to be claimed on its own.", "pending"),
        ({"attempt": 3}, "The tick moves the job to failed: its 3 attempts are used up.", "failed"),
        ({"cancel_requested": True}, "The tick cancels the job, as requested.", "cancelled"),
    ],
)
def test_its_lease_has_ended_and_what_the_tick_then_does(fields, then: str, state: str) -> None:
    id = enqueue(Working)
    claimed("test.work")
    change(id, lease_until=ago(5), **fields)
    assert words(id, "lease_expired").endswith(f"its worker does not respond. {then}")
    rescue.rescue()
    assert Job.objects.get(pk=id).state == state


# --- finished -------------------------------------------------------------------------------------


def test_it_failed_permanently(run_jobs) -> None:
    id = enqueue(Working, {"do": "permanent", "note": "no such project"})
    run_jobs("test.work")
    assert "permanently, at attempt 1 of 3: no such project." in words(id, "permanent")
    assert f"`manage.py jobs replay {id}`" in words(id, "replay")


def test_it_failed_with_its_attempts_used_up(run_jobs, clock) -> None:
    id = enqueue(Working, {"do": "raise", "note": "no such host"})
    for _ in range(3):
        run_jobs("test.work")
        clock.step(1000)
    text = words(id, "attempts_used_up")
    assert text.endswith("all 3 attempts are used up. The last error: no such host.")


def test_it_failed_as_its_workers_were_lost() -> None:
    id = enqueue(Working)
    claimed("test.work")
    change(id, lease_until=ago(5), attempt=3)
    rescue.rescue()
    assert "its worker was lost" in words(id, "workers_lost")


def test_it_failed_as_its_handler_is_gone() -> None:
    id = change(enqueue(Working), handler="test.gone")
    missing_handlers.fail([id])
    assert "before its first attempt: no handler is called test.gone" in words(id, "failed_untried")
    change(id, claim_no=1)
    assert "no handler is called test.gone" in words(id, "unknown_handler")


def test_it_was_cancelled_by_somebody() -> None:
    id = enqueue(Working)
    cancel([id], by="alice")
    assert words(id, "cancelled") == "The job was cancelled by alice."


def test_it_was_skipped_and_completed(run_jobs) -> None:
    skipped = enqueue(Working, {"do": "skip", "note": "already there"})
    completed = enqueue(Working)
    run_jobs("test.work")
    assert words(skipped, "skipped") == "The handler skipped the job: already there."
    assert words(completed, "completed").startswith("The job completed at the first attempt, by ")


# --- merged ---------------------------------------------------------------------------------------


def test_merged_jobs_are_counted_and_say_where_they_went() -> None:
    first, second = publish([NewEvent(Happened, {"who": "w", "n": n}) for n in range(2)])
    jobs = Job.objects.filter(handler="test.debounced")
    job, merged = jobs.get(event=first.id).pk, jobs.get(event=second.id).pk
    assert words(merged, "merged").startswith(f"The job was merged into job {job}, ")
    assert explain(merged).other_jobs == [job]
    assert "merges" not in codes(job)
    change(job, merged=1)
    assert words(job, "merges") == "1 job with its unique key was merged into this job."
    change(job, merged=1200, state="completed")
    assert words(job, "merges") == "1,200 jobs with its unique key were merged into this job."
