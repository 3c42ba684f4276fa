"""Each second: rescue jobs, run schedules, end pauses and wake queues with due jobs. Idle: three
statements."""

import time
from collections.abc import Callable
from typing import Any

import structlog
from django.db import InterfaceError, OperationalError

from tailrace.db import clock, connections
from tailrace.db.query import query
from tailrace.db.sql.plans import probe
from tailrace.jobs.engine.claiming import bookmarks
from tailrace.jobs.engine.claiming.claim_sql import PRIORITIES
from tailrace.jobs.engine.maintenance.ticking import rescue, schedules
from tailrace.jobs.engine.waking import wake
from tailrace.jobs.engine.waking.activity import SLICE, newest, same

log = structlog.get_logger(__name__)

RESEND_SECONDS = 2
"""If no drain begins on an awake queue, another message is sent after this time, then after twice
as long, up to a minute. So lost messages are replaced, and a queue without workers is not flooded.
"""

# ORDER BY matches the index: otherwise, if most jobs are pending, the planner expects to find a due
# job soon in any order, and reads the whole table for each queue without due jobs.
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

# A pause whose time is over ends in the same statement, and the next tick wakes its queue.
#
# The flag need not survive a crash. Rows that another transaction has locked are not marked.
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
),
over AS (
  SELECT name FROM tailrace_jobs_queue WHERE paused_until <= {clock.NOW}
  ORDER BY name FOR NO KEY UPDATE SKIP LOCKED
),
resumed AS (
  UPDATE tailrace_jobs_queue q
  SET paused_at = NULL, paused_by = '', paused_reason = '', paused_until = NULL
  FROM over WHERE {probe("q.name", "over.name")} RETURNING q.name
)
SELECT asleep.name, marked.name IS NOT NULL FROM asleep LEFT JOIN marked USING (name)
UNION ALL SELECT name, NULL FROM resumed
"""

bookmark = bookmarks.Bookmark()
"""Up to which due time this process has checked all jobs."""
RECENT_SECONDS = 10
"""Each tick checks jobs that became due up to this long before the last full check, or later: their
messages may be lost."""


def tick() -> int:
    """Rescue jobs, run schedules, end pauses and wake queues with due jobs; return the number of
    woken queues. Several processes may tick at once. If a step fails, the others still run. Raises
    the first error that is not one of the connection or of a timeout: those go by, and are logged.
    """
    errors: list[Exception] = []
    _step(rescue.rescue, errors)
    _step(schedules.work_off, errors)
    woken = len(_step(wake_due, errors) or ())
    if errors:
        raise errors[0]
    return woken


def _step(work: Callable[[], Any], errors: list[Exception]) -> Any:
    try:
        return work()
    except Exception as error:
        log.exception("tick.failed", step=work.__name__)
        connections.check_at_next_use()
        if not isinstance(error, OperationalError | InterfaceError):
            errors.append(error)
        return None


def wake_due() -> list[str]:
    """Send a wake-up for each queue with due jobs whose last message was lost, or that has none;
    return the names of these queues. Queues whose rows are locked get one, too. Also end the pauses
    whose time is over.

    Messages are sent after the commit, so that no row is locked while the broker is slow.
    """
    if wake.sender.is_busy():
        return []
    age, began = bookmark.age(), time.monotonic()
    rows = query(_WAKE_DUE, age=age)
    full = age == bookmarks.BEGINNING
    bookmark.scanned(time.monotonic() - began, full=full)
    if full:
        bookmark.claimed(began - RECENT_SECONDS)
    names = [name for name, marked in rows if marked]
    if resumed := [name for name, marked in rows if marked is None]:
        log.info("queues.pause_ended", queues=resumed)
    if locked := {name for name, marked in rows if marked is False}:
        time.sleep(sum(wake.LOCKED_PAUSES))  # a waker or a drain is done by then
        names += wake.unmarked(name for name, _slice in query(_ASLEEP, age=age) if name in locked)
    connections.on_commit(wake.deliver, names)
    return names
