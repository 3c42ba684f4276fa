"""Find which jobs of recorded events exist already, among the live jobs or in the history."""

from collections.abc import Collection, Sequence

from tailrace.db import locks
from tailrace.db.query import query
from tailrace.db.sql.arrays import number_array, text_array
from tailrace.db.sql.plans import probe

JobKey = tuple[int | None, str, str]
"""The event (None for a job without an event), handler and routing key of a job."""

# The unique index covers only live jobs, not the history. So processes that create jobs of the same
# event lock the event's row, and the second one finds the jobs of the first one, even if they have
# ended. `publish` needs no lock: no other process can see the event yet.
_LOCK = f"""
WITH {locks.LIMITED},
locked AS MATERIALIZED (
  SELECT e.id FROM limited, tailrace_events_event e WHERE e.id = ANY(%(ids)s::bigint[])
  ORDER BY e.id FOR NO KEY UPDATE OF e
), {locks.restored("locked")}
SELECT locked.id FROM restored, locked
"""
_EXISTING = f"""
SELECT v.place - 1
FROM unnest(%(events)s::bigint[], %(handlers)s::text[], %(routing_keys)s::text[])
  WITH ORDINALITY AS v (event, handler, routing_key, place)
JOIN tailrace_jobs_job o ON {probe("o.event_id", "v.event")}
  AND o.handler = v.handler AND o.routing_key = v.routing_key
"""


def existing_jobs(jobs: Sequence[JobKey]) -> Collection[int]:
    """Return the indexes of the jobs that exist already, live or in the history. It locks the
    events, so that no other process creates jobs of these events until the caller's transaction
    ends. Raises `locks.Blocked` if another transaction holds one for too long."""
    events, handlers, routing_keys = zip(*jobs, strict=True)
    ids = sorted({event for event in events if event is not None})
    with locks.named(lambda: f"the rows of {len(ids)} events from {ids[0]} to {ids[-1]}"):
        query(_LOCK, ids=number_array(ids), **locks.params())
    keys = {"handlers": text_array(handlers), "routing_keys": text_array(routing_keys)}
    rows = query(_EXISTING, events=number_array(events), **keys)
    return {index for (index,) in rows}
