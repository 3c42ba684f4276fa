"""Read the jobs of a flow and which of them wait for which, at a bounded cost."""

from collections import Counter, defaultdict
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from tailrace.db.query import query
from tailrace.db.sql.arrays import number_array
from tailrace.jobs.models import Need

MAX_JOBS = 20_000
MAX_EDGES = 60_000
MAX_OUTSIDE = 50
"""Parents of other flows, or of none, that are read."""


@dataclass(slots=True)
class GraphJob:
    """A job of a flow, or a parent outside of it."""

    id: int
    name: str
    """In its flow; the name of its handler if it is outside of this flow."""
    handler: str
    state: str
    due_at: datetime
    attempt: int
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    after_id: int | None
    is_outside: bool


class Edge(NamedTuple):
    """A job waits for a parent."""

    parent: int
    job: int
    need: str


@dataclass(frozen=True, slots=True)
class FlowGraph:
    """The jobs of a flow by id, parents before most of their children, and its edges."""

    jobs: dict[int, GraphJob]
    edges: list[Edge]
    is_whole: bool
    """Whether all jobs and edges were read."""

    def parents(self) -> dict[int, list[Edge]]:
        parents: dict[int, list[Edge]] = defaultdict(list)
        for edge in self.edges:
            parents[edge.job].append(edge)
        return parents

    def layers(self) -> dict[int, int]:
        """Return the length of the longest path to each job from a job without parents."""
        children: dict[int, list[int]] = defaultdict(list)
        for edge in self.edges:
            children[edge.parent].append(edge.job)
        missing = Counter(edge.job for edge in self.edges)
        layers = dict.fromkeys(self.jobs, 0)
        ready = [id for id in self.jobs if not missing[id]]
        for id in ready:  # it grows
            for child in children[id]:
                layers[child] = max(layers[child], layers[id] + 1)
                missing[child] -= 1
                if not missing[child]:
                    ready.append(child)
        return layers


_COLUMNS = "state, due_at, attempt, created_at, started_at, finished_at, after_id"
_JOBS = f"""
SELECT id, flow_name, handler, {_COLUMNS}, false FROM tailrace_jobs_job
WHERE flow_id = %(flow)s ORDER BY id LIMIT %(limit)s
"""
# In the order of the primary key, so that the rest is not read.
_DEPENDENCIES = """
SELECT d.parent_id, d.job_id, d.need
FROM unnest(%(jobs)s::bigint[]) AS job (id), LATERAL (
  SELECT parent_id, job_id, need FROM tailrace_jobs_dependency
  WHERE job_id = job.id ORDER BY parent_id OFFSET 0
) d LIMIT %(limit)s
"""
_OUTSIDE = f"""
SELECT id, handler, handler, {_COLUMNS}, true FROM tailrace_jobs_job
WHERE id = ANY(%(ids)s::bigint[])
"""


def read_graph(flow: int) -> FlowGraph:
    """Return the jobs of the flow, at most MAX_JOBS, and their edges, at most MAX_EDGES."""
    rows = query(_JOBS, flow=flow, limit=MAX_JOBS + 1)
    jobs = {row[0]: GraphJob(*row) for row in rows[:MAX_JOBS]}
    dependencies = query(_DEPENDENCIES, jobs=number_array(jobs), limit=MAX_EDGES + 1)
    edges = [Edge(*row) for row in dependencies[:MAX_EDGES]]
    with_rows = {edge.job for edge in edges}
    last = max(with_rows) if len(dependencies) > MAX_EDGES else max(jobs, default=0)
    # A job that needs the success of one parent has no row.
    edges += [
        Edge(job.after_id, job.id, Need.SUCCESS)
        for job in jobs.values()
        if job.after_id is not None and job.id not in with_rows and job.id <= last
    ]
    jobs = _outside({edge.parent for edge in edges} - jobs.keys()) | jobs
    edges = [edge for edge in edges if edge.parent in jobs]
    return FlowGraph(jobs, edges, len(rows) <= MAX_JOBS and len(dependencies) <= MAX_EDGES)


def _outside(ids: set[int]) -> dict[int, GraphJob]:
    rows = query(_OUTSIDE, ids=number_array(sorted(ids)[:MAX_OUTSIDE])) if ids else []
    return {row[0]: GraphJob(*row) for row in rows}
