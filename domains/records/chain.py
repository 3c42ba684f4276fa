"""The chain of events that a deposition set off, with the jobs of each event."""

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from django.contrib.auth.models import User

from db.query import query
from domains.records.depositions.events import event_id
from domains.records.event_types import SOURCE, DepositionSubmitted
from events.models import Event
from events.visibility import hidden_from
from jobs.models import Job
from jobs.states import LIVE

MAX_EVENTS = 60
"""Events that a page shows of one chain."""
MAX_JOBS = 200
MAX_DEPTH = 10

# Depth 0 is what caused the first event: the request to read a source.
_EVENTS = """
WITH RECURSIVE chain (id, depth) AS (
  SELECT id, 1 FROM events_event WHERE source = %(source)s AND source_id = %(first)s
  UNION ALL
  SELECT e.id, chain.depth + 1 FROM chain, LATERAL (
    SELECT id FROM events_event WHERE cause_id = chain.id ORDER BY id LIMIT %(limit)s) e
  WHERE chain.depth < %(depth)s
)
SELECT cause_id, 0 FROM events_event
WHERE source = %(source)s AND source_id = %(first)s AND cause_id IS NOT NULL
UNION ALL (SELECT id, depth FROM chain ORDER BY depth, id LIMIT %(limit)s)
"""


@dataclass(slots=True)
class Node:
    """An event and its jobs."""

    event: Event
    title: str
    jobs: list[Job] = field(default_factory=list)


def chain_of(deposition: int, user: User) -> list[list[Node]]:
    """Return the events step by step: those of a step were caused by events of the step before.

    Events that the user may not read are left out; jobs that other apps have because of them, such
    as messages to subscribers, are for operators.
    """
    depth_of = dict(
        query(
            _EVENTS,
            source=SOURCE,
            first=event_id(DepositionSubmitted, deposition),
            limit=MAX_EVENTS,
            depth=MAX_DEPTH,
        )
    )
    shown = depth_of.keys() - hidden_from(user, depth_of)
    events = Event.objects.filter(pk__in=shown).defer("payload").order_by("pk")
    jobs = _jobs_of(shown, own_only=not user.has_perm("jobs.view_job"))
    steps: dict[int, list[Node]] = defaultdict(list)
    for event in events:
        title = event.type.rpartition(".")[2].replace("_", " ")
        steps[depth_of[event.pk]].append(Node(event, title, jobs[event.pk]))
    return [steps[depth] for depth in sorted(steps)]


def is_under_way(steps: Sequence[Sequence[Node]]) -> bool:
    """Return whether a job of the chain is not finished."""
    return any(job.state in LIVE for nodes in steps for node in nodes for job in node.jobs)


def _jobs_of(events: Collection[int], *, own_only: bool) -> dict[int, list[Job]]:
    jobs: dict[int, list[Job]] = defaultdict(list)
    rows = Job.objects.filter(event__in=events).defer("payload", "result").order_by("pk")
    if own_only:
        rows = rows.filter(handler__startswith="records.")
    for job in rows[:MAX_JOBS]:
        jobs[job.event_id or 0].append(job)
    return jobs
