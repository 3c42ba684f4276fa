"""Rate limits that all workers share: token buckets and windows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tailrace.db import clock
from tailrace.db.query import execute, query
from tailrace.db.sql.arrays import arrays
from tailrace.db.sql.token_bucket import tokens_at

SHORTEST_WAIT = 0.05


def take_token(name: str, rate: float, burst: float) -> float:
    """Take one token from the bucket `name`; return 0, or the seconds until there may be a token.

    A bucket holds up to `burst` tokens (at least 1) and gets `rate` tokens per second.
    """
    [taken] = take_from_all([Bucket(name, rate, max(burst, 1.0))])
    return taken.wait


_NOW_IN_IT = tokens_at(clock.NOW, tokens="tokens", filled_at="at", capacity="%(burst)s")
# The row is locked before its tokens are counted, so that each of several takers counts correctly.
_RESERVE = f"""
WITH bucket AS (
  SELECT name, {_NOW_IN_IT} AS tokens FROM tailrace_jobs_bucket WHERE name = %(name)s FOR UPDATE
), taken AS (
  UPDATE tailrace_jobs_bucket b
  SET tokens = bucket.tokens - least(%(wanted)s, floor(bucket.tokens + %(ahead)s)),
      at = greatest(b.at, {clock.NOW})
  FROM bucket WHERE b.name = bucket.name AND bucket.tokens + %(ahead)s >= 1
)
SELECT tokens FROM bucket
"""
_FILL = f"""
INSERT INTO tailrace_jobs_bucket (name, tokens, at) VALUES (%(name)s, %(burst)s, {clock.NOW})
ON CONFLICT (name) DO NOTHING
"""


def reserve_tokens(
    name: str, rate: float, burst: float, ahead: float, wanted: int
) -> tuple[list[float], float]:
    """Take up to `wanted` tokens from the bucket, including those of the next `ahead` seconds, so
    that a caller that comes a little late loses none. Return the seconds until each token may be
    used, and the seconds until the token after them."""
    values = {"name": name, "burst": max(burst, 1.0), "rate": rate}
    values |= {"ahead": ahead * rate, "wanted": wanted}
    if not (rows := query(_RESERVE, **values)):
        execute(_FILL, name=name, burst=values["burst"])
        rows = query(_RESERVE, **values)
    tokens = float(rows[0][0])
    taken = max(min(wanted, int(tokens + ahead * rate)), 0)
    *waits, after = (max(number - tokens, 0.0) / rate for number in range(1, taken + 2))
    return waits, after


_PAUSE = f"""
INSERT INTO tailrace_jobs_bucket AS b (name, tokens, at) VALUES (%(name)s, %(tokens)s, {clock.NOW})
ON CONFLICT (name) DO UPDATE SET
  tokens = least({tokens_at(clock.NOW, tokens="b.tokens", filled_at="b.at", capacity="1")},
                 excluded.tokens),
  at = greatest(b.at, excluded.at)
RETURNING tokens
"""


def pause(name: str, rate: float, seconds: float) -> None:
    """Block the bucket for `seconds`, as its destination requested (Retry-After), by making its
    number of tokens negative."""
    query(_PAUSE, name=name, rate=rate, tokens=1 - rate * seconds)


_RUNS = "b.at > excluded.at - make_interval(secs => %(seconds)s)"
# A window begins with its first item. One statement locks the rows in the order of their names.
# `tokens` is what is left of the limit; it becomes negative by the number of excess items. So the
# number of items within the limit can be computed from RETURNING, which has only the new row.
_TAKE_FROM_WINDOW = f"""
WITH wanted AS (
  SELECT * FROM unnest(%(names)s::text[], %(counts)s::int[]) AS w (name, count)
), taken AS (
  INSERT INTO tailrace_jobs_bucket AS b (name, tokens, at)
  SELECT name, %(limit)s - count, {clock.NOW} FROM wanted ORDER BY name
  ON CONFLICT (name) DO UPDATE SET
    tokens = CASE WHEN {_RUNS} THEN least(greatest(b.tokens, 0), %(limit)s) ELSE %(limit)s END
      - (%(limit)s - excluded.tokens),
    at = CASE WHEN {_RUNS} THEN b.at ELSE excluded.at END
  RETURNING name, tokens
)
SELECT name, greatest(0, least(count, count + taken.tokens))::int
FROM wanted JOIN taken USING (name)
"""


def take_from_window(counts: Mapping[str, int], limit: int, seconds: float) -> dict[str, int]:
    """Count items by name; return how many of each name are within `limit` per `seconds`."""
    if not counts:
        return {}
    names, numbers = list(counts), list(counts.values())
    return dict(query(_TAKE_FROM_WINDOW, names=names, counts=numbers, limit=limit, seconds=seconds))


@dataclass(frozen=True, slots=True)
class Bucket:
    """A token bucket, and the number of tokens to take from it."""

    name: str
    rate: float
    """Tokens per second."""
    burst: float
    """Maximum number of tokens in the bucket."""
    cost: float = 1.0
    """Tokens to take, at most `burst`."""


@dataclass(frozen=True, slots=True)
class Taken:
    """The tokens that are left in a bucket, or the seconds until it may have enough."""

    bucket: Bucket
    left: float
    wait: float = 0.0


_OF_WANTED = tokens_at(
    "excluded.at", tokens="b.tokens", filled_at="b.at", capacity="w.burst", rate="w.rate"
)
_LEFT = tokens_at(clock.NOW, tokens="b.tokens", filled_at="b.at", capacity="w.burst", rate="w.rate")
# One statement that locks the rows in the order of their names: two workers never take the same
# token.
_TAKE_FROM_ALL = f"""
WITH wanted AS (
  SELECT name, least(cost, burst) AS cost, rate, burst
  FROM unnest(%(name)s::text[], %(cost)s::float8[], %(rate)s::float8[], %(burst)s::float8[])
    AS w (name, cost, rate, burst)
), taken AS (
  INSERT INTO tailrace_jobs_bucket AS b (name, tokens, at)
  SELECT name, burst - cost, {clock.NOW} FROM wanted ORDER BY name
  ON CONFLICT (name) DO UPDATE SET
    tokens = (SELECT {_OF_WANTED} - w.cost FROM wanted w WHERE w.name = b.name),
    at = greatest(b.at, excluded.at)
  WHERE (SELECT {_OF_WANTED} >= w.cost FROM wanted w WHERE w.name = b.name)
  RETURNING name, tokens
)
SELECT name, taken.tokens, (w.cost - {_LEFT}) / w.rate
FROM wanted w LEFT JOIN taken USING (name) LEFT JOIN tailrace_jobs_bucket b USING (name)
"""


def take_from_all(buckets: Sequence[Bucket]) -> list[Taken]:
    """Take its cost from each bucket that has enough tokens, in one statement; return a result for
    each bucket, in their order."""
    numbers = ("cost", "rate", "burst")
    rows = query(_TAKE_FROM_ALL, **arrays(buckets, ("name", *numbers), numbers))
    left_and_wait = {
        name: (0.0, max(wait or 0.0, SHORTEST_WAIT)) if left is None else (left, 0.0)
        for name, left, wait in rows
    }
    return [Taken(bucket, *left_and_wait[bucket.name]) for bucket in buckets]
