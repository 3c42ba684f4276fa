"""Publishers in the machine: they enqueue jobs and publish events, and some die on the way."""

from collections import Counter
from datetime import UTC, datetime
from typing import Any

from django.db import transaction
from hypothesis import strategies as st

from tailrace.db import clock
from tailrace.events.models import Event
from tailrace.events.publish import NewEvent, publish
from tailrace.jobs.enqueue import InvalidJob, enqueue
from tailrace.jobs.flows import FlowJob, NewFlow
from tailrace.jobs.models import Job, Queue
from tailrace.jobs.runtime.states import State
from tests.properties.machine.dying import Died, dying
from tests.properties.machine.steps import ENQUEUED, UNKNOWN, Steps, action, some
from tests.sandbox.event_types import Happened

needs = st.sampled_from(["after", "after", "after_failure", "after_end"])
LONG_AGO = datetime(2026, 1, 1, tzinfo=UTC)


class Publishers(Steps):
    """Enqueue and publish."""

    @action(
        10,
        handler=st.sampled_from([*ENQUEUED, *ENQUEUED[:2], *ENQUEUED[:2], UNKNOWN]),
        lanes=st.lists(st.sampled_from("aab"), min_size=1, max_size=4),
        unique_key=st.sampled_from([None, "k"]),
        delay=st.sampled_from([0, 0, 0, 0, 30]),
        priority=st.sampled_from([None, 0, 3]),
        after=st.none() | some,
    )
    def enqueue(self, handler: str, lanes: list[str], after: int | None, **options: Any) -> None:
        """A job for each lane, all with the same key, and behind the same job or none."""
        with self.step("enqueue"):
            if handler == UNKNOWN:  # of a handler that was removed
                Queue.objects.get_or_create(name=UNKNOWN, defaults={"retired_at": LONG_AGO})
                Job.objects.create(handler=UNKNOWN, due_at=clock.now())
                return
            parent = None if after is None else self.model.jobs.get(self.job(after))
            for lane in lanes:
                taken = self.model.unstarted(handler, options["unique_key"])
                try:
                    id = enqueue(handler, lane=lane, after=parent and parent.id, **options)
                except InvalidJob:
                    assert parent.state in (State.CANCELLED, State.FAILED), parent
                    return
                self.model.read_writes("enqueue")
                assert not taken or [id] == taken, f"made {id}, the key is of {taken}"

    @action(5, number=some)
    def enqueue_again(self, number: int) -> None:
        """Enqueue a job with the unique key of a running one."""
        jobs = [job for job in self.model.jobs.values() if job.state == State.RUNNING]
        if keyed := [job for job in jobs if job.handler in ENQUEUED and job.unique_key]:
            job = keyed[number % len(keyed)]
            self.enqueue(job.handler, [job.lane], None, unique_key=job.unique_key)

    @action(
        6, handlers=st.lists(st.sampled_from(ENQUEUED), min_size=2, max_size=3), need=needs,
        other=st.none() | some, dies=st.sampled_from([0, 0, 0, 0, 3, 5]),
    )  # fmt: skip
    def enqueue_flow(self, handlers: list[str], need: str, other: int | None, dies: int) -> None:
        """A flow of some jobs, a callback that needs a certain end of them, and of another job,
        perhaps, and a job that runs after the callback. All of it is enqueued, or nothing."""
        with self.step("enqueue"):
            flow, before = NewFlow("machine"), len(self.model.jobs)
            parents: list[FlowJob | int] = [flow.add(name, lane="a") for name in handlers]
            parents += [self.job(other)] if other is not None and self.model.jobs else []
            callback = flow.add("test.work", **{need: parents})
            flow.add("test.fair", lane="b", after=callback)
            try:
                with dying(dies):
                    flow.enqueue()
            except InvalidJob:  # the callback would never run
                assert other is not None
                return
            self.model.read_writes("enqueue")
            assert len(self.model.jobs) - before in (
                (0, len(flow.jobs)) if dies else (len(flow.jobs),)
            )

    @action(
        7, source_id=st.sampled_from("xyz"), who=st.sampled_from(["", "w", "nobody"]),
        tags=st.sets(st.sampled_from("pq")), dies=st.sampled_from([0, 0, 0, 1, 2, 3]),
    )  # fmt: skip
    def publish(self, source_id: str, who: str, tags: set[str], dies: int) -> None:
        """Publish an event with all its jobs, or nothing."""
        with self.step("publish"):
            known = Event.objects.filter(source="machine", source_id=source_id).exists()
            payload = {"who": who, "tags": sorted(tags)}
            before = set(self.model.jobs)
            with dying(dies), transaction.atomic():
                publish(NewEvent(Happened, payload, source="machine", source_id=source_id))
                if dies == 3:
                    raise Died
            recorded = Event.objects.filter(source="machine", source_id=source_id).exists()
            assert recorded or (dies and not known)
            self.model.read_writes("publish")
            expected = Counter({"test.log": 1, "test.family": 1, "test.debounced": bool(who)})
            expected["test.keyed"] = 0 if who == "nobody" else len(tags)
            created = Counter(self.model.jobs[id].handler for id in {*self.model.jobs} - before)
            assert created == (expected if recorded and not known else Counter())
