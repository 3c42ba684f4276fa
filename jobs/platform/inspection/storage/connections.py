"""The connections of the database: how many are used of how many, and who holds them."""

from dataclasses import dataclass

from tailrace.db.query import query

MAX_HOLDERS = 5

# Sessions of other roles have no backend_type for a role that is not a member of pg_read_all_stats.
# The limits of the database and of our role count if they are lower than that of the server.
USED = """
WITH session AS MATERIALIZED (
  SELECT usesysid, usename, datname, application_name,
    coalesce(application_name ~ '^tailrace( |$)', false) AS ours
  FROM pg_stat_activity
  WHERE usesysid IS NOT NULL AND coalesce(backend_type, 'client backend') = 'client backend'
),
counted AS (
  SELECT 'the server' AS limited_by, count(*) AS used,
    count(*) FILTER (WHERE ours) AS ours, current_setting('max_connections')::int
      - current_setting('superuser_reserved_connections')::int
      - coalesce(current_setting('reserved_connections', true), '0')::int AS possible
  FROM session
  UNION ALL
  SELECT 'this database', count(*), count(*) FILTER (WHERE ours), (
    SELECT datconnlimit FROM pg_database WHERE datname = current_database())
  FROM session WHERE datname = current_database()
  UNION ALL
  SELECT 'our role', count(*), count(*) FILTER (WHERE ours), (
    SELECT rolconnlimit FROM pg_roles WHERE rolname = current_user)
  FROM session WHERE usename = current_user
),
tightest AS (
  SELECT * FROM counted WHERE possible >= 0 ORDER BY possible - used, possible LIMIT 1
),
holder AS (
  SELECT ours, coalesce(nullif(application_name, ''), 'a client without a name')
    || ' of ' || usename AS name, count(*) AS sessions
  FROM session GROUP BY 1, 2 ORDER BY 3 DESC LIMIT %(holders)s
)
SELECT limited_by, used, ours, possible, (
  SELECT array_agg(sessions || ' × ' || name ORDER BY sessions DESC, name) FROM holder)
FROM tightest
"""
"""SQL: the fields of Connections, in one row. The parameter `holders` is MAX_HOLDERS."""
_REFUSALS = (
    "too many clients already", "remaining connection slots are reserved",
    "too many connections for", "no more connections allowed",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Connections:
    """The connections that the tightest limit counts."""

    limited_by: str
    used: int
    ours: int
    possible: int
    holders: tuple[str, ...] = ()
    """The clients with the most sessions of the server: `60 × psql of bob`."""

    @property
    def others(self) -> int:
        return self.used - self.ours


def connections() -> Connections:
    """Return the figures of the limit that leaves the fewest connections: of the server, of the
    database or of our role. Ours are the sessions with the application name `tailrace`."""
    [(limited_by, used, ours, possible, holders)] = query(USED, holders=MAX_HOLDERS)
    return Connections(limited_by, used, ours, possible, tuple(holders or ()))


def are_taken(error: BaseException) -> bool:
    """Whether the error says that the server refuses a connection because all are taken."""
    return any(words in str(error) for words in _REFUSALS)
