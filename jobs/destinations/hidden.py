"""For handlers that send events to others: wait until the readers of an event are known, and skip
hidden events."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from datetime import datetime

from tailrace.db import clock
from tailrace.events.privacy.visibility import readers_of
from tailrace.events.publish import Recorded
from tailrace.events.readers import Readers
from tailrace.events.types import EventType
from tailrace.jobs.handler import ClaimedJob

LONGEST_WAIT = 3600.0
"""Maximum number of seconds after the recording of an event that its jobs wait for its readers."""
SHORTEST_PAUSE, LONGEST_PAUSE = 3.0, 120.0
HIDDEN = "the event is hidden: not everybody may read it"
NOT_KNOWN = "it is not known yet who may read the event"


def readers_of_jobs(jobs: Sequence[ClaimedJob]) -> dict[int, Readers]:
    """Return the readers of the restricted events of these jobs, by the event's id; events that
    everybody may read are left out. If the readers of an event are not known yet, they are
    requested and the jobs of the event are snoozed: `job.outcome` is set."""
    events = {job.event.id: job.event for job in jobs if job.event is not None}
    restricted = readers_of(events.values())
    undecided = {id for id, readers in restricted.items() if readers.undecided}
    if waiting := wait_for(jobs, undecided, NOT_KNOWN):
        request_readers(events[id] for id in waiting)
    return restricted


def wait_for(jobs: Iterable[ClaimedJob], ids: Collection[int], reason: str) -> set[int]:
    """Snooze the jobs of the events with these ids, longer each time; return the ids of the events
    whose jobs were snoozed. Jobs of events that were recorded LONGEST_WAIT ago are not snoozed."""
    waiting = set()
    for job in jobs:
        event = job.event
        if event is not None and event.id in ids and (seconds := pause(event.recorded_at)):
            job.snooze(reason, seconds=seconds)
            waiting.add(event.id)
    return waiting


def pause(since: datetime) -> float:
    """Return the seconds until the next try. They grow with the time since `since`, when the first
    try was made; 0 after LONGEST_WAIT."""
    age = max((clock.now() - since).total_seconds(), 0.0)
    return min(max(age / 4, SHORTEST_PAUSE), LONGEST_PAUSE) if age < LONGEST_WAIT else 0.0


def public_jobs(
    jobs: Sequence[ClaimedJob], takes_hidden: Callable[[ClaimedJob], bool] = lambda job: False
) -> Iterator[ClaimedJob]:
    """Yield the jobs without an event, the jobs whose events everybody may read, and the jobs
    whose destination may receive hidden events, by `takes_hidden`. Skip or snooze the others."""
    restricted = readers_of_jobs([job for job in jobs if not takes_hidden(job)])
    for job in jobs:
        if job.event is None or job.event.id not in restricted or takes_hidden(job):
            yield job
        elif job.outcome is None:
            job.skip(HIDDEN)


def request_readers(events: Iterable[Recorded]) -> None:
    """Ask the types of these events to determine the readers of the events."""
    by_type: dict[type[EventType], list[Recorded]] = defaultdict(list)
    for event in events:
        if event.event_type is not None:
            by_type[event.event_type].append(event)
    for event_type, group in by_type.items():
        event_type.request_readers(group)
