"""The unique indexes that prevent a job, an attempt or a slot from existing twice."""

from tailrace.db.query import query
from tailrace.jobs.runtime.invariant import Invariant

INDEXES = (
    "tailrace_event_recorded_once",
    "tailrace_job_owed_once",
    "tailrace_job_unique_key",
    "tailrace_attempt_settled_once",
    "tailrace_slot_once",
)

_VALID = """
SELECT c.relname FROM pg_class c JOIN pg_index i ON i.indexrelid = c.oid
WHERE c.relname = ANY(%(names)s) AND i.indisunique AND i.indisvalid AND pg_table_is_visible(c.oid)
"""


class UniqueIndexesExist(Invariant):
    """The unique indexes that the engine needs exist and are valid."""

    name = "database.guard_missing"
    every = None
    advice = "remove the duplicates, then create the index as in the migrations"

    def find(self) -> list[str]:
        valid = {name for (name,) in query(_VALID, names=list(INDEXES))}
        return [name for name in INDEXES if name not in valid]


class _NoDuplicates(Invariant):
    """Duplicates that a unique index normally prevents; checked only if the index is missing."""

    every = None
    index = ""
    duplicates = ""
    advice = "cancel all duplicates but one: `manage.py jobs cancel ID …`"

    def find(self) -> list[int]:
        if self.index not in UniqueIndexesExist().find():
            return []
        return [id for (id,) in query(self.duplicates, limit=self.limit)]


class OneJobPerRoutingKey(_NoDuplicates):
    """An event has one job for each handler and routing key."""

    name = "jobs.owed_twice"
    index = "tailrace_job_owed_once"
    duplicates = """
      SELECT unnest((array_agg(id ORDER BY id))[2:]) FROM tailrace_jobs_job
        WHERE event_id IS NOT NULL
      GROUP BY event_id, handler, routing_key HAVING count(*) > 1 ORDER BY 1 LIMIT %(limit)s"""


class OneUnstartedJobPerUniqueKey(_NoDuplicates):
    """A handler has one unstarted job for each unique key."""

    name = "jobs.unique_key_twice"
    index = "tailrace_job_unique_key"
    duplicates = """
      SELECT unnest((array_agg(id ORDER BY id))[2:]) FROM tailrace_jobs_job
      WHERE unique_key IS NOT NULL AND state IN ('waiting', 'pending')
      GROUP BY handler, unique_key HAVING count(*) > 1 ORDER BY 1 LIMIT %(limit)s"""
