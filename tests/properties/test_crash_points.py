"""A crash at each statement, commit and message from publish to settle; then all converges."""

import json
import signal
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db import connection

from tailrace.db import clock as events_clock
from tailrace.events.models import Event
from tailrace.events.publish import NewEvent, publish
from tailrace.jobs.engine.maintenance.sweeping import sweep
from tailrace.jobs.engine.maintenance.ticking import rescue, tick
from tailrace.jobs.enqueue import enqueue
from tailrace.jobs.flows import NewFlow
from tailrace.jobs.models import Flow, Job, QueueActivity
from tailrace.jobs.runtime.states import LIVE
from tailrace.jobs.testing import Clock
from tests import forks
from tests.kit import ROOT, broker_length, empty_broker
from tests.properties.crash import AFTER, ALONE, BEFORE, COMMIT, MESSAGE
from tests.properties.machine.rules import of_the_engine
from tests.sandbox.event_types import Happened
from tests.sandbox.handlers import Batch, Other, Working
from tests.sandbox.models import Effect

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]

Crash = Callable[[str, str, int, str], Any]
DUE_AT_ONCE = {"test.log", "test.keyed"}
every_point = pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.long)])
"""The long form crashes on both sides of each point, also inside of transactions."""


@pytest.fixture(scope="module")
def server(process_env_of_package: dict[str, str]) -> Iterator[subprocess.Popen[str]]:
    """Forks the processes that die."""
    server = forks.Fork(
        ["-m", "tests.properties.crash"],
        cwd=ROOT, env=process_env_of_package | {"DJANGO_SETTINGS_MODULE": "tests.settings"},
        text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert server.stdout is not None
    while server.stdout.readline() not in ("ready\n", ""):
        pass
    yield server
    server.kill()
    server.wait()


@pytest.fixture
def crash(server: subprocess.Popen[str], transactional_db: None) -> Crash:
    """Return `crash(scenario, source_id, point, moment)`: a process that dies at that point."""

    def at(scenario: str, source_id: str, point: int, moment: str) -> Any:
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(f"{scenario} {source_id} {point} {moment} {events_clock.offset}\n")
        server.stdin.flush()
        while (line := server.stdout.readline()) and line[0] not in "[{":
            pass  # a line of the log
        assert line, "the fork server is gone"
        return json.loads(line)

    empty_broker()
    return at


def around_commits(names: list[str]) -> set[tuple[int, str]]:
    """Choose the points between which others see something new: the first and the last one, both
    sides of each commit, each message and each statement that commits by itself, and one in each
    transaction. What is after a point is not before the next one once more."""
    chosen = {(1, BEFORE), (len(names), AFTER)}
    inside = False
    for number, name in enumerate(names, 1):
        writes_alone = name.startswith(ALONE) and not name.startswith(f"{ALONE}SELECT")
        ends = name in (COMMIT, MESSAGE) or writes_alone
        if ends:
            chosen |= {(number, BEFORE), (number, AFTER)}
        elif not inside and not name.startswith(ALONE):
            chosen.add((number, AFTER))
        inside = not ends and not name.startswith(ALONE)
    return {(n, moment) for n, moment in chosen if moment == AFTER or (n - 1, AFTER) not in chosen}


def each_point(
    crash: Crash, scenario: str, prepare: Callable[[str], None], every: bool
) -> Iterator[Any]:
    """Yield (source_id, its name) after a crash at each point, before and after it; unless `every`,
    at those around commits."""
    prepare("whole")
    names = crash(scenario, "whole", 0, BEFORE)
    assert isinstance(names, list), names
    assert len(names) >= 3, names
    yield "whole", "no crash"
    chosen = around_commits(names)
    for number, name in enumerate(names, 1):
        for moment in (BEFORE, AFTER):
            if not every and (number, moment) not in chosen:
                continue
            source_id = f"{moment}{number}"
            prepare(source_id)
            died = crash(scenario, source_id, number, moment)
            assert died == {"status": -signal.SIGKILL}, f"{name}: {died}"
            yield source_id, f"{moment} {number} ({name})"


def nothing(source_id: str) -> None:
    """What is to be published is not there yet."""


def recover(clock: Clock, run_jobs: Callable[..., int]) -> None:
    """Let the leases end, and a healthy process do what beat and workers do."""
    clock.step(130)  # past leases, delays and a lost message's longest wait
    tick.tick()
    sweep.sweep(of_the_engine())
    pending = Job.objects.pending().values("handler")
    asleep = QueueActivity.objects.filter(name__in=pending, awake=False)
    assert not asleep.exists(), "a queue with work is asleep"
    run_jobs()
    clock.step(600)  # past the backoff of what was tried again
    run_jobs()


def judge(at: str, source_id: str, effects: set[str]) -> None:
    """Check that each job of the event is done once, and its effect has happened."""
    jobs = Job.objects.filter(event__source="crash", event__source_id=source_id)
    assert set(jobs.values_list("state", flat=True)) == {"completed"}, at
    done = Effect.objects.filter(job_id__in=jobs.values("id"))
    assert set(done.values_list("handler", flat=True)) == effects, at
    assert not Job.objects.filter(state__in=LIVE).exists(), at


def test_publish_is_whole_or_nothing_and_what_it_owes_is_done(
    crash: Crash, clock: Clock, run_jobs: Callable[..., int]
) -> None:
    publish_and_crash(crash, clock, run_jobs, every=False)


@pytest.mark.long
def test_publish_is_whole_or_nothing_wherever_it_dies(
    crash: Crash, clock: Clock, run_jobs: Callable[..., int]
) -> None:
    publish_and_crash(crash, clock, run_jobs, every=True)


def publish_and_crash(
    crash: Crash, clock: Clock, run_jobs: Callable[..., int], every: bool
) -> None:
    seen = {True: 0, False: 0}
    for source_id, at in each_point(crash, "publish", nothing, every):
        recorded = Event.objects.filter(source="crash", source_id=source_id).exists()
        seen[recorded] += 1
        if not recorded:
            assert not Job.objects.filter(event=None).exists(), at
            assert not Job.objects.filter(state__in=LIVE).exists(), at
            continue
        owed = Job.objects.filter(event__source_id=source_id)
        handlers = set(owed.values_list("handler", flat=True))
        assert handlers == DUE_AT_ONCE | {"test.family", "test.debounced"}, at
        recover(clock, run_jobs)
        judge(at, source_id, handlers)
    assert seen[True] >= 3, "no crash came after the commit"
    assert seen[False] >= 3, "no crash came before the commit"


@every_point
def test_a_lost_message_is_sent_again_by_the_tick(crash: Crash, clock: Clock, every: bool) -> None:
    for source_id, at in each_point(crash, "publish", nothing, every):
        if not Event.objects.filter(source="crash", source_id=source_id).exists():
            continue
        clock.step(3)
        tick.tick()
        for name in DUE_AT_ONCE:
            assert QueueActivity.objects.get(name=name).awake, at
            assert broker_length(name) >= 1, at
        with connection.cursor() as cursor:
            cursor.execute("TRUNCATE tailrace_jobs_job")
            cursor.execute("UPDATE tailrace_jobs_queueactivity SET awake = false")
        empty_broker()


@every_point
@pytest.mark.parametrize(
    ("scenario", "name"), [("drain", "test.log"), ("drain_batch", "test.batch")]
)
def test_a_worker_that_dies_anywhere_loses_and_doubles_no_job(
    crash: Crash,
    clock: Clock,
    run_jobs: Callable[..., int],
    scenario: str,
    name: str,
    every: bool,
) -> None:
    def prepare(source_id: str) -> None:
        event = publish(NewEvent(Happened, {"tags": []}, source="crash", source_id=source_id))[0]
        if name == "test.batch":
            Job.objects.filter(event_id=event.id).delete()
            for key in "abc":
                made = Job.objects.filter(pk=enqueue(Batch))
                made.update(event_id=event.id, routing_key=key)

    for source_id, at in each_point(crash, scenario, prepare, every):
        mine = Job.objects.filter(event__source_id=source_id, handler=name)
        before = dict(mine.values_list("id", "state"))
        done = Effect.objects.filter(job_id__in=before).count()
        recover(clock, run_jobs)
        after = dict(mine.values_list("id", "state"))
        assert set(after) == set(before), at
        assert set(after.values()) == {"completed"}, f"{at}: {before} became {after}"
        assert set(Effect.objects.values_list("job_id", flat=True)) >= set(after), at
        settled = [id for id, state in before.items() if state == "completed"]
        again = Effect.objects.filter(job_id__in=settled).count()
        assert again <= done, f"{at}: done again though it was settled"
        assert not Job.objects.filter(state__in=LIVE).exists(), at


@every_point
def test_a_tick_that_dies_anywhere_is_made_good_by_the_next(
    crash: Crash, clock: Clock, run_jobs: Callable[..., int], every: bool
) -> None:
    def prepare(source_id: str) -> None:
        publish(NewEvent(Happened, {"tags": []}, source="crash", source_id=source_id))
        Job.objects.filter(event__source_id=source_id, handler="test.log").update(
            state="running", claim_no=1, attempt=1, worker="gone", lease_until="2026-01-01T00:00Z"
        )

    for source_id, at in each_point(crash, "tick", prepare, every):
        recover(clock, run_jobs)
        assert rescue.rescue() == 0, at
        judge(at, source_id, {"test.log", "test.family"})


@every_point
def test_a_worker_that_dies_anywhere_between_the_end_of_parents_and_the_callback(
    crash: Crash, clock: Clock, run_jobs: Callable[..., int], every: bool
) -> None:
    def prepare(source_id: str) -> None:
        flow = NewFlow(source_id)
        flow.add(Other, after=[flow.add(Working), flow.add(Working)], name="callback")
        flow.enqueue()

    released, waiting = 0, 0
    for source_id, at in each_point(crash, "drain_flow", prepare, every):
        jobs = Job.objects.filter(flow_id=Flow.objects.get(name=source_id).pk)
        parents = jobs.exclude(flow_name="callback")
        ended = parents.filter(state="completed").count() == 2
        callback = jobs.get(flow_name="callback")
        assert callback.state == "waiting" or ended, at
        released += callback.state == "pending"
        waiting += ended and callback.state == "waiting"
        recover(clock, run_jobs)
        assert set(jobs.values_list("state", flat=True)) == {"completed"}, at
        assert Effect.objects.filter(job_id=callback.pk).count() == 1, at
        last = max(Effect.objects.filter(job_id__in=parents).values_list("pk", flat=True))
        assert Effect.objects.get(job_id=callback.pk).pk > last, at
    assert released >= 2, "no crash came after the release"
    assert waiting >= 1, "no crash came between the end of the parents and the release"
