"""fsck beside real workers, one of which is killed: it reports nothing that is in progress."""

import json
import random
from contextlib import suppress
from io import StringIO
from pathlib import Path

import pytest

from tailrace.events.management.subcommands import call_subcommand
from tailrace.events.publish import NewEvent, publish
from tailrace.jobs.engine.inserting.new_job import InvalidJob
from tailrace.jobs.engine.maintenance.sweeping import sweep
from tailrace.jobs.engine.maintenance.ticking import tick
from tailrace.jobs.enqueue import enqueue, enqueue_many
from tailrace.jobs.models import Attempt, Job
from tailrace.jobs.operations.cancel import cancel
from tailrace.jobs.operations.replay import replay
from tailrace.jobs.operations.retry import retry_now
from tailrace.jobs.platform.invariants import events
from tests import forks
from tests.kit import ROOT, empty_broker, repeated, wait_until, worker
from tests.sandbox.event_types import Happened
from tests.sandbox.handlers import Fair, Ordered, Poison, Working

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]

QUEUES = ["test.work", "test.poison", "test.fair", "test.ordered", "test.log", "test.keyed"]
RUNS = 8


CHANCE = random.Random(7)


def load() -> None:
    """Publish and owe jobs that end in every way there is, cancel some and replay some."""
    publish([NewEvent(Happened, {"who": "w", "tags": ["a", "b"]}) for _ in range(5)])
    for do in ("nothing", "raise", "retry", "snooze", "skip", "cancel", "permanent"):
        enqueue(Working, {"do": do}, unique_key=CHANCE.choice([None, "k"]))
    for kind in (Fair, Ordered):
        jobs = [{"lane": CHANCE.choice("abc"), "payload": {"do": "retry"}} for _ in range(3)]
        enqueue_many(kind, [*jobs, *({"lane": lane} for lane in "abc")])
    parent = enqueue(Working, {"do": CHANCE.choice(["nothing", "permanent"])})
    assert parent is not None
    with suppress(InvalidJob):  # a worker was quicker, and what it would wait for is cancelled
        enqueue(Working, after=enqueue(Working, after=parent))
    if CHANCE.random() < 0.1:
        enqueue(Poison, {"do": "kill"})
    live = list(Job.objects.exclude(state="completed").values_list("id", flat=True)[:50])
    cancel(CHANCE.sample(live, min(5, len(live))))
    replay(CHANCE.sample(live, min(5, len(live))))
    retry_now(live)


def beat() -> None:
    tick.tick()
    sweep.sweep()


def findings() -> dict[str, object]:
    out = StringIO()
    with suppress(SystemExit):
        call_subcommand("fsck", "--json", "--pause", "0.5", stdout=out)
    kinds = json.loads(out.getvalue())["kinds"]
    return {kind["kind"]: kind for kind in kinds if kind["found"] or kind["error"]}


def test_an_unreachable_database_is_reported_once(process_env: dict[str, str]) -> None:
    nowhere = process_env | {"DATABASE_URL": "postgres://nobody@127.0.0.1:1/nothing"}
    done = forks.run(["manage.py", "fsck"], cwd=ROOT, env=nowhere, capture_output=True, text=True)
    assert done.returncode == 1
    assert "CommandError: the database cannot be reached: " in done.stderr
    assert "checks:" not in done.stdout


@pytest.mark.long
def test_fsck_finds_nothing_while_workers_drain_a_load(
    process_env: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "SETTLING_SECONDS", 0)  # look at what is published just now
    empty_broker()
    first, second = tmp_path / "first.log", tmp_path / "second.log"
    with (
        worker(process_env, QUEUES, log=first, concurrency=2) as killed,
        worker(process_env, QUEUES, log=second),
        repeated(beat, 0.2),
    ):
        with repeated(load, 0.05):
            wait_until(lambda: Job.objects.filter(state="completed").count() > 50, 30)
            for run in range(RUNS):
                if run == RUNS // 2:
                    killed.kill()
                assert findings() == {}
        states = set(Job.objects.values_list("state", flat=True).distinct())
        assert states >= {"completed", "skipped", "cancelled", "failed", "pending"}
        assert findings() == {}
        wait_until(lambda: Attempt.objects.filter(outcome="lost").exists(), 30)
        assert findings() == {}
