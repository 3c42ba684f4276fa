"""The oldest snapshot: rows that were deleted or changed since then cannot be vacuumed."""

from dataclasses import dataclass
from datetime import datetime

from tailrace.db import clock
from tailrace.db.query import query

# Vacuum itself keeps no dead rows. Sessions of other databases keep only rows of shared catalogs.
# Sessions that the role may not see have NULL columns and are skipped.
_OLDEST = f"""
SELECT kind, name, pid, since, extract(epoch FROM {clock.NOW} - since)::float8, age, began, query
FROM (
  SELECT 'session' AS kind, application_name AS name, pid,
    coalesce(xact_start, backend_start) AS since,
    greatest(age(backend_xmin), age(backend_xid)) AS age, backend_start AS began, query
  FROM pg_stat_activity
  WHERE (datname = current_database() OR datname IS NULL) AND pid <> pg_backend_pid()
    AND pid NOT IN (SELECT pid FROM pg_stat_progress_vacuum)
  UNION ALL
  SELECT 'prepared transaction', gid, NULL, prepared, age(transaction), NULL, NULL
  FROM pg_prepared_xacts WHERE database = current_database()
  UNION ALL
  SELECT 'replication slot', slot_name, active_pid, NULL, age(xmin), NULL, NULL
  FROM pg_replication_slots
) holder WHERE age IS NOT NULL ORDER BY age DESC, since LIMIT 1
"""


@dataclass(frozen=True, slots=True)
class Snapshot:
    kind: str
    """A session, a prepared transaction or a replication slot."""
    name: str
    """The application name of the session, or the name of the transaction or of the slot."""
    pid: int | None
    since: datetime | None
    seconds: float | None
    transactions: int
    """The number of writing transactions that began since then."""
    began: datetime | None = None
    """When the session began."""
    query: str | None = None
    """The statement of the session: the running or the last one. It may quote data."""

    @property
    def session(self) -> str:
        """The process of the session and when it began, as text; empty if it is no session. The
        system may give the number of an ended process to another session."""
        return f"{self.pid} {self.began.isoformat()}" if self.pid and self.began else ""

    @property
    def holder(self) -> str:
        """The holder as text: `session psql (process 42)`."""
        process = f" (process {self.pid})" if self.pid else ""
        return f"{self.kind} {self.name or 'without a name'}{process}"


_END = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE pid = %(pid)s AND backend_start = %(began)s AND datname = current_database()
"""


def end_session(snapshot: Snapshot) -> bool:
    """End the session that holds this snapshot; its transaction is rolled back. Return False if it
    has ended already. Raises ProgrammingError if our role may not end it."""
    rows = query(_END, pid=snapshot.pid, began=snapshot.began)
    return bool(rows and rows[0][0])


def oldest_snapshot() -> Snapshot | None:
    """Return the oldest snapshot that keeps dead rows of this database; None if there is none.

    To see sessions of other roles, the role of DATABASE_URL must be a member of pg_read_all_stats.
    """
    rows = query(_OLDEST)
    return Snapshot(*rows[0]) if rows else None
