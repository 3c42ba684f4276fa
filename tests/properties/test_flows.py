"""Random graphs with random ends, crashes and operators: each job runs exactly if its parents ended
as it needs, and in the end nothing waits.

A model that knows nothing of the engine computes how each job must end. A trigger records each
change of a job, so that what a job becomes is compared with its parents at that moment.
FLOW_EXAMPLES=500 searches for longer.
"""

import logging
import os
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, note, settings
from hypothesis import strategies as st

from tailrace.db import clock
from tailrace.jobs.engine.drain import drain
from tailrace.jobs.engine.maintenance.sweeping import sweep
from tailrace.jobs.engine.maintenance.ticking import rescue
from tailrace.jobs.flows import FlowJob, NewFlow
from tailrace.jobs.flows.operations import pause_flow, resume_flow, retry_flow
from tailrace.jobs.handler import Cancel, ClaimedJob, Permanent, Retry, Skip
from tailrace.jobs.models import Flow, Job
from tailrace.jobs.operations.cancel import cancel
from tailrace.jobs.platform.invariants import flows as of_flows
from tailrace.jobs.platform.invariants import waiting as of_waiting
from tailrace.jobs.runtime.states import DONE, FINISHED, LIVE, State
from tests.kit import claimed, empty_broker
from tests.properties.machine.dying import dying
from tests.properties.machine.recording import ADD_TRIGGER, DROP_TRIGGER, execute, writes_after
from tests.sandbox import handlers
from tests.sandbox.handlers import Working

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]

EXAMPLES = int(os.environ.get("FLOW_EXAMPLES") or 8)
MORE_EXAMPLES = max(EXAMPLES, 30)
EMPTY = """
DELETE FROM tailrace_jobs_attempt; DELETE FROM tailrace_jobs_job;
DELETE FROM tailrace_jobs_dependency; DELETE FROM tailrace_jobs_flow; DELETE FROM machine_write
"""
RULES = [
    of_flows.PausedFlowIsHeld(), of_flows.WaitsForParent(), of_flows.NameIsUnique(),
    of_flows.FlowExists(), of_waiting.ParentIsUnfinished(), of_waiting.ParentExists(),
    of_waiting.ParentIsSet(), of_waiting.WaitsInCircle(),
]  # fmt: skip
SWEPT = [rule.name for rule in RULES if rule.every is not None]

ENDS = {
    "complete": State.COMPLETED,
    "skip": State.SKIPPED,
    "permanent": State.FAILED,
    "cancel": State.CANCELLED,
    "retry": State.COMPLETED,
    "retry, fail": State.FAILED,
}
"""How a job ends that runs, by what its handler does."""
RAISED = {"skip": Skip, "permanent": Permanent, "cancel": Cancel}
NEEDS = ("success", "failure", "end")


@dataclass(frozen=True)
class Node:
    """A job: what its handler does, now and when the flow is retried, and what it needs."""

    ends: tuple[str, str]
    parents: tuple[tuple[int, str], ...]


@st.composite
def graphs(draw: Any) -> list[Node]:
    nodes: list[Node] = []
    outcomes = st.sampled_from([*ENDS, "complete", "complete"])
    for number in range(draw(st.integers(2, 7))):
        parents = st.dictionaries(
            st.integers(0, number - 1), st.sampled_from([*NEEDS, "success"]), max_size=4
        )
        chosen = draw(parents) if number else {}
        nodes.append(Node((draw(outcomes), draw(outcomes)), tuple(sorted(chosen.items()))))
    return nodes


steps = st.lists(
    st.tuples(st.just("drain"), st.integers(-12, 12))
    | st.tuples(st.sampled_from(["claim", "cancel", "cancel"]), st.integers(0, 6))
    | st.tuples(st.sampled_from(["pause", "resume", "sweep", "rescue"]), st.just(0)),
    max_size=6,
)


def decision(node: Node, ends: dict[int, State]) -> State | None:
    """Return how a job ends because of its parents; None if it runs."""
    if any(need == "success" and ends[parent] not in DONE for parent, need in node.parents):
        return State.CANCELLED
    wanted = [ends[parent] for parent, need in node.parents if need == "failure"]
    return State.SKIPPED if wanted and not {*wanted} - {*DONE} else None


def is_right(was: State, became: State, node: Node, ends: dict[int, State]) -> bool:
    """Whether a waiting job may become so while its parents are in these states."""
    if any(ends[parent] in LIVE for parent, _need in node.parents):
        return False
    decided = decision(node, ends)
    return became == (State.PENDING if decided is None else decided)


@dataclass
class Run:
    """A flow under test, with what happened to it."""

    nodes: list[Node]
    flow: NewFlow = field(default_factory=lambda: NewFlow("property"))
    life: int = 0
    """0 before the flow is retried, then 1."""
    cancelled: set[int] = field(default_factory=set)
    """The jobs that an operator cancelled or asked to stop, in this life."""
    states: dict[int, State] = field(default_factory=dict)
    completed: Counter[int] = field(default_factory=Counter)
    tries: Counter[tuple[int, int]] = field(default_factory=Counter)
    paused: bool = False
    last_write: int = 0

    def begin(self) -> None:
        jobs: list[FlowJob] = []
        for number, node in enumerate(self.nodes):
            parents = {
                need: [jobs[parent] for parent, each in node.parents if each == need]
                for need in NEEDS
            }
            jobs.append(
                self.flow.add(
                    Working, {"note": str(number)}, name=str(number), after=parents["success"],
                    after_failure=parents["failure"], after_end=parents["end"],
                )
            )  # fmt: skip
        self.flow.enqueue()
        self.ids = {job.id or 0: number for number, job in enumerate(jobs)}
        self.read_writes()

    @property
    def row(self) -> Flow:
        return Flow.objects.get(pk=self.flow.id)

    def handle(self, job: ClaimedJob) -> None:
        """What the handler does."""
        number = int(job.payload.note)
        for parent, _need in self.nodes[number].parents:
            assert self.now(parent) in FINISHED, f"{number} runs before {parent} has ended"
        self.tries[self.life, number] += 1
        do = self.nodes[number].ends[self.life]
        if do.startswith("retry") and self.tries[self.life, number] == 1:
            raise Retry("again", after=30)
        if raised := RAISED.get("permanent" if do == "retry, fail" else do):
            raise raised("as drawn")

    def now(self, number: int) -> str:
        return Job.objects.get(flow_id=self.flow.id, flow_name=str(number)).state

    def do(self, name: str, value: int) -> None:
        """One step; then each write that it made is compared with the states before it."""
        clock.offset += 12
        match name:
            case "drain":
                with dying(value):
                    drain("test.work")
            case "claim":  # by a worker that is lost
                claimed("test.work", value + 1)
            case "cancel":
                self.cancel(value % len(self.nodes))
            case "pause":
                pause_flow(self.row, "me")
                self.paused = True
            case "resume":
                self.resume()
            case "sweep":
                assert {run.outcome for run in sweep.sweep(SWEPT)} == {"checked"}
            case "rescue":
                clock.offset += 90
                rescue.rescue()
        self.read_writes()

    def resume(self) -> None:
        resume_flow(self.row, "me")
        self.paused = False

    def cancel(self, number: int) -> None:
        (id,) = [id for id, each in self.ids.items() if each == number]
        result = cancel([id])
        self.cancelled |= {self.ids[each] for each in (*result.changed, *result.stop_requested)}

    def read_writes(self) -> None:
        writes, self.last_write = writes_after(self.last_write)
        for was, became in writes:
            assert became is not None, "a job is lost"
            number = self.ids[became.id]
            node = self.nodes[number]
            if was is not None and was.state == State.WAITING and became.state != was.state:
                by_operator = became.state == State.CANCELLED and number in self.cancelled
                right = is_right(was.state, became.state, node, self.states)
                right = right and not self.paused
                assert right or by_operator, f"{number} becomes {became.state}: {self.states}"
            if became.state == State.RUNNING:
                assert decision(node, self.states) is None, f"{number} runs: {self.states}"
            if was is not None and was.state != became.state:
                self.completed[number] += became.state == State.COMPLETED
            self.states[number] = became.state
        assert max(self.completed.values(), default=0) <= 1, "a job completed twice"

    def converge(self) -> None:
        """Let upkeep and workers do their work until all has ended."""
        self.resume()
        for _ in range(40):
            if not {*self.states.values()} & {*LIVE}:
                break
            self.do("rescue", 0)
            self.do("sweep", 0)
            clock.offset += 400
            self.do("drain", 0)
        left = {number: state for number, state in self.states.items() if state in LIVE}
        assert not left, f"never ended: {left}"
        broken = {rule.name: found for rule in RULES if (found := rule.find())}
        assert not broken

    def check(self, before: dict[int, State]) -> None:
        """Compare all ends with those of the model. `before`: of an earlier life."""
        expected: dict[int, State] = {}
        for number, node in enumerate(self.nodes):
            if before.get(number) in DONE:
                expected[number] = before[number]
                continue
            decided = decision(node, expected)
            expected[number] = decided or ENDS[node.ends[self.life]]
            if number in self.cancelled and self.states[number] == State.CANCELLED:
                expected[number] = State.CANCELLED
            ran = self.tries[self.life, number] > 0
            assert not ran or decided is None, f"{number} has run"
            assert ran or decided or number in self.cancelled, f"{number} has not run"
        assert self.states == expected
        stored = Job.objects.filter(flow_id=self.flow.id).values_list("flow_name", "state")
        assert {int(name): state for name, state in stored} == expected

    def retry(self) -> dict[int, State]:
        """Retry the flow: what failed or was cancelled runs again, with other ends."""
        before = dict(self.states)
        self.life, self.cancelled = 1, set()
        for number, state in before.items():
            self.completed[number] = state == State.COMPLETED
        retry_flow(self.row, "me")
        for number, state in before.items():
            if state not in DONE:
                self.states[number] = State.WAITING
        # Replayed jobs are waiting or pending; the model reads their moves from here on.
        _writes, self.last_write = writes_after(self.last_write)
        for name, state in Job.objects.filter(flow_id=self.flow.id).values_list(
            "flow_name", "state"
        ):
            self.states[int(name)] = State(state)
        return before


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(Working, "max_attempts", 100)
    execute(ADD_TRIGGER)
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)
    clock.offset = 0.0
    execute(DROP_TRIGGER)
    empty_broker()


@pytest.mark.parametrize(
    "examples", [EXAMPLES, pytest.param(MORE_EXAMPLES, marks=pytest.mark.long)]
)
def test_each_job_runs_exactly_if_its_parents_ended_as_it_needs(
    recorded: None, examples: int
) -> None:
    @settings(
        max_examples=examples,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink],
    )
    @given(nodes=graphs(), steps=steps, again=st.booleans())
    def follows(nodes: list[Node], steps: list[tuple[str, int]], again: bool) -> None:
        execute(EMPTY)
        began = time.monotonic()
        run = Run(nodes)
        handlers.script["test.work"] = run.handle
        run.begin()
        for name, value in steps:
            run.do(name, value)
        run.converge()
        run.check({})
        if again:
            before = run.retry()
            run.converge()
            run.check(before)
        note(f"{time.monotonic() - began:.1f} s")

    follows()
