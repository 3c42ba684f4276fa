"""The jobs of a flow before they are inserted: their names, and which of them wait for which."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from typing import Any, Union

from pydantic import BaseModel

from tailrace.environment.suggest import did_you_mean
from tailrace.jobs.engine.inserting.new_job import InvalidJob, NewJob
from tailrace.jobs.enqueue import new_job
from tailrace.jobs.handler import Handler
from tailrace.jobs.models import Need

MAX_JOBS = 100_000
"""Maximum number of jobs of a flow."""
MAX_DEPENDENCIES = 500_000
"""Maximum number of parents that the jobs of a flow wait for, added up."""
NAME_LIMIT = 200
"""Maximum length of the name of a flow or of one of its jobs, in characters."""
ADDED = "@"
"""In the name of a job that another job added while it ran, before the id of that job."""
NAMES_SHOWN = 10
"""Jobs of a cycle that its error names."""

Payload = BaseModel | Mapping[str, Any] | None
Step = Union["type[Handler] | str", "tuple[type[Handler] | str, Payload]"]
Parents = Union["FlowJob", str, int, "Iterable[FlowJob | str | int]"]
"""A job of this flow, also by its name, the id of a job that exists, or several of these."""


@dataclass(slots=True, eq=False)
class FlowJob:
    """A job of a flow."""

    name: str
    """Unique in its flow."""
    job: NewJob
    parents: dict["FlowJob | str | int", Need] = field(default_factory=dict)
    """How each parent must end, in the order in which `ClaimedJob.parents` returns them."""
    copy_of: int | None = None
    joins: bool = False
    """Whether the jobs that wait for the job which adds this one wait for this one, too."""
    id: int | None = None
    """Set when the flow is enqueued."""

    def __str__(self) -> str:
        return self.name


class Graph:
    """Jobs, and the parents that each waits for."""

    def __init__(self, name: str) -> None:
        if not name or len(name) > NAME_LIMIT:
            raise InvalidJob(
                f"the name of a flow has 1 to {NAME_LIMIT} characters, not {len(name)}"
            )
        self.name = name
        self.jobs: dict[str, FlowJob] = {}
        """The jobs by their names, in the order in which they were added."""
        self._numbers: Counter[str] = Counter()
        self._dependencies = 0

    def add(
        self,
        handler: type[Handler] | str,
        payload: Payload = None,
        *,
        name: str = "",
        after: Parents = (),
        after_failure: Parents = (),
        after_end: Parents = (),
        **options: Any,
    ) -> FlowJob:
        """Add a job, and return it. It runs when all of its parents have ended, if

        - all jobs in `after` are completed or skipped,
        - and at least one job in `after_failure` failed or was cancelled.

        `after_end` are parents that may end in any way. If a job in `after` did not complete, it is
        cancelled; if no job in `after_failure` failed, it is skipped. A parent may be added later,
        if it is given by its name.

        `name` is unique in the flow; by default it is made from the handler's name. `options` are
        `due_at`, `delay`, `lane` and `priority`, as for `enqueue`. Raises UnknownHandler or
        InvalidJob.
        """
        if unknown := options.keys() - {"due_at", "delay", "lane", "priority"}:
            raise InvalidJob(
                f"flow {self.name!r}: a job of a flow takes no {', '.join(sorted(unknown))}"
            )
        name = _checked_name(name) if name else self._free_name(_short_name(handler))
        job = FlowJob(self.full_name(name), new_job(handler, payload, **options))
        for parents, need in (
            (after, Need.SUCCESS),
            (after_failure, Need.FAILURE),
            (after_end, Need.END),
        ):
            for parent in _each(parents):
                if job.parents.setdefault(parent, need) != need:
                    raise self._waits_in_two_ways(job, parent)
        self._keep(job)
        return job

    def _keep(self, job: FlowJob) -> None:
        if job.name in self.jobs:
            raise InvalidJob(f"flow {self.name!r} has two jobs with the name {job.name!r}")
        self.jobs[job.name] = job
        self._dependencies += len(job.parents)
        check_size(self.name, len(self.jobs), self._dependencies)

    def full_name(self, name: str) -> str:
        """Return the name of a job in the database."""
        return name

    def group(
        self,
        handler: type[Handler] | str,
        payloads: Iterable[Payload],
        *,
        name: str = "",
        **options: Any,
    ) -> list[FlowJob]:
        """Add one job for each payload, and return them in this order. They run side by side.
        `name` gets a number for each of them; `options` as in `add`."""
        name = name or _short_name(handler)
        return [
            self.add(handler, payload, name=self._free_name(name, numbered=True), **options)
            for payload in payloads
        ]

    def chain(self, steps: Iterable[Step], *, after: Parents = (), **options: Any) -> list[FlowJob]:
        """Add a job for each step, a handler or a handler with its payload, and return them. Each
        runs after the one before it, the first after `after`; `options` as in `add`."""
        jobs: list[FlowJob] = []
        for step in steps:
            handler, payload = step if isinstance(step, tuple) else (step, None)
            jobs.append(self.add(handler, payload, after=jobs[-1:] if jobs else after, **options))
        return jobs

    def add_flow(self, flow: "Graph", *, name: str = "", after: Parents = ()) -> list[FlowJob]:
        """Add the jobs of another flow, which is not enqueued, with names that begin with `name/`.
        Its jobs without parents run after `after`. Return its last jobs, for which no other of its
        jobs waits: a job that runs after these runs after that whole flow.

        Raises InvalidJob if it has a deadline or a unique key of its own.
        """
        if reason := flow.cannot_be_part():
            raise InvalidJob(f"flow {flow.name!r} cannot be a part of another one: {reason}")
        prefix = name or flow.name
        copies = {
            job: FlowJob(self.full_name(_checked_name(f"{prefix}/{job.name}")), job.job)
            for job in flow.jobs.values()
        }
        waited_for: set[FlowJob | int] = set()
        for job, copy in copies.items():
            parents = {flow.resolved(job, parent): need for parent, need in job.parents.items()}
            copy.parents = {
                copies[each] if isinstance(each, FlowJob) else each: need
                for each, need in parents.items()
            }
            copy.parents = copy.parents or dict.fromkeys(_each(after), Need.SUCCESS)
            waited_for.update(parents)
            self._keep(copy)
        return [copy for job, copy in copies.items() if job not in waited_for]

    def cannot_be_part(self) -> str:
        """Return why this flow cannot be added to another one; empty if it can."""
        return ""

    def in_order(self) -> list[FlowJob]:
        """Return the jobs, parents before their children: in the order in which they were added, if
        that is such an order. Raises InvalidJob if jobs wait for one another in a circle, or if
        there is no job of a given name."""
        for job in self.jobs.values():
            job.parents = self._resolved_parents(job)
        if self._is_in_order():
            return list(self.jobs.values())
        sorter = TopologicalSorter(
            {
                job: [parent for parent in job.parents if isinstance(parent, FlowJob)]
                for job in self.jobs.values()
            }
        )
        try:
            return list(sorter.static_order())
        except CycleError as error:
            circle = [str(job) for job in reversed(error.args[1])]
            if len(circle) > NAMES_SHOWN:
                circle[NAMES_SHOWN:] = [f"… ({len(circle) - 1} jobs)"]
            raise InvalidJob(
                f"flow {self.name!r}: jobs wait for one another: {' → '.join(circle)}"
            ) from None

    def _resolved_parents(self, job: FlowJob) -> "dict[FlowJob | str | int, Need]":
        parents: dict[FlowJob | str | int, Need] = {}
        for parent, need in job.parents.items():
            if parents.setdefault(self.resolved(job, parent), need) != need:
                raise self._waits_in_two_ways(job, parent)
        return parents

    def _waits_in_two_ways(self, job: FlowJob, parent: object) -> InvalidJob:
        return InvalidJob(f"{self.named(job)} waits for {parent} in two ways")

    def _is_in_order(self) -> bool:
        """Whether each job was added after its parents."""
        positions = {job: number for number, job in enumerate(self.jobs.values())}
        return all(
            positions[parent] < positions[job]
            for job in self.jobs.values()
            for parent in job.parents
            if isinstance(parent, FlowJob)
        )

    def resolved(self, job: FlowJob, parent: FlowJob | str | int) -> FlowJob | int:
        """Return the parent that is given by its name, or the parent itself."""
        if isinstance(parent, str):
            return self.by_name(job, parent)
        if isinstance(parent, FlowJob) and self.jobs.get(parent.name) is not parent:
            if parent.id is None:
                raise InvalidJob(
                    f"{self.named(job)} waits for {parent.name!r}, which is a job of another flow"
                    " that is not enqueued"
                )
            return parent.id
        return parent

    def by_name(self, job: FlowJob, name: str) -> FlowJob | int:
        """Return the job with this name. Raises InvalidJob if there is none."""
        if (parent := self.jobs.get(self.full_name(name))) is not None:
            return parent
        raise InvalidJob(
            f"{self.named(job)} waits for {name!r}: there is no job with this name"
            f"{did_you_mean(name, self.jobs)}"
        )

    def named(self, job: FlowJob) -> str:
        """Return the flow and the job, for errors."""
        return f"flow {self.name!r}: the job {job.name!r}"

    def _free_name(self, name: str, *, numbered: bool = False) -> str:
        """Return this name, with a number if it is taken, or if it is to be `numbered`."""
        while True:
            self._numbers[name] += 1
            number = self._numbers[name]
            free = name if number == 1 and not numbered else f"{name}-{number}"
            if self.full_name(free) not in self.jobs:
                return free


def check_size(name: str, jobs: int, dependencies: int = 0) -> None:
    """Raise InvalidJob if a flow has too many jobs or dependencies."""
    if jobs > MAX_JOBS:
        raise InvalidJob(
            f"flow {name!r} has more than {MAX_JOBS:,} jobs: let a job enqueue a flow of its own,"
            " or give each job more work"
        )
    if dependencies > MAX_DEPENDENCIES:
        raise InvalidJob(
            f"the jobs of flow {name!r} wait for more than {MAX_DEPENDENCIES:,} parents in all: add"
            " a job that waits for one group, and let the other group wait for that job"
        )


def _short_name(handler: type[Handler] | str) -> str:
    """Return the last part of the handler's name."""
    return (handler if isinstance(handler, str) else handler.name).rpartition(".")[2]


def _checked_name(name: str) -> str:
    if not name or len(name) > NAME_LIMIT:
        raise InvalidJob(f"the name of a job has 1 to {NAME_LIMIT} characters, not {len(name)}")
    if ADDED in name:
        raise InvalidJob(f"the name of a job has no {ADDED!r}, unlike {name!r}")
    return name


def _each(parents: Parents) -> list[FlowJob | str | int]:
    return [parents] if isinstance(parents, (FlowJob, str, int)) else list(parents)
