"""Save the results of a batch: assignments, gatherings, and the states of unassigned photos."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from django.conf import settings

from tailrace.db import clock
from tailrace.db.query import execute, prepared
from tailrace.db.sql.arrays import number_array
from tailrace.domains.photos.clustering.figures import write_figures
from tailrace.domains.photos.clustering.rules import Cluster, Neighbourhood, PhotoPoint
from tailrace.domains.photos.event_types import GatheringStarted
from tailrace.events.publish import NewEvent, publish


class ConcurrentChange(Exception):
    """Rows changed although they were loaded under locks; the batch is retried."""


def save(
    neighbourhood: Neighbourhood,
    batch: list[PhotoPoint],
    photos: list[PhotoPoint],
    causes: Mapping[int, int],
) -> None:
    """Save the assignments of `photos`, and give up or reopen photos without a gathering."""
    assigned = [photo for photo in photos if photo.cluster is not None]
    # Clusters are compared by identity.
    if clusters := list(dict.fromkeys(photo.cluster for photo in assigned if photo.cluster)):
        started = [cluster for cluster in clusters if cluster.id is None]
        _insert(started)
        _assign(assigned)
        payloads = {each["gathering"]: each for each in write_figures(clusters, joined=True)}
        if len(payloads) != len(clusters):
            raise ConcurrentChange("a gathering was finalized while photos were joining it")
        publish([_started_event(c, payloads[c.id], assigned, causes) for c in started if c.id])
    unassigned = [photo for photo in batch if photo.cluster is None]
    _give_up(unassigned)
    _reopen(neighbourhood, assigned, unassigned)


def _started_event(
    cluster: Cluster, payload: dict[str, Any], assigned: list[PhotoPoint], causes: Mapping[int, int]
) -> NewEvent:
    members = {photo.id for photo in assigned if photo.cluster is cluster}
    cause = max((causes[id] for id in members & causes.keys()), default=None)
    return replace(GatheringStarted.new_event(payload), cause_id=cause)


_INSERT = f"""
INSERT INTO tailrace_photos_gathering (state, lat, lon, radius, photo_count, sum_x, sum_y, sum_z,
                              first_photo_at, last_photo_at, joined_at, created_at)
SELECT 'ACTIVE', 0, 0, 0, 0, 0, 0, 0, {clock.NOW}, {clock.NOW}, {clock.NOW}, {clock.NOW}
FROM generate_series(1, %(count)s::int)
RETURNING id
"""


def _insert(started: list[Cluster]) -> None:
    """Insert the rows of new gatherings and set their ids; their figures follow."""
    if started:
        rows = prepared(_INSERT, count=len(started))
        for cluster, (id,) in zip(started, sorted(rows), strict=True):
            cluster.id = id


_ASSIGN = """
UPDATE tailrace_photos_photo p
  SET gathering_id = new.gathering, state = 'clustered', next_try_at = NULL,
      given_up_at = NULL, reason = ''
FROM unnest(%(ids)s::bigint[], %(gatherings)s::bigint[]) AS new (id, gathering)
WHERE p.id = new.id AND p.gathering_id IS NULL
RETURNING p.id
"""


def _assign(photos: list[PhotoPoint]) -> None:
    rows = prepared(
        _ASSIGN,
        ids=number_array(photo.id for photo in photos),
        gatherings=number_array(photo.cluster.id if photo.cluster else None for photo in photos),
    )
    if len(rows) != len(photos):
        raise ConcurrentChange("a photo was deleted while its batch was clustered")


_GIVE_UP = f"""
UPDATE tailrace_photos_photo
  SET state = 'unclusterable', next_try_at = NULL, given_up_at = {clock.NOW},
      reason = %(reason)s::text
WHERE id = ANY(%(ids)s::bigint[]) AND state = 'new'
  AND opened_at + make_interval(mins => %(lookback)s) <= {clock.NOW}
"""


def _give_up(unassigned: list[PhotoPoint]) -> None:
    """Mark the photos whose lookback has ended as unclusterable."""
    if new := [photo for photo in unassigned if photo.given_up_at is None]:
        execute(
            _GIVE_UP,
            ids=number_array(photo.id for photo in new),
            # How many photos of other users are near would reveal where they were taken.
            reason=f"Fewer than {settings.PHOTOS_MIN_FOR_GATHERING} photos without a gathering"
            f" within {settings.PHOTOS_DISTANCE_METERS} m"
            f" and {settings.PHOTOS_TIME_WINDOW_MINUTES} min",
            lookback=settings.PHOTOS_SWEEP_LOOKBACK_MINUTES,
        )


_REOPEN = f"""
UPDATE tailrace_photos_photo
  SET state = 'new', reason = '', given_up_at = NULL, next_try_at = {clock.NOW},
  cluster_attempts = CASE state WHEN 'new' THEN cluster_attempts ELSE 0 END,
  opened_at = CASE state WHEN 'new' THEN opened_at ELSE {clock.NOW} END
WHERE id = ANY(%(ids)s::bigint[]) AND gathering_id IS NULL
  AND (state = 'unclusterable' OR next_try_at > {clock.NOW})
"""


def _reopen(
    neighbourhood: Neighbourhood, assigned: list[PhotoPoint], unassigned: list[PhotoPoint]
) -> None:
    """Schedule an early attempt for photos that have a new neighbour: one that this batch assigned,
    or that arrived after the photo was given up. For a replayed batch, neither is true again."""
    batch = {photo.id for photo in unassigned}
    ids = {
        other.id
        for photo in assigned
        for other in neighbourhood.unassigned_near(photo)
        if other.id not in batch
    }
    ids |= {
        other.id
        for photo in unassigned
        for other in neighbourhood.unassigned_near(photo)
        if other.given_up_at is not None and other.given_up_at < photo.arrived_at
    }
    if ids:
        execute(_REOPEN, ids=number_array(sorted(ids)))
