"""Jobs that pass an event on: they wait until its readers are known, and skip a hidden event."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import datetime

from tailrace.db import clock
from tailrace.events.publish import Recorded
from tailrace.events.readers import Readers
from tailrace.events.types import EventType
from tailrace.events.visibility import readers_of
from tailrace.jobs.handler import ClaimedJob

LONGEST_WAIT = 3600.0
"""Seconds after its recording that an event's jobs wait for its readers, at most."""
SHORTEST_PAUSE, LONGEST_PAUSE = 3.0, 120.0
HIDDEN = "the event is hidden: not everybody may read it"
NOT_KNOWN = "it is not known yet who may read the event"


def readers_of_jobs(jobs: Sequence[ClaimedJob]) -> dict[int, Readers]:
    """Return who alone may read the events of these jobs, by the event's id.

    Those whose readers will be known later are requested, and their jobs are snoozed: such a job
    has an outcome afterwards.
    """
    events = {job.event.id: job.event for job in jobs if job.event is not None}
    restricted = readers_of(events.values())
    undecided = {id for id, readers in restricted.items() if readers.undecided}
    if waiting := wait_for(jobs, undecided, NOT_KNOWN):
        request_readers(events[id] for id in waiting)
    return restricted


def wait_for(jobs: Iterable[ClaimedJob], ids: Collection[int], reason: str) -> set[int]:
    """Snooze the jobs of the events with these ids, longer each time, but none whose event was
    recorded LONGEST_WAIT ago; return the ids of those that wait. Such a job has an outcome."""
    waiting = set()
    for job in jobs:
        event = job.event
        if event is not None and event.id in ids and (seconds := pause(event.recorded_at)):
            job.snooze(reason, seconds=seconds)
            waiting.add(event.id)
    return waiting


def pause(since: datetime) -> float:
    """Return the seconds of the next wait for what is not known yet, longer the longer it has
    waited `since` then; 0 after LONGEST_WAIT."""
    age = max((clock.now() - since).total_seconds(), 0.0)
    return min(max(age / 4, SHORTEST_PAUSE), LONGEST_PAUSE) if age < LONGEST_WAIT else 0.0


def public_jobs(jobs: Sequence[ClaimedJob]) -> Iterator[ClaimedJob]:
    """Yield the jobs whose events everybody may read; skip the others, or snooze them.

    Jobs without an event are yielded, too.
    """
    restricted = readers_of_jobs(jobs)
    for job in jobs:
        if job.event is None or job.event.id not in restricted:
            yield job
        elif job.outcome is None:
            job.skip(HIDDEN)


def request_readers(events: Iterable[Recorded]) -> None:
    """Let the types of these events find out who may read them."""
    by_type: dict[type[EventType], list[Recorded]] = defaultdict(list)
    for event in events:
        if event.event_type is not None:
            by_type[event.event_type].append(event)
    for event_type, group in by_type.items():
        event_type.request_readers(group)
