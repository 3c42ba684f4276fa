"""Workers, operators, publishers and the clock act in any order, and the rules always hold.

The engine and the database are real, every step commits, and the model checks each write.
MACHINE_EXAMPLES=2000 searches for longer.
"""

import logging
import os
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection
from hypothesis import HealthCheck, Phase, settings, stateful
from hypothesis import strategies as st

from tailrace.db import clock
from tailrace.events.models import Event
from tailrace.jobs.engine import drain
from tailrace.jobs.engine.maintenance.sweeping.check_all import check_all
from tailrace.jobs.engine.maintenance.ticking import tick
from tailrace.jobs.engine.settling import settle
from tailrace.jobs.models import Attempt, Dependency, Flow, Job, Queue, QueueActivity
from tailrace.jobs.operations.cancel import cancel
from tailrace.jobs.runtime.invariant import all_invariants
from tailrace.jobs.runtime.states import FINISHED, LIVE, State
from tests.kit import PATIENCE, at_once, claimed, empty_broker
from tests.properties.machine.model import seen
from tests.properties.machine.operators import Operators
from tests.properties.machine.publishers import Publishers
from tests.properties.machine.recording import ADD_TRIGGER, DROP_TRIGGER, execute
from tests.properties.machine.steps import action, arguments, some
from tests.properties.machine.upkeep import Upkeep
from tests.properties.machine.workers import Workers, verdicts

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]

EXAMPLES = int(os.environ.get("MACHINE_EXAMPLES") or 8)
MORE_EXAMPLES = max(EXAMPLES, 20)


class Machine(Publishers, Workers, Operators, Upkeep):
    """Everybody acts, one after another or in a race, until at the end all work is done."""

    @stateful.initialize(jobs=st.lists(arguments["enqueue"], min_size=3, max_size=6))
    def begin(self, jobs: list[dict[str, Any]]) -> None:
        """Begin with some jobs, and one queue that is limited."""
        for job in jobs:
            self.enqueue(**job)
        self.limit(len(jobs), 2)

    @action(6, number=some, chosen=some, verdicts=verdicts, seconds=st.sampled_from([0, 0, 61]))
    def race(self, number: int, chosen: int, verdicts: list[str], seconds: float) -> None:
        """Two workers claim while one settles, an operator cancels and the tick rescues."""
        batch = self.batch(number)
        self.limit(number, (None, 1, 2)[chosen % 3])
        jobs, batch[:] = batch[:], []
        with self.step("race", seconds):
            ended = self.handler.run(jobs, verdicts)
            self.settled += ended
            name, id = self.queue(number), self.job(chosen)
            actions = [
                tick.tick,
                lambda: cancel([id]),
                lambda: settle.settle(ended),
                *[lambda: claimed(name, 2)] * 2,
            ]
            ready = threading.Barrier(len(actions))

            def go(place: int) -> Any:
                connection.ensure_connection()
                ready.wait(PATIENCE)
                return actions[place]()

            _, _, settled, *taken = at_once(len(actions), go)
            assert set(settled) <= {job.id for job in jobs}
            for jobs in taken:
                self.take(jobs, settled)

    def teardown(self) -> None:
        if not self.broken:
            self.converge()

    def converge(self) -> None:
        """Resume all queues and let time pass: workers drain the awake queues, and each job ends.
        Then fsck reports nothing, and prune deletes everything."""
        self.resume()
        for _round in range(30):
            self.sweep()
            self.tick(700)
            with self.step("drain"):
                self.handler.verdicts = ("complete",)
                names = QueueActivity.objects.filter(awake=True).values("name")
                awake = Queue.objects.active().filter(pk__in=names)
                for name in awake.values_list("name", flat=True):
                    drain.drain(name)
            if not any(job.state in LIVE for job in self.model.jobs.values()):
                break
        left = Job.objects.exclude(state__in=FINISHED)
        assert not left.exists(), f"never ended: {list(left.values())}"
        there = {*Job.objects.values_list("id", flat=True)}
        assert there == {*self.model.jobs} == self.model.created - self.model.pruned, "lost"
        with self.step("look", 700):
            reports = check_all(all_invariants(), pause=lambda: None)
            assert not (wrong := [report for report in reports if not report.clean]), wrong
        self.prune(100)
        assert not any(table.objects.exists() for table in (Job, Attempt, Event, Flow, Dependency))


@pytest.fixture
def recorded_writes() -> Iterator[None]:
    """Record every write by a trigger during the test, without logs."""
    execute(ADD_TRIGGER)
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)
    clock.offset = 0.0
    execute(DROP_TRIGGER)
    empty_broker()


@pytest.mark.usefixtures("import_folder", "storage_folder")  # without files of other tests
@pytest.mark.parametrize(
    "examples", [EXAMPLES, pytest.param(MORE_EXAMPLES, marks=pytest.mark.long)]
)
def test_the_rules_hold_in_any_order_of_events(
    recorded_writes: None, ten_to_a_claim: None, examples: int
) -> None:
    seen.clear()
    stateful.run_state_machine_as_test(
        Machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=50,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            phases=[Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink],
        ),
    )
    assert seen == {*State}
