"""Compute the shown places of all gatherings, and round what older events and reasons tell.

In batches, each in a transaction of its own: it may be interrupted, and continues where it stopped.
Gatherings that the former release starts meanwhile get their place from the sweeper.
"""

from django.conf import settings
from django.db import connection, migrations

from tailrace.db.arrays import number_array
from tailrace.domains.photos.clustering.shown_place import shown_place
from tailrace.domains.photos.geometry.place_grid import cell_centre

BATCH = 500

_GATHERINGS = """
SELECT g.id, g.lat, g.lon, g.photo_count FROM tailrace_photos_gathering g
WHERE g.id > %s AND g.place_grid IS NULL ORDER BY g.id LIMIT %s
"""
_POINTS = "SELECT gathering_id, lat, lon FROM tailrace_photos_photo WHERE gathering_id = ANY(%s)"
_PLACE = """
UPDATE tailrace_photos_gathering SET shown_lat = new.lat, shown_lon = new.lon, shown_radius = new.radius,
                            placed_count = new.count, place_grid = new.grid
FROM unnest(%s::bigint[], %s::float8[], %s::float8[], %s::float8[], %s::int[], %s::int[])
  AS new (id, lat, lon, radius, count, grid)
WHERE tailrace_photos_gathering.id = new.id AND place_grid IS NULL
"""
_EVENTS = """
SELECT e.id, (e.payload->>'lat')::float8, (e.payload->>'lon')::float8,
       g.shown_lat, g.shown_lon, g.shown_radius
FROM tailrace_events_event e LEFT JOIN tailrace_photos_gathering g ON g.id = (e.payload->>'gathering')::bigint
WHERE e.type = %s AND e.id > %s ORDER BY e.id LIMIT %s
"""
_ROUND = """
UPDATE tailrace_events_event SET payload = payload || jsonb_build_object(
  'lat', new.lat, 'lon', new.lon, 'radius', new.radius)
FROM unnest(%s::bigint[], %s::float8[], %s::float8[], %s::float8[]) AS new (id, lat, lon, radius)
WHERE tailrace_events_event.id = new.id
"""
_REASONS = """
UPDATE tailrace_photos_photo SET reason = regexp_replace(
  reason, '^Only .* within (.*); a gathering needs ([0-9]+)$',
  'Fewer than \\2 photos without a gathering within \\1')
WHERE id IN (SELECT id FROM tailrace_photos_photo WHERE state = 'unclusterable' AND reason LIKE 'Only %%'
             LIMIT %s)
"""


def place_gatherings(apps, schema_editor):
    grid, last = settings.PHOTOS_PLACE_GRID_M, 0
    with connection.cursor() as cursor:
        while rows := _fetch(cursor, _GATHERINGS, last, BATCH):
            last = rows[-1][0]
            points = {}
            for id, *point in _fetch(cursor, _POINTS, [id for id, *_ in rows]):
                points.setdefault(id, []).append(point)
            new = [
                (id, *shown_place(points.get(id) or [(lat, lon)], grid), count, grid)
                for id, lat, lon, count in rows
            ]
            cursor.execute(_PLACE, [number_array(column) for column in zip(*new, strict=True)])


def round_events(apps, schema_editor):
    grid = settings.PHOTOS_PLACE_GRID_M
    with connection.cursor() as cursor:
        for type in ("photos.gathering_started", "photos.gathering_finalized"):
            last = 0
            while rows := _fetch(cursor, _EVENTS, type, last, BATCH):
                last = rows[-1][0]
                new = [
                    (id, *(shown if shown[0] is not None else (*cell_centre(lat, lon, grid), grid)))
                    for id, lat, lon, *shown in rows
                ]
                cursor.execute(_ROUND, [number_array(column) for column in zip(*new, strict=True)])


def reword_reasons(apps, schema_editor):
    with connection.cursor() as cursor:
        cursor.execute(_REASONS, [BATCH])
        while cursor.rowcount:
            cursor.execute(_REASONS, [BATCH])


def _fetch(cursor, sql, *params):
    cursor.execute(sql, params)
    return cursor.fetchall()


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("tailrace_photos", "0004_shown_place_columns"),
        ("tailrace_events", "0003_help_texts"),
    ]

    operations = [
        migrations.RunPython(step, migrations.RunPython.noop)
        for step in (place_gatherings, round_events, reword_reasons)
    ]
