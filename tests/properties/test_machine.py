"""Workers, operators, publishers and the clock in any order: what must hold, holds.

The engine and the database are real, every step commits, and `model.py` judges each write.
MACHINE_EXAMPLES=2000 looks for longer.
"""

import logging
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import connection, transaction
from hypothesis import HealthCheck, Phase, note, settings, stateful
from hypothesis import strategies as st

from events import clock
from events.models import Event
from events.publish import NewEvent, publish
from jobs import claim, drain, lease, operate, prune, registry, rescue, run, settle, sweep, tick
from jobs.claim import Limits
from jobs.claimed import ClaimedJob
from jobs.enqueue import InvalidJob, enqueue
from jobs.fsck.check import check, everything
from jobs.fsck.kind import Scope
from jobs.models import Attempt, Job, Queue
from jobs.states import FINISHED, LIVE, REPLAYABLE, State
from tests.kit import at_once, claimed, empty_broker
from tests.properties import model
from tests.sandbox import handlers
from tests.sandbox.event_types import Happened

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.broker, pytest.mark.slow]

EXAMPLES = int(os.environ.get("MACHINE_EXAMPLES") or 15)
ASKED = ("test.ordered", "test.work", "test.batch", "test.fair")
HEARING = ("test.log", "test.keyed", "test.family", "test.debounced")
GONE = "test.gone"
some = st.integers(0, 30)
times = st.sampled_from([0, 0, 5, 31, 61, 130, -5, -90])
verdicts = st.just(["retry"]) | st.lists(st.sampled_from(model.VERDICTS), min_size=1, max_size=3)
ways: dict[str, st.SearchStrategy[dict[str, Any]]] = {}
often: list[str] = []


def deed(weight: int, **drawn: st.SearchStrategy[Any]) -> Callable[[Any], Any]:
    """Declare what may happen, so often among all deeds, with what is drawn for it."""

    def declare(call: Any) -> Any:
        ways[call.__name__] = st.fixed_dictionaries(drawn)
        often.extend([call.__name__] * weight)
        return call

    return declare


deeds = st.deferred(lambda: st.sampled_from(often)).flatmap(
    lambda name: st.tuples(st.just(name), ways[name])
)


class Machine(stateful.RuleBasedStateMachine):
    """Draws never hang on what the database says, so that a race may end as it likes: a number
    stands for one of those that there are."""

    def __init__(self) -> None:
        super().__init__()
        model.execute(model.EMPTY)
        claim._last_lanes.clear()
        self.model = model.Model()
        self.began, self.elapsed = time.time(), 0.0
        self.held: list[list[ClaimedJob]] = []
        self.settled: list[run.Verdict] = []
        self.answers = model.Answers(self.model.returned)
        self.broken = False
        for name in (*ASKED, *HEARING):
            handlers.script[name] = self.answers.handle

    @stateful.rule(deed=deeds)
    def happens(self, deed: tuple[str, dict[str, Any]]) -> None:
        name, how = deed
        getattr(self, name)(**how)

    @contextmanager
    def step(self, verb: str, seconds: float = 0) -> Iterator[None]:
        """One step by the clock, which goes on by 1.3 s for each however long it takes; then the
        judgement on all that was written in it."""
        try:
            self.elapsed += 1.3 + seconds
            clock.offset = self.began + self.elapsed - time.time()
            yield
            self.model.listen(verb)
            assert not (found := model.wrongs()), found
        except BaseException:
            self.broken = True
            raise

    def job(self, number: int) -> int:
        """One of the jobs."""
        ids = sorted(self.model.jobs)
        return ids[number % len(ids)] if ids else 0

    def queue(self, number: int) -> str:
        """One of the queues with work that is due, if there are any."""
        names = sorted(self.model.due() - {GONE}) or ASKED
        return names[number % len(names)]

    def batch(self, number: int) -> list[ClaimedJob]:
        """The hands of one of the workers; one with empty hands claims first."""
        if not any(self.held):
            self.claim(number, 4, False)
        self.held = [batch for batch in self.held if batch] or [[]]
        return self.held[number % len(self.held)]

    def took(self, jobs: Sequence[ClaimedJob]) -> None:
        note(f"claims {[(job.handler.name, job.id, job.claim_no) for job in jobs]}")
        self.model.take(jobs)
        self.held.append(list(jobs))

    @deed(
        10,
        handler=st.sampled_from([*ASKED, *ASKED[:2], *ASKED[:2], GONE]),
        lanes=st.lists(st.sampled_from("aab"), min_size=1, max_size=4),
        unique_key=st.sampled_from([None, "k"]),
        delay=st.sampled_from([0, 0, 0, 0, 30]),
        priority=st.sampled_from([None, 0, 3]),
        after=st.none() | some,
    )
    def enqueue(self, handler: str, lanes: list[str], after: int | None, **options: Any) -> None:
        """A job for each lane, all with the same key, and behind the same job or none."""
        with self.step("enqueue"):
            if handler == GONE:  # of a handler that nobody declares any more
                Job.objects.create(handler=GONE, due_at=clock.now())
                return
            parent = None if after is None else self.model.jobs.get(self.job(after))
            for lane in lanes:
                taken = self.model.unstarted(handler, options["unique_key"])
                try:
                    id = enqueue(handler, lane=lane, after=parent and parent.id, **options)
                except InvalidJob:
                    assert parent.state in (State.CANCELLED, State.FAILED), parent
                    return
                self.model.listen("enqueue")
                assert (id in self.model.jobs) != bool(taken), f"made {id}, the key is of {taken}"

    @deed(5, number=some)
    def ask_again(self, number: int) -> None:
        """For the same as a job that runs."""
        jobs = [job for job in self.model.jobs.values() if job.state == State.RUNNING]
        if keyed := [job for job in jobs if job.handler in ASKED and job.unique_key]:
            job = keyed[number % len(keyed)]
            self.enqueue(job.handler, [job.lane], None, unique_key=job.unique_key)

    @stateful.initialize(asked=st.lists(ways["enqueue"], min_size=3, max_size=6))
    def begin(self, asked: list[dict[str, Any]]) -> None:
        """With some work, and one queue that is limited."""
        for one in asked:
            self.enqueue(**one)
        self.limit(len(asked), 2)

    @deed(
        7, source_id=st.sampled_from("xyz"), who=st.sampled_from(["", "w", "nobody"]),
        tags=st.sets(st.sampled_from("pq")), dies=st.sampled_from([0, 0, 0, 1, 2, 3]),
    )  # fmt: skip
    def publish(self, source_id: str, who: str, tags: set[str], dies: int) -> None:
        """An event and all that is owed because of it, or nothing."""
        with self.step("publish"):
            known = Event.objects.filter(source="machine", source_id=source_id).exists()
            debounced = bool(who) and not self.model.unstarted("test.debounced", who)
            payload = {"who": who, "tags": sorted(tags)}
            before = set(self.model.jobs)
            with model.dying(dies), transaction.atomic():
                publish(NewEvent(Happened, payload, source="machine", source_id=source_id))
                if dies == 3:
                    raise model.Died
            recorded = Event.objects.filter(source="machine", source_id=source_id).exists()
            assert recorded or (dies and not known)
            self.model.listen("publish")
            owed = Counter({"test.log": 1, "test.family": 1, "test.debounced": int(debounced)})
            owed["test.keyed"] = 0 if who == "nobody" else len(tags)
            found = Counter(self.model.jobs[id].handler for id in {*self.model.jobs} - before)
            assert found == (owed if recorded and not known else Counter())

    @deed(16, number=some, most=st.integers(1, 4), begun=st.booleans())
    def claim(self, number: int, most: int, begun: bool) -> None:
        """By a drain that begins now, or one that had begun before the queue was paused."""
        with self.step("claim"):
            name = self.queue(number)
            limits = Limits(self.model.limits.get(name))
            jobs = claim.claim(registry.get(name), limits, most) if begun else claimed(name, most)
            self.took(jobs)
            assert len(self.model.listen("claim")) == len(jobs) <= most, "given to nobody"
            assert self.model.live(jobs) == list(jobs)

    @deed(16, number=some, verdicts=verdicts, most=st.integers(1, 4))
    def settle(self, number: int, verdicts: list[str], most: int) -> None:
        """A worker settles some of what it holds; what it has lost, it leaves as it is."""
        batch = self.batch(number)
        jobs, batch[:] = batch[:most], batch[most:]
        with self.step("settle"):
            ended = self.answers.run(jobs, verdicts)
            self.settled += ended
            wanted: dict[int, tuple[State, int]] = {}
            for job in self.model.live(jobs):
                row, verdict = self.model.jobs[job.id], self.answers.verdict(job)
                taken = bool(self.model.unstarted(row.handler, row.unique_key))
                tried = row.attempt - (verdict in ("snooze", "hand back"))
                wanted[job.id] = (model.expected(row, verdict, taken), tried)
            note(f"settles {[(job.id, self.answers.verdict(job)) for job in jobs]}: {wanted}")
            assert settle.settle(ended) == {id: state for id, (state, _tried) in wanted.items()}
            ends = [was for was, _became in self.model.listen("settle") if was == State.RUNNING]
            now = {id: self.model.jobs[id] for id in wanted}
            assert {id: (job.state, job.attempt) for id, job in now.items()} == wanted
            assert len(ends) == len(wanted)

    @deed(3, number=some)
    def settle_again(self, number: int) -> None:
        """The answer to a settlement was lost: the same once more changes nothing."""
        with self.step("look"):
            again = self.settled[number % len(self.settled) :][:1] if self.settled else []
            assert settle.settle(again) == {}

    @deed(3, number=some)
    def crash(self, number: int) -> None:
        """A worker is gone, and with it what it held."""
        self.batch(number).clear()

    @deed(3, number=some)
    def renew(self, number: int) -> None:
        with self.step("look"):
            batch = self.batch(number)
            mine = len(self.model.live(batch))
            assert not batch or lease.renew(batch) == mine
            assert [lease.look(job)[0] for job in batch].count(True) == mine

    @deed(8, number=some, verdicts=verdicts, dies=st.integers(-12, 12))
    def drain(self, number: int, verdicts: list[str], dies: int) -> None:
        """A worker's whole turn, or until it dies or loses its connection."""
        with self.step("drain"):
            self.answers.verdicts = verdicts
            with model.dying(dies):
                drain.drain(self.queue(number))

    @deed(6, number=some, chosen=some, verdicts=verdicts, seconds=st.sampled_from([0, 0, 61]))
    def race(self, number: int, chosen: int, verdicts: list[str], seconds: float) -> None:
        """Two workers claim while one settles, an operator cancels and the tick rescues."""
        batch = self.batch(number)
        self.limit(number, (None, 1, 2)[chosen % 3])
        jobs, batch[:] = batch[:], []
        with self.step("race", seconds):
            ended = self.answers.run(jobs, verdicts)
            self.settled += ended
            name, id = self.queue(number), self.job(chosen)
            deeds = [
                tick.tick,
                lambda: operate.cancel([id]),
                lambda: settle.settle(ended),
                *[lambda: claimed(name, 2)] * 2,
            ]
            ready = threading.Barrier(len(deeds))

            def go(place: int) -> Any:
                connection.ensure_connection()
                ready.wait(20)
                return deeds[place]()

            _, _, settled, *taken = at_once(len(deeds), go)
            assert set(settled) <= {job.id for job in jobs}
            for jobs in taken:
                self.took(jobs)

    @deed(5, seconds=times)
    def look(self, seconds: float) -> None:
        """Nothing happens but time."""
        with self.step("look", seconds):
            pass

    @deed(6, seconds=st.sampled_from([0, 31, 61, 61]))
    def rescue(self, seconds: float) -> None:
        with self.step("rescue", seconds):
            least = self.model.expired()
            assert least <= rescue.rescue() <= self.model.expired()

    @deed(2, seconds=times)
    def tick(self, seconds: float) -> None:
        """After it, every queue with work has been told so."""
        with self.step("tick", seconds):
            due = Job.objects.pending().filter(due_at__lte=clock.now()).values("handler")
            tick.tick()
            assert not Queue.objects.filter(pk__in=due, paused_at=None, awake=False).exists()

    @deed(2)
    def sweep(self) -> None:
        with self.step("sweep"):
            ours = [one.name for one in sweep.everything() if one.name.startswith("jobs.")]
            assert {one.outcome for one in sweep.sweep(ours)} == {"checked"}

    @deed(2, days=st.sampled_from([2, 31, 91]))
    def prune(self, days: int) -> None:
        with self.step("prune", days * 86_400):
            prune.prune()

    @deed(5, numbers=st.lists(some, min_size=1, max_size=3))
    def cancel(self, numbers: list[int]) -> None:
        with self.step("cancel"):
            ids = sorted({self.job(number) for number in numbers})
            live = [id for id in ids if id and self.model.jobs[id].state in LIVE]
            done = operate.cancel(ids)
            note(f"cancels {done.ids}, asks {done.asked}")
            assert sorted(done.ids + done.asked) == live

    @deed(6, numbers=st.lists(some, min_size=1, max_size=4))
    def replay(self, numbers: list[int]) -> None:
        with self.step("replay"):
            jobs = self.model.jobs.values()
            ended = sorted(job.id for job in jobs if job.state in REPLAYABLE) or [0]
            ids = [self.job(numbers[0]), *(ended[number % len(ended)] for number in numbers)]
            done = operate.replay(ids)
            note(f"of {ids}, replays {done.ids}")
            assert len(self.model.listen("replay")) == len(done.ids)

    @deed(3, number=some)
    def pause(self, number: int) -> None:
        with self.step("look"):
            name = self.queue(number)
            assert operate.pause(name, "me") == (name not in self.model.paused)
            self.model.paused.add(name)

    @deed(3)
    def resume(self) -> None:
        with self.step("look"):
            for name in sorted(self.model.paused):
                assert operate.resume(name, "me")
            self.model.paused.clear()

    @deed(3, number=some, most=st.sampled_from([1, 2, 3, None]))
    def limit(self, number: int, most: int | None) -> None:
        with self.step("look"):
            name = self.queue(number)
            Queue.objects.filter(pk=name).update(max_running=most)
            self.model.limits[name] = most

    def teardown(self) -> None:
        if not self.broken:
            self.converge()

    def converge(self) -> None:
        """All is resumed and time goes on: workers serve the queues that are awake, and each job
        ends. Then nothing is found wrong, and what is past retention goes."""
        self.resume()
        for _round in range(30):
            self.sweep()
            self.tick(700)
            with self.step("drain"):
                self.answers.verdicts = ("complete",)
                for name in Queue.objects.filter(awake=True).values_list("name", flat=True):
                    drain.drain(name)
            if not any(job.state in LIVE for job in self.model.jobs.values()):
                break
        left = Job.objects.exclude(state__in=FINISHED)
        assert not left.exists(), f"never ended: {list(left.values())}"
        there = {*Job.objects.values_list("id", flat=True)}
        assert there == {*self.model.jobs} == self.model.made - self.model.pruned, "lost"
        with self.step("look", 700):
            found = check(everything(), Scope(), pause=lambda: None)
            assert not (wrong := [report for report in found if not report.clean]), wrong
        self.prune(100)
        assert not any(table.objects.exists() for table in (Job, Attempt, Event))


@pytest.fixture
def heard() -> Iterator[None]:
    """A trigger tells of every write, and is gone after the test; logs would fill the memory."""
    model.execute(model.LISTEN)
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)
    clock.offset = 0.0
    model.execute(model.DEAFEN)
    empty_broker()


def test_what_must_hold_holds_whatever_happens_in_whatever_order(heard: None) -> None:
    model.seen.clear()
    stateful.run_state_machine_as_test(
        Machine,
        settings=settings(
            max_examples=EXAMPLES,
            stateful_step_count=50,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            phases=[Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink],
        ),
    )
    assert model.seen == {*State}
