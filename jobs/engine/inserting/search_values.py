"""Write and find the searchable values of payloads: the values of fields in `searchable`.

They have their own narrow table, so that jobs and events without searchable fields cost nothing.
"""

from collections.abc import Iterable
from typing import Literal

from tailrace.db.query import execute, query
from tailrace.events.publish import Recorded
from tailrace.events.types import all_types
from tailrace.jobs.engine import registry

VALUE_LENGTH = 200

_PARTS = f"""
  SELECT f.field, left(r.payload->>f.field, {VALUE_LENGTH}) AS value, r.id
  FROM {{table}} r JOIN unnest(%(owners)s::text[], %(fields)s::text[]) AS f (owner, field)
    ON f.owner = r.{{owner}}
  WHERE r.id = ANY(%(ids)s)
    AND jsonb_typeof(r.payload->f.field) IN ('string', 'number', 'boolean')"""
_OF_EVENTS = f"""
INSERT INTO tailrace_jobs_searchvalue (field, value, event_id)
SELECT field, value, id FROM ({_PARTS.format(table="tailrace_events_event", owner="type")}) v
"""
_OF_JOBS = f"""
INSERT INTO tailrace_jobs_searchvalue (field, value, job_id)
SELECT field, value, id FROM ({_PARTS.format(table="tailrace_jobs_live", owner="handler")}) v
"""


def of_events(events: Iterable[Recorded]) -> None:
    """Write the searchable values of these events, if their types declare any."""
    declared = [
        (event, event.event_type)
        for event in events
        if event.event_type is not None and event.event_type.searchable
    ]
    if declared:
        pairs = {(each.name, name) for _event, each in declared for name in each.searchable}
        _write(_OF_EVENTS, [event.id for event, _type in declared], pairs)


def of_jobs(handlers: Iterable[str], ids: list[int]) -> None:
    """Write the searchable values of the payloads of these jobs of `handlers`."""
    pairs = {(name, field) for name in set(handlers) for field in declared_by(name)}
    if pairs and ids:
        _write(_OF_JOBS, ids, pairs)


def declared_by(handler: str) -> list[str]:
    declaring = registry.find(handler)
    return list(declaring.searchable) if declaring else []


def all_fields() -> tuple[set[str], set[str]]:
    """Return the searchable fields of all event types, and of all handlers."""
    of_types = {name for each in all_types() for name in each.searchable}
    handlers = registry.all_handlers().values()
    return of_types, {name for handler in handlers for name in handler.searchable}


def _write(statement: str, ids: list[int], pairs: set[tuple[str, str]]) -> None:
    owners, fields = zip(*sorted(pairs), strict=True)
    execute(statement, ids=ids, owners=list(owners), fields=list(fields))


_FIND = """
SELECT {column} FROM tailrace_jobs_searchvalue
WHERE field = %(field)s AND value = %(value)s AND {column} IS NOT NULL
ORDER BY id DESC LIMIT %(limit)s
"""


def find(column: Literal["event_id", "job_id"], field: str, value: str, limit: int) -> list[int]:
    """Return the ids of the newest events or jobs whose own payload has this value, at most
    `limit`."""
    rows = query(_FIND.format(column=column), field=field, value=value[:VALUE_LENGTH], limit=limit)
    return [id for (id,) in rows]
