"""Indexing in real worker processes that die, are stopped, or outlast their leases."""

import os
import signal
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.db.models import F, Max, Min, QuerySet

from tailrace.db.clock import now
from tailrace.db.query import query
from tailrace.domains.records.depositions.submit import submit
from tailrace.domains.records.models import KeywordEntry, Record
from tailrace.domains.records.sources.requests import request_pull
from tailrace.events.models import Event
from tailrace.jobs.engine.inserting.insert import insert_jobs
from tailrace.jobs.engine.inserting.new_job import NewJob
from tailrace.jobs.engine.maintenance.ticking import tick
from tailrace.jobs.models import Attempt, Job
from tests import forks
from tests.kit import ROOT, claimed, empty_broker, wait_until, worker
from tests.records.kit import draft, source
from tests.records.test_chain import CHAIN
from tests.records.test_processes import all_completed
from tests.sandbox.indexing.scripted import LEASE, NAME, VARIABLE
from tests.sandbox.models import Effect
from tests.sandbox.record_log import RecordLog
from tests.servers.own_postgres import own_postgres
from tests.web.program import Program

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]
INDEX = CHAIN[-1]
SECONDS = 6
"""Of a lease."""
WAITS = (60, 120, 240, 300)
"""Seconds before each retry of an index."""


def index_job(title: str) -> Job:
    return Job.objects.get(handler=INDEX, routing_key=NAME, event__payload__title=title)


def ended(*titles: str) -> bool:
    """With a tick: the index has done with records of these titles, or has failed."""
    tick.tick()
    jobs = Job.objects.filter(handler=INDEX, routing_key=NAME, event__payload__title__in=titles)
    return jobs.filter(state__in=["completed", "failed"]).count() == len(titles)


def none_running() -> bool:
    tick.tick()
    return not Job.objects.running().exists()


def killed_again() -> bool:
    """With a tick: the job whose process has just been killed is due, without its backoff."""
    waiting = Job.objects.pending().filter(handler=INDEX, event__payload__title="kill")
    for job in waiting.filter(routing_key=NAME, error__contains="was killed by signal 9"):
        Job.objects.filter(pk=job.pk, state="pending", due_at__gt=now()).update(due_at=now())
    return ended("kill")


def test_processes_that_die_or_stop_and_one_that_takes_long(
    process_env: dict[str, str], tmp_path: Path
) -> None:
    empty_broker()
    request_pull(source().pk)
    [lost] = claimed("records.pull_from_source")
    Job.objects.filter(pk=lost.id).update(lease_until=now() + timedelta(hours=2))
    sound = [f"sound {number}" for number in range(10)]
    submit([draft(title) for title in ("kill", "stop", "outlast", *sound)])
    env = process_env | {VARIABLE: "1", LEASE: str(SECONDS)}
    with worker(env, CHAIN, log=tmp_path / "worker.log", concurrency=4) as running:
        # What kills its worker each time fails, and holds nothing else up.
        wait_until(killed_again)
        wait_until(lambda: ended(*sound))
        killer = index_job("kill")
        assert (killer.state, killer.attempt) == ("failed", 5)
        assert Attempt.objects.filter(job=killer, outcome="lost").count() == 5
        assert Effect.objects.filter(note="kill").values("process").distinct().count() == 5

        # Another process does the job of one that is stopped, which settles nothing later.
        wait_until(lambda: ended("stop", "outlast"))
        done = index_job("stop")
        assert (done.state, done.claim_no) == ("completed", 2)
        zombie, heir = Effect.objects.filter(note="stop").order_by("pk")
        assert zombie.process != heir.process
        os.kill(zombie.process, signal.SIGCONT)
        wait_until(lambda: "settle.lease_lost" in running.output)
        after = index_job("stop")
        assert (after.state, after.claim_no, after.finished_at) == (
            "completed",
            2,
            done.finished_at,
        )

        # A call that takes longer than its lease keeps it.
        outlasted = index_job("outlast")
        assert (outlasted.state, outlasted.claim_no) == ("completed", 1)
        assert outlasted.started_at
        assert outlasted.finished_at
        assert outlasted.finished_at - outlasted.started_at > timedelta(seconds=SECONDS)
        assert Effect.objects.filter(note="outlast").count() == 1

    # A claim of two hours, whose worker is lost, delayed the rescue of no other.
    pull = Job.objects.get(pk=lost.id)
    assert (pull.state, pull.claim_no) == ("running", 1)
    rescued = Attempt.objects.get(job=done, outcome="lost")
    assert rescued.started_at
    assert done.finished_at
    assert done.finished_at - rescued.started_at < timedelta(seconds=30)


def have_ended(jobs: QuerySet[Job], attempt: int, state: str) -> bool:
    """With a tick: all of these jobs are in this state after so many attempts."""
    tick.tick()
    return set(jobs.values_list("state", "attempt")) == {(state, attempt)}


def waits_of(jobs: QuerySet[Job]) -> list[float]:
    """Return the seconds from the end of each job's last attempt until it is due."""
    ends = Attempt.objects.filter(job__in=jobs).values("job").annotate(at=Max("finished_at"))
    ended_at = {row["job"]: row["at"] for row in ends}
    return [(job.due_at - ended_at[job.pk]).total_seconds() for job in jobs]


def test_what_fails_is_retried_by_its_schedule_and_replayed(
    process_env: dict[str, str], tmp_path: Path
) -> None:
    empty_broker()
    root = User.objects.create_superuser("root")
    origin = source().pk
    submit([draft(f"raise {number}", source_id=origin) for number in range(3)])
    submit([draft("of a user")])
    env = process_env | {VARIABLE: "1", "RECORDS_AUTO_APPROVE": "no"}
    failing = Job.objects.filter(handler=INDEX, routing_key=NAME).order_by("pk")
    with worker(env, CHAIN, log=tmp_path / "worker.log", concurrency=2):
        # Each try of an index that fails is followed by a longer wait, which is cut short here.
        wait_until(lambda: failing.count() == 3)
        for attempt, seconds in enumerate(WAITS, 1):
            wait_until(partial(have_ended, failing, attempt, "pending"))
            waits = waits_of(failing)
            assert all(0.8 * seconds - 1 <= wait <= 1.2 * seconds + 1 for wait in waits), waits
            failing.update(due_at=F("created_at"))
        wait_until(partial(have_ended, failing, 5, "failed"))
        assert Attempt.objects.filter(job__in=failing).count() == 15
        assert KeywordEntry.objects.count() == 3, "the other index has its entries"

        # What cannot succeed fails at once; what is skipped keeps its reason.
        published = Event.objects.filter(type="records.record_published").latest("id")
        former = NewJob(INDEX, event_id=published.pk, routing_key="former", lane="former")
        [former_id] = insert_jobs([former]).ids
        gone = Job.objects.filter(pk=former_id)
        wait_until(partial(have_ended, gone, 1, "failed"))
        assert gone.get().error.startswith("there is no index 'former'; the indexes are")
        skipped = Job.objects.get(state="skipped")
        assert (skipped.handler, skipped.error) == (CHAIN[1], "the deposition waits for a curator")

        # Failed jobs are replayed, one by the API and all by a command.
        Record.objects.update(title="sound")
        first = failing[0]
        assert Program(root).post(f"/jobs/{first.pk}/replay").status_code == 200
        wait_until(partial(have_ended, failing.filter(pk=first.pk), 1, "completed"))
        assert have_ended(failing.exclude(pk=first.pk), 5, "failed")
        command = ["manage.py", "reindex_records", NAME, "--failed", "--by", "root"]
        forks.run(command, cwd=ROOT, env=env, check=True)
        wait_until(partial(have_ended, failing, 1, "completed"))
    assert gone.get().state == "failed", "it is of another index"
    assert Effect.objects.filter(note="sound").count() == 3
    entries = LogEntry.objects.filter(change_message__startswith="replayed").order_by("pk")
    assert list(entries.values_list("user", "object_id", "change_message")) == [
        (root.pk, str(first.pk), "replayed"),
        (root.pk, None, f"replayed 2 jobs: failed jobs of the index {NAME}"),
    ]


def test_of_two_handlers_of_one_event_the_one_that_fails_leaves_the_other_alone(
    process_env: dict[str, str], tmp_path: Path
) -> None:
    empty_broker()
    titles = [f"unlogged {number}" for number in range(5)] + ["logged 1", "logged 2"]
    submit([draft(title) for title in titles])
    logged = Job.objects.filter(handler=RecordLog.name)
    failing = logged.filter(event__payload__title__startswith="unlogged")
    env = process_env | {VARIABLE: "1"}
    queues = [*CHAIN, RecordLog.name]
    with worker(env, queues, log=tmp_path / "worker.log", concurrency=2):
        for attempt in (1, 2):
            wait_until(lambda: failing.count() == 5)
            wait_until(partial(have_ended, failing, attempt, "pending"))
            failing.update(due_at=F("created_at"))
        wait_until(partial(have_ended, failing, 3, "pending"))
        wait_until(all_completed)
    assert set(logged.difference(failing).values_list("state", "attempt")) == {("completed", 1)}
    indexed = Job.objects.filter(handler=INDEX)
    assert indexed.count() == 3 * len(titles)
    assert set(indexed.values_list("state", "claim_no")) == {("completed", 1)}
    effects = Effect.objects.filter(handler=NAME).values_list("note", flat=True)
    assert sorted(effects) == sorted(titles), "each exactly once"


@pytest.mark.long
def test_a_terminated_worker_ends_its_batch_and_claims_nothing_more(
    process_env: dict[str, str], tmp_path: Path
) -> None:
    empty_broker()
    submit([draft(f"slow {number}") for number in range(30)])
    slow = Effect.objects.filter(note__startswith="slow")
    with worker(process_env | {VARIABLE: "10"}, CHAIN, log=tmp_path / "worker.log") as running:
        wait_until(slow.exists)
        assert running.stop(30) == 0
    jobs = Job.objects.filter(handler__in=CHAIN)
    assert set(jobs.values_list("state", "claim_no")) == {("completed", 1), ("pending", 0)}
    indexed = jobs.filter(routing_key=NAME)
    assert indexed.filter(state="completed").count() == slow.count() <= 10, "a batch has ten"
    assert not Attempt.objects.exists()


def test_ten_jobs_of_one_index_come_soon_behind_ten_thousand_of_another(
    process_env: dict[str, str], tmp_path: Path, run_jobs: Callable[..., int]
) -> None:
    empty_broker()
    submit([draft(f"sound {number}") for number in range(10)])
    run_jobs(*CHAIN[:3])
    few = Job.objects.filter(routing_key="vector")
    ids = list(few.values_list("pk", flat=True))
    flood()
    few.update(routing_key=NAME, lane=f"/{NAME}")
    with worker(process_env | {VARIABLE: "1"}, [INDEX], log=tmp_path / "worker.log"):
        wait_until(lambda: Job.objects.filter(pk__in=ids, state="completed").count() == 10)
    jobs = Job.objects.filter(handler=INDEX).exclude(worker="")
    claims = jobs.values("worker", "routing_key").annotate(at=Min("started_at")).order_by("at")
    first = [claim["routing_key"] for claim in claims[:20]]
    assert first.count(NAME) == 10, first
    assert Job.objects.filter(routing_key="keyword", state="pending").count() > 9000


def flood() -> None:
    """Let the first index have ten thousand jobs in all, each of an event of its own."""
    rows = query("""
        INSERT INTO tailrace_events_event (source, source_id, type, schema_version, subject,
          payload, occurred_at, recorded_at, actor, trace_parent, problem)
        SELECT source, source_id || '/' || n, type, schema_version, subject, payload, occurred_at,
          recorded_at, actor, trace_parent, problem
        FROM tailrace_events_event, generate_series(1, 999) n
          WHERE type = 'records.record_published'
        RETURNING id""")
    insert_jobs(
        [NewJob(INDEX, event_id=id, routing_key="keyword", lane="/keyword") for (id,) in rows]
    )
    assert Job.objects.filter(handler=INDEX, routing_key="keyword").count() == 10_000


@pytest.mark.once
@pytest.mark.long
def test_the_pipeline_goes_on_when_postgresql_has_crashed(
    process_env: dict[str, str], tmp_path: Path
) -> None:
    with own_postgres(tmp_path) as server:
        empty_broker()
        env = process_env | {"DATABASE_URL": server.url, VARIABLE: "1"}
        before = [f"slow {number}" for number in range(4)]
        after = ["sound 1", "sound 2"]
        submit([draft(title) for title in before])
        with worker(env, CHAIN, log=tmp_path / "worker.log", concurrency=2) as running:
            wait_until(Effect.objects.filter(note__startswith="slow").exists)
            server.crash()
            submit([draft(title) for title in after])
            wait_until(lambda: ended(*after))
            assert running.process.poll() is None
            job = index_job("sound 2")
            assert job.finished_at
            assert job.finished_at - job.event.recorded_at < timedelta(seconds=30)
            # What was at work in the crash is done again when its lease or its wait is over.
            Job.objects.running().update(lease_until=job.created_at)
            wait_until(none_running)
            Job.objects.filter(state="pending").update(due_at=job.created_at)
            wait_until(all_completed)
        assert Job.objects.filter(handler=INDEX).count() == 3 * len(before + after)
