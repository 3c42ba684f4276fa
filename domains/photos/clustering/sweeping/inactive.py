"""Find gatherings that no photo has joined for a while, and finalize them."""

from collections.abc import Sequence

from django.conf import settings
from django.db import transaction

from tailrace.db import clock
from tailrace.db.query import prepared
from tailrace.db.sql.arrays import number_array
from tailrace.domains.photos.clustering.figures import PAYLOAD_COLUMNS, payload
from tailrace.domains.photos.event_types import GatheringFinalized
from tailrace.events.publish import publish

# SKIP LOCKED: a gathering that a photo is joining now is locked, and no longer inactive.
_INACTIVE = f"""
SELECT id FROM tailrace_photos_gathering
WHERE state = 'ACTIVE' AND joined_at <= {clock.NOW} - make_interval(mins => %(after)s)
  AND place_grid IS NOT NULL
ORDER BY joined_at
LIMIT %(limit)s::int
FOR UPDATE SKIP LOCKED
"""


def find_inactive_gatherings(limit: int) -> list[int]:
    """Lock the ACTIVE gatherings that are idle for PHOTOS_FINALIZE_AFTER_MINUTES; return ids."""
    rows = prepared(_INACTIVE, limit=limit, after=settings.PHOTOS_FINALIZE_AFTER_MINUTES)
    return [id for (id,) in rows]


_FINALIZE = f"""
UPDATE tailrace_photos_gathering g SET state = 'FINALIZED', finalized_at = {clock.NOW}
WHERE id = ANY(%(ids)s::bigint[]) AND state = 'ACTIVE'
  AND joined_at <= {clock.NOW} - make_interval(mins => %(after)s)
RETURNING {PAYLOAD_COLUMNS}
"""


def finalize_inactive_gatherings(ids: Sequence[int]) -> int:
    """Finalize the gatherings that are still inactive, publish the events; return how many."""
    with transaction.atomic():
        rows = prepared(
            _FINALIZE, ids=number_array(ids), after=settings.PHOTOS_FINALIZE_AFTER_MINUTES
        )
        publish([GatheringFinalized.new_event(payload(row)) for row in sorted(rows)])
    return len(rows)
