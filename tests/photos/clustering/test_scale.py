"""With a million photos a sweep uses indexes only: its cost depends on the photos that wait."""

from typing import Any

import pytest
from django.db import connection

from tailrace.domains.photos.clustering.cluster_photos import cluster_photos
from tailrace.domains.photos.clustering.sweeping.inactive import find_inactive_gatherings
from tailrace.domains.photos.clustering.sweeping.inconsistent import (
    find_inconsistent_gatherings,
    repair_gatherings,
)
from tailrace.domains.photos.clustering.sweeping.unassigned import (
    find_unassigned_photos,
    requeue_photos_for_clustering,
)
from tailrace.domains.photos.invariants import (
    ActiveGatheringsGrow,
    GatheringsAreTheirPhotos,
    OriginalsExpire,
    PhotosGather,
)
from tailrace.domains.photos.models import Gathering, Photo
from tests.jobs.engine.plans.pages_read import explain, frugal, nodes
from tests.photos.kit import SQUARE, upload_photo, upload_photos

pytestmark = [pytest.mark.django_db, pytest.mark.slow, pytest.mark.long]
BIG = {"tailrace_photos_photo", "tailrace_photos_gathering"}
WAITING = 200

FILL = """
INSERT INTO tailrace_photos_gathering (state, lat, lon, radius, photo_count, sum_x, sum_y, sum_z,
                              first_photo_at, last_photo_at, joined_at, created_at, finalized_at,
                              shown_lat, shown_lon, shown_radius, placed_count, place_grid)
SELECT 'FINALIZED', 40 + g * 1e-4, 5, 1, 10, 0, 0, 0, at, at, at, at, at, 40 + g * 1e-4, 5, 100, 10,
       100
FROM generate_series(1, 99980) g, LATERAL (SELECT now() - g * interval '5 min' AS at) t;

INSERT INTO tailrace_photos_photo (storage_key, caption, lat, lon, taken_at, uploaded_at,
                          gathering_id, state, cluster_attempts, next_try_at, opened_at, reason)
SELECT 'bulk/' || n, '', g.lat, g.lon, g.last_photo_at, g.last_photo_at, g.id, 'clustered', 0, NULL,
       g.last_photo_at, ''
FROM tailrace_photos_gathering g, generate_series(1, 10) i, LATERAL (SELECT g.id * 10 + i AS n) t;

INSERT INTO tailrace_photos_photo (storage_key, caption, lat, lon, taken_at, uploaded_at, state,
                          cluster_attempts, next_try_at, opened_at, reason)
SELECT 'loner/' || n, '', -40 - n * 0.01, 5, now(), now(), 'new', n % 4, now(), now(), ''
FROM generate_series(1, 200) n;

UPDATE tailrace_photos_gathering g SET sum_x = t.x, sum_y = t.y, sum_z = t.z
FROM (SELECT gathering_id AS id, sum(x) AS x, sum(y) AS y, sum(z) AS z FROM tailrace_photos_photo
      WHERE gathering_id IS NOT NULL GROUP BY 1) t
WHERE t.id = g.id;
ANALYZE tailrace_photos_photo, tailrace_photos_gathering;
"""


def test_frequent_statements_are_cheap_with_a_million_photos(settings) -> None:
    with connection.cursor() as cursor:
        cursor.execute(FILL)
    assert Photo.objects.count() == 1_000_000
    ids: list[int] = []
    frugal(lambda: ids.extend(find_unassigned_photos(200)), pages=600, big=BIG)
    assert len(ids) == WAITING
    waiting_index_alone()
    frugal(lambda: find_inactive_gatherings(200), pages=50, big=BIG)
    frugal(lambda: find_inconsistent_gatherings(200), pages=20_000, big=BIG)
    assert find_inconsistent_gatherings(200) == []
    settings.PHOTOS_ORIGINALS_RETENTION_DAYS = 1
    frugal(OriginalsExpire().find, pages=600, big=BIG)
    for invariant in SWEPT:
        frugal(invariant().find, pages=20_000, big=BIG)

    frugal(lambda: requeue_photos_for_clustering(ids[:20]), pages=3000, big=BIG)
    frugal(lambda: repair_gatherings(list(_some(20))), pages=4000, big=BIG)
    batch = [photo.pk for photo in [*upload_photos(20), upload_photo(SQUARE)]]
    frugal(lambda: cluster_photos(batch), pages=3000, big=BIG)
    cluster_photos(batch)
    frugal(lambda: cluster_photos([upload_photo(SQUARE).pk]), pages=3000, big=BIG)
    assert Gathering.objects.active().get().photo_count >= 21


SWEPT = (PhotosGather, ActiveGatheringsGrow, GatheringsAreTheirPhotos)


def waiting_index_alone() -> None:
    """Assert that the statement reads photos by the partial index of waiting photos only."""
    ((_sql, plan),) = explain(lambda: find_unassigned_photos(200))
    read = [node for node in nodes(plan) if node.get("Relation Name") == "tailrace_photos_photo"]
    assert read
    assert {(node["Node Type"], node.get("Index Name")) for node in read} <= {
        ("Index Scan", "tailrace_photo_waiting"),
        ("Index Only Scan", "tailrace_photo_waiting"),
    }


def _some(count: int) -> Any:
    return Gathering.objects.order_by("pk").values_list("pk", flat=True)[:count]
