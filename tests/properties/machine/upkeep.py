"""Upkeep in the machine: time passes, and the tick, the sweeper and prune do their work."""

from hypothesis import strategies as st

from tailrace.db import clock
from tailrace.jobs.engine.maintenance.pruning import prune
from tailrace.jobs.engine.maintenance.sweeping import sweep
from tailrace.jobs.engine.maintenance.ticking import rescue, tick
from tailrace.jobs.models import Job, Queue, QueueActivity
from tests.properties.machine.rules import of_the_engine
from tests.properties.machine.steps import Steps, action, times


class Upkeep(Steps):
    """Look, rescue, tick, sweep, prune."""

    @action(5, seconds=times)
    def look(self, seconds: float) -> None:
        """Nothing happens, but time passes."""
        with self.step("look", seconds):
            pass

    @action(6, seconds=st.sampled_from([0, 31, 61, 61]))
    def rescue(self, seconds: float) -> None:
        with self.step("rescue", seconds):
            least = self.model.expired()
            assert least <= rescue.rescue() <= self.model.expired()

    @action(2, seconds=times)
    def tick(self, seconds: float) -> None:
        """After a tick, every queue with due work is awake."""
        with self.step("tick", seconds):
            due = Job.objects.pending().filter(due_at__lte=clock.now()).values("handler")
            tick.tick()
            asleep = QueueActivity.objects.filter(awake=False).values("name")
            unwoken = Queue.objects.active().filter(pk__in=due, paused_at=None)
            unwoken = unwoken.filter(pk__in=asleep)
            assert not unwoken.exists()

    @action(2)
    def sweep(self) -> None:
        with self.step("sweep"):
            assert {run.outcome for run in sweep.sweep(of_the_engine())} == {"checked"}

    @action(2, days=st.sampled_from([2, 31, 91]))
    def prune(self, days: int) -> None:
        with self.step("prune", days * 86_400):
            prune.prune()
