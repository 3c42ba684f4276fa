"""Whether a claim takes a pending job now, by the conditions of the claim itself (claim_sql).

*In the next claim*: a claim now, with the handler's batch size, takes this job. *Ready*: a claim
now would take it if its batch had no limit, and no other job had to be claimed alone. In a queue
with lanes both may depend on the lane that the claiming worker served last: then they are TURN.
"""

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from django.db import connection

from events import clock
from jobs import claim_sql as sql
from jobs import registry
from jobs.explain_words import Reason, counted, named, when
from jobs.handler import Handler
from jobs.models import Job, Queue

BOUND = 1000
"""Jobs that are counted or chosen at most."""
NAMED = 5
"""Jobs that a reason names at most."""


class Answer(StrEnum):
    YES = "yes"
    TURN = "turn"
    """By the lane that the claiming worker served last."""
    NO = "no"


@dataclass(slots=True)
class Standing:
    """How a pending job stands before a claim."""

    ready: Answer = Answer.NO
    next_claim: Answer = Answer.NO
    before: int = 0
    """Jobs that are claimed before it: of its queue, or of its lane if the queue has lanes."""
    reasons: list[Reason] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Room:
    """How many jobs the queue's limits let a claim take now."""

    jobs: int
    reason: Reason


_CONDITIONS = f"""
SELECT {sql.PENDING}, {sql.DUE}, {sql.IN_LANE}, {sql.OPEN}
FROM jobs_job LEFT JOIN jobs_queue q ON q.name = handler WHERE id = %(id)s
"""


def standing(job: Job, queue: Queue | None) -> Standing:
    """Say how this job stands before a claim; it reads a bounded number of rows."""
    handler = registry.find(job.handler)
    if handler is None:
        return Standing(reasons=[_unknown(job, queue)])
    if queue is None:
        words = f"There is no queue {job.handler}: `manage.py migrate` makes it."
        return Standing(reasons=[Reason("no_queue", words)])
    rows = _rows(_CONDITIONS, id=job.pk)
    pending, due, in_lane, is_open = rows[0] if rows else (False,) * 4
    if not pending:
        return Standing(reasons=[Reason("not_pending", f"The job is {job.state}.")])
    found = Standing()
    if not is_open:
        found.reasons.append(_paused(queue))
    if not due:
        found.reasons.append(_not_due(job))
    if handler.in_lanes() and not in_lane:
        words = (
            f"{job.handler} takes its jobs lane by lane, and this one has no lane: it was made "
            "by code whose handler had none. `manage.py fsck --fix` gives it one."
        )
        found.reasons.append(Reason("no_lane", words))
    elif handler.ordered:
        found.reasons += _order(job)
    rooms = _rooms(handler, queue)
    found.reasons += [room.reason for room in rooms if room.jobs <= 0]
    found.before = _before(job, handler) if due else 0
    if not found.reasons:
        _reach(job, handler, rooms, found)
    return found


def _unknown(job: Job, queue: Queue | None) -> Reason:
    if queue is not None and queue.retired_at is None:
        then = "Other code has one, which migrated last: its workers take the job."
    else:
        then = "Deploy one of that name; else the sweeper moves the job to failed."
    return Reason("unknown_handler", f"No handler is called {job.handler} in this code. {then}")


def _paused(queue: Queue) -> Reason:
    by = f" by {queue.paused_by}" if queue.paused_by else ""
    words = f"The queue {queue.name} is paused{by} since {when(queue.paused_at)}."
    return Reason("paused", words)


def _not_due(job: Job) -> Reason:
    why = f" Its last try ended with: {job.error}" if job.error and job.claim_no else ""
    return Reason("not_due", f"It is not due until {when(job.due_at)}.{why}")


# --- lanes ----------------------------------------------------------------------------------------

_THIS_LANE = "(SELECT %(lane)s::text AS lane) lanes"
_BUSY = f"""
SELECT job.* FROM {_THIS_LANE}, LATERAL (
  SELECT id, worker, lease_until FROM jobs_job WHERE {sql.LANE_BUSY} LIMIT 1) job
"""
_HEAD = f"""
SELECT head.* FROM {_THIS_LANE}, LATERAL (
  SELECT id, due_at, {sql.DUE} FROM jobs_job WHERE {sql.LANE_HEAD}) head
"""


def _order(job: Job) -> list[Reason]:
    """What of its own lane stands before a job of an ordered queue."""
    reasons = []
    for id, worker, lease_until in _rows(_BUSY, handler=job.handler, lane=job.lane):
        words = (
            f"Its lane {job.lane} runs one job at a time, and job {id} is running, on {worker}, "
            f"lease until {when(lease_until)}."
        )
        reasons.append(Reason("lane_busy", words, (id,)))
    for id, due_at, due in _rows(_HEAD, handler=job.handler, lane=job.lane):
        if id != job.pk:
            later = "" if due else f", which is not due until {when(due_at)}"
            words = f"Its lane {job.lane} keeps its order: the head of the lane is job {id}{later}."
            reasons.append(Reason("lane_order", words, (id,)))
    return reasons


# --- limits of the queue --------------------------------------------------------------------------

_RUNNING = f"""
SELECT count(*), (array_agg(id ORDER BY started_at, id))[1:{NAMED}] FROM jobs_job
WHERE {sql.RUNNING}
"""
_TOKENS = f"SELECT {sql.TOKENS} FROM jobs_queue WHERE name = %(handler)s"


def _rooms(handler: Handler, queue: Queue) -> list[_Room]:
    """Return the room that each limit of the queue leaves; the tighter one counts."""
    rooms = []
    if most := queue.max_running or handler.max_running:
        running, ids = _rows(_RUNNING, handler=handler.name)[0]
        which = named(ids, running) if running else "none"
        words = f"{handler.name} runs at most {most} at once; running: {which}."
        rooms.append(_Room(most - running, Reason("max_running", words, tuple(ids or ()))))
    if (rate := queue.rate_limit) is not None:
        tokens = float(_rows(_TOKENS, handler=handler.name, rate=rate)[0][0])
        words = f"The rate limit of {handler.name} is {rate:g} jobs a second"
        words += "." if tokens >= 1 else f"; the next may begin in {(1 - tokens) / rate:.1f} s."
        rooms.append(_Room(int(tokens // 1), Reason("rate_limit", words)))
    return rooms


# --- the reach of claims --------------------------------------------------------------------------

_LANE_BEFORE = f"""
SELECT lane FROM jobs_job WHERE handler = %(handler)s AND {sql.PENDING} AND {sql.IN_LANE}
  AND lane < %(lane)s ORDER BY lane DESC LIMIT 1
"""


@dataclass(slots=True)
class _Choices:
    """What a claim would choose: plain queues have one answer, lanes an earliest and a latest."""

    ids: list[set[int]]
    taken: list[set[int]]
    isolated: list[int]


def _reach(job: Job, handler: Handler, rooms: list[_Room], found: Standing) -> None:
    """All conditions hold; say whether claims reach as far as this job."""
    tightest = min(rooms, key=lambda room: room.jobs, default=None)
    room = BOUND if tightest is None else min(tightest.jobs, BOUND)
    if tightest is None or room >= BOUND:
        found.ready = Answer.YES
    else:
        found.ready = _answer(job, _choose(job, handler, room).ids)
    if found.ready is Answer.NO and tightest is not None:
        words = f"{tightest.reason.words} That leaves room for {room}, and others stand before it."
        found.reasons.append(Reason(tightest.reason.code, words, tightest.reason.jobs))
        return
    choices = _choose(job, handler, min(handler.batch_size, room))
    found.next_claim = _answer(job, choices.taken)
    isolated = [id for id in choices.isolated if id != job.pk]
    if isolated and found.next_claim is not Answer.YES:
        words = (
            f"Job {isolated[0]} lost its worker once: it is claimed alone, and before the others "
            "of its batch."
        )
        found.reasons.append(Reason("isolated", words, (isolated[0],)))
        if handler.in_lanes() and _answer(job, choices.ids) is not Answer.NO:
            found.next_claim = Answer.TURN


def _answer(job: Job, choices: list[set[int]]) -> Answer:
    inside = [job.pk in chosen for chosen in choices]
    return Answer.YES if all(inside) else Answer.TURN if any(inside) else Answer.NO


def _choose(job: Job, handler: Handler, limit: int) -> _Choices:
    """Read what a claim of `limit` would take.

    A round of lanes goes on behind the lane that the worker served last. The job's own lane comes
    first in it if that was the lane before, and last if it was the lane itself: what both take is
    taken from wherever the worker stands, and what neither takes is taken from nowhere.
    """
    statement, starts = sql.PREVIEW_PLAIN, [""]
    if handler.in_lanes():
        statement = sql.PREVIEW_ORDERED if handler.ordered else sql.PREVIEW_FAIR
        before = _rows(_LANE_BEFORE, handler=handler.name, lane=job.lane)
        starts = [before[0][0] if before else "", job.lane]
    choices = _Choices([], [], [])
    for start in starts:
        rows = _rows(statement, handler=handler.name, limit=limit, last_lane=start)
        choices.ids.append({id for id, _isolate, _taken in rows})
        choices.taken.append({id for id, _isolate, taken in rows if taken})
        choices.isolated += [id for id, isolate, _taken in rows if isolate]
    return choices


# --- what stands before it ------------------------------------------------------------------------


def _earlier(lane: str) -> str:
    """Count what is claimed before a job; an index range each for the priorities before its own,
    and one for its own. In the order of the index, else a planner may walk the table."""
    mine = f"handler = %(handler)s AND {sql.PENDING} AND {lane}{sql.DUE}"
    return f"""
SELECT count(*) FROM (
  SELECT 1 FROM (
    SELECT 1 FROM (VALUES {sql.PRIORITIES}) p (priority), LATERAL (
      SELECT 1 FROM jobs_job WHERE {mine} AND priority = p.priority
      ORDER BY due_at, id LIMIT {BOUND}) due
    WHERE p.priority < %(priority)s
  ) urgent
  UNION ALL
  (SELECT 1 FROM jobs_job WHERE {mine} AND priority = %(priority)s
     AND (due_at, id) < (%(due_at)s, %(id)s) ORDER BY due_at, id LIMIT {BOUND})
  LIMIT {BOUND}
) earlier"""


_BEFORE_PLAIN = _earlier("")
_BEFORE_FAIR = _earlier(f"lane = %(lane)s AND {sql.IN_LANE} AND ")
_BEFORE_ORDERED = f"""
SELECT count(*) FROM (SELECT 1 FROM jobs_job WHERE handler = %(handler)s AND {sql.PENDING}
  AND lane = %(lane)s AND {sql.IN_LANE} AND id < %(id)s
  ORDER BY id LIMIT {BOUND}) earlier"""


def _before(job: Job, handler: Handler) -> int:
    statement = (
        _BEFORE_ORDERED if handler.ordered else _BEFORE_FAIR if handler.fair else _BEFORE_PLAIN
    )
    due_at: datetime = job.due_at
    rows = _rows(
        statement, handler=job.handler, lane=job.lane, id=job.pk, priority=job.priority,
        due_at=due_at,
    )  # fmt: skip
    return int(rows[0][0])


def before_words(found: Standing, handler: Handler) -> str:
    """Say how many jobs are claimed before it."""
    place = " of its lane" if handler.in_lanes() else ""
    verb = "stands" if found.before <= 1 else "stand"
    return f"{counted(found.before, BOUND)}{place} {verb} before it"


def _rows(statement: str, **params: Any) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(statement, clock.params() | params)
        return cursor.fetchall()
