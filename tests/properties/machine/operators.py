"""Operators in the machine: they cancel, replay, pause, resume and limit."""

from hypothesis import note
from hypothesis import strategies as st

from tailrace.jobs.models import Queue
from tailrace.jobs.operations.cancel import cancel
from tailrace.jobs.operations.pause import pause, resume
from tailrace.jobs.operations.replay import replay
from tailrace.jobs.runtime.states import LIVE, REPLAYABLE
from tests.properties.machine.steps import Steps, action, some


class Operators(Steps):
    """Cancel and replay jobs; pause and limit queues."""

    @action(5, numbers=st.lists(some, min_size=1, max_size=3))
    def cancel(self, numbers: list[int]) -> None:
        with self.step("cancel"):
            ids = sorted({self.job(number) for number in numbers})
            live = [id for id in ids if id and self.model.jobs[id].state in LIVE]
            done = cancel(ids)
            note(f"cancels {done.changed}, asks {done.stop_requested}")
            assert sorted(done.changed + done.stop_requested) == live

    @action(6, numbers=st.lists(some, min_size=1, max_size=4))
    def replay(self, numbers: list[int]) -> None:
        with self.step("replay"):
            jobs = self.model.jobs.values()
            ended = sorted(job.id for job in jobs if job.state in REPLAYABLE) or [0]
            ids = [self.job(numbers[0]), *(ended[number % len(ended)] for number in numbers)]
            done = replay(ids)
            note(f"of {ids}, replays {done.changed}")
            moves = self.model.read_writes("replay")
            assert sum(was in REPLAYABLE for was, _became in moves) == len(done.changed)

    @action(3, number=some)
    def pause(self, number: int) -> None:
        with self.step("look"):
            name = self.queue(number)
            assert pause(name, "me") == (name not in self.model.paused)
            self.model.paused.add(name)

    @action(3)
    def resume(self) -> None:
        with self.step("look"):
            for name in sorted(self.model.paused):
                assert resume(name, "me")
            self.model.paused.clear()

    @action(3, number=some, most=st.sampled_from([1, 2, 3, None]))
    def limit(self, number: int, most: int | None) -> None:
        with self.step("look"):
            name = self.queue(number)
            Queue.objects.filter(pk=name).update(max_running=most)
            self.model.limits[name] = most
