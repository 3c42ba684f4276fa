"""Erase personal data in recorded events."""

from collections.abc import Collection

from tailrace.db.query import query
from tailrace.db.sql.arrays import text_array

_ERASE = """
UPDATE tailrace_events_event e SET actor = '', payload = coalesce(
  (SELECT jsonb_object_agg(key, value) FROM jsonb_each(e.payload)
   WHERE key = ANY(%(keep)s::text[])), '{}')
WHERE e.source = %(source)s AND e.source_id = ANY(%(source_ids)s::text[])
RETURNING e.id
"""


def erase(source: str, source_ids: Collection[str], *, keep: Collection[str]) -> list[int]:
    """Remove all fields but `keep` from the payloads of these events, and clear their actors;
    return their ids. The rows stay, so no source can record the events again. Every other field of
    their Payload must have a default. Joins the caller's transaction; safe to repeat."""
    rows = query(_ERASE, source=source, source_ids=text_array(source_ids), keep=text_array(keep))
    return sorted(id for (id,) in rows)
