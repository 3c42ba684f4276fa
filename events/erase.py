"""Take personal data out of recorded events."""

from collections.abc import Collection

from tailrace.db.arrays import text_array
from tailrace.db.query import query

_ERASE = """
UPDATE tailrace_events_event e SET actor = '', payload = coalesce(
  (SELECT jsonb_object_agg(key, value) FROM jsonb_each(e.payload)
   WHERE key = ANY(%(keep)s::text[])), '{}')
WHERE e.source = %(source)s AND e.source_id = ANY(%(source_ids)s::text[])
RETURNING e.id
"""


def erase(source: str, source_ids: Collection[str], *, keep: Collection[str]) -> list[int]:
    """Reduce the payloads of these events to the fields `keep`, and empty their actors.

    Returns the events' ids. Type, subject and times stay, so that no source records the event
    again. The Payload of their type must give its other fields defaults. Joins the caller's
    transaction; safe to repeat.
    """
    rows = query(_ERASE, source=source, source_ids=text_array(source_ids), keep=text_array(keep))
    return sorted(id for (id,) in rows)
