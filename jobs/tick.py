"""tick: each second, find what is due and not served. With nothing to do: three statements."""

import structlog
from django.db import connection

from events import clock
from jobs import rescue, schedules, wake
from jobs.claim_sql import PRIORITIES

log = structlog.get_logger(__name__)

RESEND_SECONDS = 2
"""An awake queue that no drain has begun on gets another message after this, then after twice as
long, up to a minute: lost messages are replaced, and a queue without workers is not flooded."""

# In the order of the index: without it, a planner that sees most jobs pending expects to meet a
# due one soon anywhere in the table, and walks it all for each queue that has none.
_DUE = f"""
EXISTS (SELECT 1 FROM (VALUES {PRIORITIES}) p (priority), LATERAL (
  SELECT 1 FROM jobs_job WHERE handler = q.name AND state = 'pending'
    AND priority = p.priority AND due_at <= {clock.NOW} ORDER BY due_at, id LIMIT 1) due)
"""

_ASLEEP = f"""
SELECT q.name FROM jobs_queue q
WHERE q.retired_at IS NULL AND q.paused_at IS NULL
  AND (NOT q.awake OR q.awake_at IS NULL OR q.awake_at <
       {clock.NOW} - make_interval(secs => least({RESEND_SECONDS} * 2 ^ q.resends, 60)))
  AND {_DUE}
"""

# The pulse tells /healthz that beat is alive. Neither it nor the flag need survive a crash.
_WAKE_DUE = f"""
WITH quick AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true)),
pulse AS (
  INSERT INTO jobs_pulse (name, at, queues) SELECT 'tick', {clock.NOW}, '[]' FROM quick
  ON CONFLICT (name) DO UPDATE SET at = excluded.at
),
asleep AS ({_ASLEEP} ORDER BY q.name FOR NO KEY UPDATE OF q)
UPDATE jobs_queue q SET awake = true, awake_at = {clock.NOW},
  resends = CASE WHEN q.awake THEN least(q.resends + 1, 5) ELSE 0 END
FROM asleep WHERE q.name = asleep.name RETURNING q.name
"""


def tick() -> int:
    """Rescue, run schedules, wake queues that are due; return the number of queues woken.

    Several ticks at once do no harm: each part is guarded by the rows it changes.
    """
    for step in (rescue.rescue, schedules.run_due):
        try:
            step()
        except Exception:
            # Whatever it is, the queues that are due are still to be served.
            log.exception("tick.failed", step=step.__name__)
    return len(wake_due())


def asleep() -> list[str]:
    """Return the queues with due work that nobody was told of, or whose message was lost."""
    with connection.cursor() as cursor:
        cursor.execute(_ASLEEP, clock.params())
        return [row[0] for row in cursor.fetchall()]


def wake_due() -> list[str]:
    """Send a message for each queue that `asleep` names; return their names."""
    with connection.cursor() as cursor:
        cursor.execute(_WAKE_DUE, clock.params())
        names = [row[0] for row in cursor.fetchall()]
    wake.send(names)
    return names
