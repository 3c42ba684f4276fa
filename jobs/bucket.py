"""Buckets: how much a destination is sent, by all workers together."""

from collections.abc import Mapping
from typing import Any

from django.db import connection

from events import clock

# One statement, which locks the row: two workers never take the same token.
_TAKE = f"""
INSERT INTO jobs_bucket AS b (name, tokens, at)
VALUES (%(name)s, %(burst)s - 1, {clock.NOW})
ON CONFLICT (name) DO UPDATE SET
  tokens = least(%(burst)s, b.tokens
    + %(rate)s * greatest(extract(epoch FROM excluded.at - b.at), 0)::float8) - 1,
  at = greatest(b.at, excluded.at)
WHERE least(%(burst)s, b.tokens
    + %(rate)s * greatest(extract(epoch FROM excluded.at - b.at), 0)::float8) >= 1
RETURNING tokens
"""
_WAIT = f"""
SELECT (1 - tokens) / %(rate)s - greatest(extract(epoch FROM {clock.NOW} - at), 0)::float8
FROM jobs_bucket WHERE name = %(name)s
"""


def take(name: str, rate: float, burst: float) -> float:
    """Take one token of the bucket `name`; return 0, or the seconds until there may be one.

    It holds `burst` tokens at most (at least 1) and gets `rate` per second.
    """
    params: dict[str, Any] = {"name": name, "rate": rate, "burst": max(burst, 1.0)}
    params |= clock.params()
    with connection.cursor() as cursor:
        cursor.execute(_TAKE, params)
        if cursor.fetchone():
            return 0.0
        cursor.execute(_WAIT, params)
        found = cursor.fetchone()
    return max(float(found[0]), 0.05) if found else 0.05


# A window begins with the first that is counted in it. `most` is what an empty one allows.
_ALLOW = f"""
WITH wanted AS (
  SELECT * FROM unnest(%(names)s::text[], %(counts)s::int[]) AS w (name, count)
), had AS (
  SELECT b.name, b.at, b.at > {clock.NOW} - make_interval(secs => %(seconds)s) AS runs, b.tokens
  FROM jobs_bucket b JOIN wanted USING (name) ORDER BY b.name FOR UPDATE OF b
), given AS (
  SELECT wanted.name, CASE WHEN had.runs THEN had.at ELSE {clock.NOW} END AS at,
         CASE WHEN had.runs THEN had.tokens ELSE %(most)s END AS left_over, count
  FROM wanted LEFT JOIN had USING (name)
), put AS (
  INSERT INTO jobs_bucket (name, tokens, at)
  SELECT name, left_over - least(count, left_over), at FROM given ORDER BY name
  ON CONFLICT (name) DO UPDATE SET tokens = excluded.tokens, at = excluded.at
)
SELECT name, least(count, left_over)::int FROM given
"""


def allow(wanted: Mapping[str, int], most: int, seconds: float) -> dict[str, int]:
    """Of so many for each name, return how many may be: `most` in a window of so many seconds.

    One statement for all names.
    """
    if not wanted:
        return {}
    params: dict[str, Any] = {
        "names": list(wanted), "counts": list(wanted.values()), "most": most, "seconds": seconds,
    }  # fmt: skip
    with connection.cursor() as cursor:
        cursor.execute(_ALLOW, params | clock.params())
        return dict(cursor.fetchall())
