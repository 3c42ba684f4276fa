"""Each second: rescue jobs, run schedules, wake queues with due work. Idle: three statements."""

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import structlog

from db import clock, connections
from db.query import query
from jobs.engine import wake
from jobs.engine.claim_sql import PRIORITIES
from jobs.maintenance import rescue, schedules

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

_NO_MESSAGE = f"""
q.retired_at IS NULL AND q.paused_at IS NULL
  AND (NOT q.awake OR q.awake_at IS NULL OR q.awake_at <
       {clock.NOW} - make_interval(secs => least({RESEND_SECONDS} * 2 ^ q.resends, 60)))
"""
_ASLEEP = f"SELECT q.name FROM jobs_queue q WHERE {_NO_MESSAGE} AND {_DUE}"

# The flag need not survive a crash. A row that another transaction has locked is not marked.
_WAKE_DUE = f"""
WITH quick AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true)),
asleep AS MATERIALIZED ({_ASLEEP}),
free AS (
  SELECT q.name FROM quick, asleep JOIN jobs_queue q USING (name) WHERE {_NO_MESSAGE}
  ORDER BY q.name FOR NO KEY UPDATE OF q SKIP LOCKED
),
marked AS (
  UPDATE jobs_queue q SET awake = true, awake_at = {clock.NOW},
    resends = CASE WHEN q.awake THEN least(q.resends + 1, 5) ELSE 0 END
  FROM free WHERE q.name = free.name RETURNING q.name
)
SELECT asleep.name, marked.name IS NOT NULL FROM asleep LEFT JOIN marked USING (name)
"""


def tick() -> int:
    """Rescue, run schedules, wake queues that are due; return the number of queues woken.

    Several ticks at once do no harm: each part is guarded by the rows it changes. A part that fails
    does not stop the others.
    """
    _step(rescue.rescue)
    _step(schedules.work_off)
    return len(_step(wake_due) or ())


def _step(work: Callable[[], Any]) -> Any:
    try:
        return work()
    except Exception:
        log.exception("tick.failed", step=work.__name__)
        connections.check_at_next_use()
        return None


def wake_due() -> list[str]:
    """Send a message for each queue that has due work and no message on its way, or one that was
    lost; return their names.

    Those whose rows someone keeps locked get one as well, though it cannot be noted. The messages
    are sent after the commit, so that no row is locked while the broker is slow. While earlier ones
    are still being sent, none is added.
    """
    if wake.is_sending():
        return []
    rows = query(_WAKE_DUE)
    names = [name for name, marked in rows if marked]
    if locked := {name for name, marked in rows if not marked}:
        time.sleep(sum(wake.LOCKED_PAUSES))  # a waker or a drain is done by then
        names += wake.unmarked(name for (name,) in query(_ASLEEP) if name in locked)
    connections.current().on_commit(partial(wake.deliver, names), robust=True)
    return names
