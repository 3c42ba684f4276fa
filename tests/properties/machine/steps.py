"""A step of the machine: the clock moves, something happens, and every write is checked."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from hypothesis import stateful
from hypothesis import strategies as st

from tailrace.db import clock
from tailrace.jobs.engine.claiming import claim
from tailrace.jobs.engine.run.verdict import Verdict
from tailrace.jobs.handler import ClaimedJob
from tests.properties.machine.model import Model
from tests.properties.machine.recording import EMPTY, execute
from tests.properties.machine.rules import broken_rules
from tests.properties.machine.scripted_handler import ScriptedHandler
from tests.sandbox import handlers

ENQUEUED = ("test.ordered", "test.work", "test.batch", "test.fair")
SUBSCRIBED = ("test.log", "test.keyed", "test.family", "test.debounced")
UNKNOWN = "test.gone"
some = st.integers(0, 30)
times = st.sampled_from([0, 0, 5, 31, 61, 130, -5, -90])
arguments: dict[str, st.SearchStrategy[dict[str, Any]]] = {}
weighted: list[str] = []


def action(weight: int, **drawn: st.SearchStrategy[Any]) -> Callable[[Any], Any]:
    """Declare what may happen, so weighted among all actions, with what is drawn for it."""

    def declare(call: Any) -> Any:
        arguments[call.__name__] = st.fixed_dictionaries(drawn)
        weighted.extend([call.__name__] * weight)
        return call

    return declare


actions = st.deferred(lambda: st.sampled_from(weighted)).flatmap(
    lambda name: st.tuples(st.just(name), arguments[name])
)


class Steps(stateful.RuleBasedStateMachine):
    """The machine's state, and what all of its actions use. Draws never depend on the database, so
    that a race may end either way: a number means one of the rows that there are."""

    def __init__(self) -> None:
        super().__init__()
        execute(EMPTY)
        claim._last_lanes.clear()
        self.model = Model()
        self.began, self.elapsed = time.time(), 0.0
        self.held: list[list[ClaimedJob]] = []
        self.settled: list[Verdict] = []
        self.handler = ScriptedHandler(self.model.returned)
        self.broken = False
        for name in (*ENQUEUED, *SUBSCRIBED):
            handlers.script[name] = self.handler.handle

    @stateful.rule(action=actions)
    def act(self, action: tuple[str, dict[str, Any]]) -> None:
        name, how = action
        getattr(self, name)(**how)

    @contextmanager
    def step(self, verb: str, seconds: float = 0) -> Iterator[None]:
        """Advance the clock by 1.3 s, however long the step takes; then check all its writes."""
        try:
            self.elapsed += 1.3 + seconds
            clock.offset = self.began + self.elapsed - time.time()
            yield
            self.model.read_writes(verb)
            assert not (broken := broken_rules()), broken
        except BaseException:
            self.broken = True
            raise

    def job(self, number: int) -> int:
        """One of the jobs."""
        ids = sorted(self.model.jobs)
        return ids[number % len(ids)] if ids else 0

    def queue(self, number: int) -> str:
        """One of the queues with work that is due, if there are any."""
        names = sorted(self.model.due() - {UNKNOWN}) or ENQUEUED
        return names[number % len(names)]
