"""Store digests of the entries that were read of a log, to recognize the log later."""

from collections.abc import Sequence

from tailrace.db.query import execute, query
from tailrace.domains.builds.sources.log_page import DIGEST_BYTES, Notification

KEPT_ENTRIES = 500_000
"""Approximate number of entries whose digests are kept. If a log was cut by more entries, it counts
as a new log."""

_AT_OR_BELOW = """
SELECT first, digests FROM tailrace_builds_logpart
WHERE poller_id = %(poller)s AND first <= %(number)s ORDER BY first DESC LIMIT 1
"""
_ADD = """
WITH pruned AS (DELETE FROM tailrace_builds_logpart WHERE poller_id = %(poller)s
  AND first < %(below)s)
INSERT INTO tailrace_builds_logpart (poller_id, first, digests)
VALUES (%(poller)s, %(first)s, %(digests)s)
"""
_FORGET = "DELETE FROM tailrace_builds_logpart WHERE poller_id = %(poller)s AND first >= %(first)s"
_CUT = f"""
UPDATE tailrace_builds_logpart
SET digests = substr(digests, 1, (%(first)s - first)::int * {DIGEST_BYTES})
WHERE poller_id = %(poller)s AND first < %(first)s
  AND first + length(digests) / {DIGEST_BYTES} > %(first)s
"""


def nearest(poller: int, number: int) -> tuple[int, bytes] | None:
    """Return number and digest of the last entry up to `number` with a stored digest, or None."""
    rows = query(_AT_OR_BELOW, poller=poller, number=number)
    if not rows:
        return None
    first, digests = rows[0][0], bytes(rows[0][1])
    last = min(number, first + len(digests) // DIGEST_BYTES - 1)
    offset = (last - first) * DIGEST_BYTES
    return last, digests[offset : offset + DIGEST_BYTES]


def digest(poller: int, number: int) -> bytes | None:
    """Return the stored digest of an entry, or None."""
    known = nearest(poller, number)
    return known[1] if known and known[0] == number else None


def add(poller: int, entries: Sequence[Notification]) -> None:
    """Store the digests of entries with consecutive numbers, in the caller's transaction. Delete
    digests that are more than KEPT_ENTRIES older."""
    if entries:
        first, digests = entries[0].number, b"".join(entry.digest for entry in entries)
        execute(_ADD, poller=poller, first=first, digests=digests, below=first - KEPT_ENTRIES)


def forget(poller: int, first: int) -> None:
    """Delete the digests from number `first` on, in the caller's transaction."""
    execute(_FORGET, poller=poller, first=first)
    execute(_CUT, poller=poller, first=first)
