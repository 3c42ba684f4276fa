"""Guards: the unique indexes that keep a thing from being owed, tried or recorded twice."""

from collections.abc import Iterator
from typing import Any

from jobs.fsck.kind import Kind, Scope, rows

GUARDS = (
    "event_recorded_once",
    "job_owed_once",
    "job_unique_key",
    "attempt_settled_once",
    "slot_once",
)

_SOUND = """
SELECT c.relname FROM pg_class c JOIN pg_index i ON i.indexrelid = c.oid
WHERE c.relname = ANY(%(names)s) AND i.indisunique AND i.indisvalid AND pg_table_is_visible(c.oid)
"""


def missing() -> list[str]:
    """Return the guards that are not there, or not valid."""
    sound = {name for (name,) in rows(_SOUND, names=list(GUARDS))}
    return [name for name in GUARDS if name not in sound]


class GuardsStand(Kind):
    """The unique indexes that the engine relies on exist, and are valid."""

    name = "database.guard_missing"
    advice = "end what is doubled, then make the index again as the migrations do"

    def find(self, scope: Scope) -> Iterator[Any]:
        yield from missing()


class _Doubles(Kind):
    """Rows that share what only one may have; looked for only while their guard is missing."""

    guard = ""
    doubled = ""
    advice = "cancel all but one: `manage.py jobs cancel ID …`"

    def find(self, scope: Scope) -> Iterator[Any]:
        if self.guard in missing():
            yield from (id for (id,) in rows(self.doubled))


class OwedOnce(_Doubles):
    """An event owes one job for each handler and routing key."""

    name = "jobs.owed_twice"
    guard = "job_owed_once"
    doubled = """
      SELECT unnest((array_agg(id ORDER BY id))[2:]) FROM jobs_job WHERE event_id IS NOT NULL
      GROUP BY event_id, handler, routing_key HAVING count(*) > 1 ORDER BY 1 LIMIT 10000"""


class UniqueWhileUnstarted(_Doubles):
    """Of a handler's unstarted jobs with one unique key there is one."""

    name = "jobs.unique_key_twice"
    guard = "job_unique_key"
    doubled = """
      SELECT unnest((array_agg(id ORDER BY id))[2:]) FROM jobs_job
      WHERE unique_key IS NOT NULL AND state IN ('waiting', 'pending')
      GROUP BY handler, unique_key HAVING count(*) > 1 ORDER BY 1 LIMIT 10000"""
