"""The critical path of a flow: the jobs that took its time."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from tailrace.jobs.platform.inspection.flows.graph import FlowGraph, GraphJob

MAX_STEPS = 50


@dataclass(frozen=True, slots=True)
class PathStep:
    """A job of the path."""

    job: GraphJob
    ready_at: datetime
    """When it was created, or its last parent had ended."""
    ended_at: datetime

    @property
    def begun_at(self) -> datetime:
        """When its last attempt began; when it ended, if it never began."""
        started = self.job.started_at
        return self.ended_at if started is None else max(started, self.ready_at)

    @property
    def waited(self) -> float:
        """Seconds until its last attempt began."""
        return (self.begun_at - self.ready_at).total_seconds()

    @property
    def ran(self) -> float | None:
        """Seconds of its last attempt; None if it never began."""
        if self.job.started_at is None:
            return None
        return max((self.ended_at - self.begun_at).total_seconds(), 0.0)


def critical_path(graph: FlowGraph) -> tuple[list[PathStep], bool]:
    """Walk back from the job that ended last, each time to the parent that ended last. Return the
    steps in the order of time, at most the last MAX_STEPS, and whether there are earlier ones."""
    parents = graph.parents()
    ended = (job for job in graph.jobs.values() if not job.is_outside)
    last, steps = _last(ended), list[PathStep]()
    while last is not None and len(steps) <= MAX_STEPS:
        parent = _last(graph.jobs[edge.parent] for edge in parents.get(last[1].id, ()))
        steps.append(_step(*last, parent))
        last = parent
    return steps[:MAX_STEPS][::-1], len(steps) > MAX_STEPS


Ended = tuple[datetime, GraphJob]
"""When a job ended, and the job."""


def _last(jobs: Iterable[GraphJob]) -> Ended | None:
    ended = ((job.finished_at, job) for job in jobs if job.finished_at is not None)
    return max(ended, key=lambda each: (each[0], each[1].id), default=None)


def _step(ended_at: datetime, job: GraphJob, parent: Ended | None) -> PathStep:
    ready_at = job.created_at if parent is None else max(job.created_at, parent[0])
    return PathStep(job, min(ready_at, ended_at), ended_at)
