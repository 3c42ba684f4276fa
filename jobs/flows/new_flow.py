"""Create a flow."""

from datetime import timedelta

from tailrace.db import clock, connections, locks
from tailrace.db.query import prepared, query
from tailrace.jobs.engine.inserting.new_job import KEY_LIMIT, InvalidJob
from tailrace.jobs.flows.graph import Graph
from tailrace.jobs.flows.insert import insert, states_of_existing

# It waits for the transaction of an uncommitted flow with the key.
_INSERT = f"""
WITH {locks.LIMITED},
inserted AS (
  INSERT INTO tailrace_jobs_flow
    (name, unique_key, created_at, deadline_at, paused_by, cancelled_by, copy_of)
  SELECT %(name)s, %(unique_key)s, {clock.NOW},
    {clock.NOW} + make_interval(secs => %(deadline)s::float8), '', '', %(copy_of)s::bigint
  FROM limited
  ON CONFLICT (unique_key) WHERE unique_key IS NOT NULL DO NOTHING RETURNING id
), {locks.restored("inserted")}
SELECT inserted.id FROM restored, inserted
"""
_EXISTING = "SELECT id FROM tailrace_jobs_flow WHERE unique_key = %(unique_key)s"


class NewFlow(Graph):
    """A flow to be enqueued: add its jobs, then call `enqueue`.

    `name` is shown to operators. When the time `deadline` has passed since the flow was enqueued,
    its unfinished jobs are cancelled. If there is a flow with the same `unique_key`, `enqueue`
    creates nothing and returns the id of that flow. Raises InvalidJob.
    """

    def __init__(
        self, name: str, *, deadline: timedelta | None = None, unique_key: str | None = None
    ) -> None:
        super().__init__(name)
        if deadline is not None and deadline <= timedelta(0):
            raise InvalidJob(f"flow {name!r}: the deadline {deadline} is not above zero")
        if unique_key is not None and len(unique_key) > KEY_LIMIT:
            raise InvalidJob(
                f"flow {name!r}: unique_key has {len(unique_key)} characters; at most {KEY_LIMIT}"
                " are allowed"
            )
        self.deadline, self.unique_key = deadline, unique_key
        self.id: int | None = None
        """Set when the flow is enqueued."""
        self.is_new = False
        """Whether `enqueue` created the flow: False if there was one with its unique key."""
        self.copy_of: int | None = None

    def cannot_be_part(self) -> str:
        if self.deadline is not None:
            return "it has a deadline"
        if self.unique_key is not None:
            return "it has a unique key"
        return "it is enqueued already" if self.id is not None else ""

    def enqueue(self, *, independent: bool = False) -> int:
        """Create the flow with its jobs in the caller's transaction, and return its id. With
        `independent`, it is committed at once, whatever happens to that transaction.

        Raises InvalidJob if the flow has no jobs, jobs that wait for one another, or a parent that
        does not exist or has failed; Blocked if another open transaction is creating a flow with
        its unique key for more than ten seconds.
        """
        if self.id is not None:
            raise InvalidJob(f"flow {self.name!r} is enqueued already: it is flow {self.id}")
        if not self.jobs:
            raise InvalidJob(f"flow {self.name!r} has no jobs")
        jobs = self.in_order()
        # What can be refused is refused before the first statement that writes: an error within
        # the caller's transaction would end it.
        with connections.engine_if(independent):
            states = states_of_existing(self.name, jobs)

        def create() -> tuple[int, bool]:
            with locks.named(lambda: f"the unique key {self.unique_key!r} of a flow"):
                rows = prepared(
                    _INSERT,
                    name=self.name,
                    unique_key=self.unique_key,
                    deadline=None if self.deadline is None else self.deadline.total_seconds(),
                    copy_of=self.copy_of,
                    **locks.params(),
                )
            if not rows:
                return int(query(_EXISTING, unique_key=self.unique_key)[0][0]), False
            [(id,)] = rows
            insert(id, jobs, states)
            return id, True

        with connections.engine_if(independent):
            self.id, self.is_new = locks.in_transaction(create)
        return self.id
