"""Each second: rescue jobs, run schedules, wake queues with due work. Idle: three statements."""

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import structlog

from tailrace.db import clock, connections
from tailrace.db.query import query
from tailrace.jobs.engine import wake
from tailrace.jobs.engine.activity import SLICE, newest, same
from tailrace.jobs.engine.claiming import bookmarks
from tailrace.jobs.engine.claiming.claim_sql import PRIORITIES
from tailrace.jobs.maintenance import rescue, schedules

log = structlog.get_logger(__name__)

RESEND_SECONDS = 2
"""An awake queue that no drain has begun on gets another message after this, then after twice as
long, up to a minute: lost messages are replaced, and a queue without workers is not flooded."""

# In the order of the index: without it, a planner that sees most jobs pending expects to meet a
# due one soon anywhere in the table, and walks it all for each queue that has none.
_DUE = f"""
EXISTS (SELECT 1 FROM (VALUES {PRIORITIES}) p (priority), LATERAL (
  SELECT 1 FROM tailrace_jobs_live WHERE handler = q.name AND state = 'pending'
    AND priority = p.priority AND due_at <= {clock.NOW}
    AND due_at >= {clock.NOW} - make_interval(secs => %(age)s)
  ORDER BY due_at, id LIMIT 1) due)
"""

_NO_MESSAGE = f"""
(a.awake IS NOT TRUE OR a.awake_at IS NULL OR a.awake_at <
  {clock.NOW} - make_interval(secs => least({RESEND_SECONDS} * 2 ^ a.resends, 60)))
"""
_ASLEEP = f"""
SELECT q.name, a.slice FROM tailrace_jobs_queue q LEFT JOIN LATERAL {newest("q.name")} a ON true
WHERE q.retired_at IS NULL AND q.paused_at IS NULL AND {_NO_MESSAGE} AND {_DUE}
"""

# The flag need not survive a crash. A row that another transaction has locked is not marked.
_WAKE_DUE = f"""
WITH quick AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true)),
asleep AS MATERIALIZED ({_ASLEEP}),
free AS (
  SELECT asleep.name, asleep.slice
  FROM quick, asleep JOIN tailrace_jobs_queueactivity a ON {same("a", "asleep")} WHERE {_NO_MESSAGE}
  ORDER BY a.name FOR NO KEY UPDATE OF a SKIP LOCKED
),
marked AS (
  UPDATE tailrace_jobs_queueactivity a SET awake = true, awake_at = {clock.NOW}, slice = {SLICE},
    resends = CASE WHEN a.awake THEN least(a.resends + 1, 5) ELSE 0 END
  FROM free WHERE {same("a", "free")} RETURNING a.name
)
SELECT asleep.name, marked.name IS NOT NULL FROM asleep LEFT JOIN marked USING (name)
"""

bookmark = bookmarks.Bookmark()
"""Up to when this process has looked at all that is due."""
RECENT_SECONDS = 10
"""What became due so long before the last look from the beginning, or later, is looked at by each
tick: messages for it may be lost."""


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
    age, began = bookmark.age(), time.monotonic()
    rows = query(_WAKE_DUE, age=age)
    full = age == bookmarks.BEGINNING
    bookmark.scanned(time.monotonic() - began, full=full)
    if full:
        bookmark.claimed(began - RECENT_SECONDS)
    names = [name for name, marked in rows if marked]
    if locked := {name for name, marked in rows if not marked}:
        time.sleep(sum(wake.LOCKED_PAUSES))  # a waker or a drain is done by then
        names += wake.unmarked(name for name, _slice in query(_ASLEEP, age=age) if name in locked)
    connections.current().on_commit(partial(wake.deliver, names), robust=True)
    return names
