"""Workers in the machine: they claim, settle, renew, die and drain."""

from collections.abc import Container, Sequence

from hypothesis import note
from hypothesis import strategies as st

from tailrace.jobs.engine import drain, registry
from tailrace.jobs.engine.claiming import claim
from tailrace.jobs.engine.claiming.claim import Limits
from tailrace.jobs.engine.leases.renew import renew
from tailrace.jobs.engine.settling import settle
from tailrace.jobs.handler import CancelRequested, ClaimedJob, LeaseLost
from tailrace.jobs.runtime.states import State
from tests.kit import claimed
from tests.properties.machine.dying import dying
from tests.properties.machine.scripted_handler import VERDICTS, expected_state
from tests.properties.machine.steps import Steps, action, some

verdicts = st.just(["retry"]) | st.lists(st.sampled_from(VERDICTS), min_size=1, max_size=3)


def is_owned(job: ClaimedJob) -> bool:
    """Whether the claim still owns the job."""
    try:
        job.check_cancelled()
    except LeaseLost:
        return False
    except CancelRequested:
        pass
    return True


class Workers(Steps):
    """Claim jobs, hold them, and settle them or not."""

    def batch(self, number: int) -> list[ClaimedJob]:
        """The claims that one of the workers holds; if none holds any, one claims first."""
        if not any(self.held):
            self.claim(number, 4, False)
        self.held = [batch for batch in self.held if batch] or [[]]
        return self.held[number % len(self.held)]

    def take(self, jobs: Sequence[ClaimedJob], settled: Container[int] = ()) -> None:
        """`settled`: jobs that another worker has settled meanwhile, which need not be alone."""
        note(f"claims {[(job.handler.name, job.id, job.claim_no) for job in jobs]}")
        self.model.take(jobs, settled)
        self.held.append(list(jobs))

    @action(16, number=some, most=st.integers(1, 4), begun=st.booleans())
    def claim(self, number: int, most: int, begun: bool) -> None:
        """Claim in a drain that begins now, or one that began before the queue was paused."""
        with self.step("claim"):
            name = self.queue(number)
            limits = Limits(self.model.limits.get(name))
            jobs = claim.claim(registry.get(name), limits, most) if begun else claimed(name, most)
            self.take(jobs)
            assert len(self.model.read_writes("claim")) == len(jobs) <= most, "given to nobody"
            assert self.model.live(jobs) == list(jobs)

    @action(16, number=some, verdicts=verdicts, most=st.integers(1, 4))
    def settle(self, number: int, verdicts: list[str], most: int) -> None:
        """A worker settles some of what it holds; what it has lost, it leaves as it is."""
        batch = self.batch(number)
        jobs, batch[:] = batch[:most], batch[most:]
        with self.step("settle"):
            ended = self.handler.run(jobs, verdicts)
            self.settled += ended
            expected: dict[int, tuple[State, int]] = {}
            for job in self.model.live(jobs):
                row, verdict = self.model.jobs[job.id], self.handler.verdict(job)
                taken = bool(self.model.unstarted(row.handler, row.unique_key))
                tried = row.attempt - (verdict in ("snooze", "hand back"))
                expected[job.id] = (expected_state(row, verdict, taken), tried)
            note(f"settles {[(job.id, self.handler.verdict(job)) for job in jobs]}: {expected}")
            assert settle.settle(ended) == {id: state for id, (state, _tried) in expected.items()}
            ends = [
                was for was, _became in self.model.read_writes("settle") if was == State.RUNNING
            ]
            now = {id: self.model.jobs[id] for id in expected}
            assert {id: (job.state, job.attempt) for id, job in now.items()} == expected
            assert len(ends) == len(expected)

    @action(3, number=some)
    def settle_again(self, number: int) -> None:
        """Settle the same verdict a second time: it changes nothing."""
        with self.step("look"):
            again = self.settled[number % len(self.settled) :][:1] if self.settled else []
            assert settle.settle(again) == {}

    @action(3, number=some)
    def crash(self, number: int) -> None:
        """A worker dies with the claims that it holds."""
        self.batch(number).clear()

    @action(3, number=some)
    def renew(self, number: int) -> None:
        with self.step("look"):
            batch = self.batch(number)
            mine = len(self.model.live(batch))
            assert not batch or renew(batch) == mine
            assert [is_owned(job) for job in batch].count(True) == mine

    @action(8, number=some, verdicts=verdicts, dies=st.integers(-12, 12))
    def drain(self, number: int, verdicts: list[str], dies: int) -> None:
        """Drain a queue, to the end or until the worker dies or loses its connection."""
        with self.step("drain"):
            self.handler.verdicts = verdicts
            with dying(dies):
                drain.drain(self.queue(number))
