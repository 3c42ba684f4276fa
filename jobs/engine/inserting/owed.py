"""Which jobs of events exist already, among the live ones or in the history."""

from collections.abc import Collection, Sequence

from tailrace.db import locks
from tailrace.db.arrays import number_array, text_array
from tailrace.db.plans import probe
from tailrace.db.query import query

Owed = tuple[int | None, str, str]
"""A job by its event, handler and routing key; without an event it is nobody's."""

# The unique index of the live jobs knows nothing of those that ended. So two who create the jobs of
# one event do it one after the other, and the second sees what the first has made, wherever that is
# by now. At publish nobody else knows of the event.
_LOCK = f"""
WITH {locks.LIMITED},
locked AS MATERIALIZED (
  SELECT e.id FROM limited, tailrace_events_event e WHERE e.id = ANY(%(ids)s::bigint[])
  ORDER BY e.id FOR NO KEY UPDATE OF e
), {locks.restored("locked")}
SELECT locked.id FROM restored, locked
"""
_OWED = f"""
SELECT v.place - 1
FROM unnest(%(events)s::bigint[], %(handlers)s::text[], %(routing_keys)s::text[])
  WITH ORDINALITY AS v (event, handler, routing_key, place)
JOIN tailrace_jobs_job o ON {probe("o.event_id", "v.event")}
  AND o.handler = v.handler AND o.routing_key = v.routing_key
"""


def owed_already(jobs: Sequence[Owed]) -> Collection[int]:
    """Return the places of the jobs that their event has had before.

    Until the caller's transaction ends, nobody else creates jobs of these events. Raises
    `locks.Blocked` if another transaction does for too long.
    """
    events, handlers, routing_keys = zip(*jobs, strict=True)
    ids = sorted({event for event in events if event is not None})
    with locks.named(lambda: f"the rows of {len(ids)} events from {ids[0]} to {ids[-1]}"):
        query(_LOCK, ids=number_array(ids), **locks.params())
    rows = query(
        _OWED,
        events=number_array(events),
        handlers=text_array(handlers),
        routing_keys=text_array(routing_keys),
    )
    return {place for (place,) in rows}
