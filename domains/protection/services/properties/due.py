"""Select the properties that a job has to scan."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.db.models import QuerySet

from tailrace.db.query import database_now
from tailrace.domains.protection.models import WatchedProperty
from tailrace.jobs.enqueue import enqueue, enqueue_many
from tailrace.jobs.handler import ClaimedJob
from tailrace.subscriptions.models import PlanSubscription

SCAN = "protection.hometitle_scan"
MOST_PER_JOB = 100


@dataclass(frozen=True, slots=True)
class Part:
    """The properties of one job of a run."""

    run: int
    """The id of the job that began the run."""
    total: int
    """The number of properties."""
    last: int
    """The id of the last property."""
    properties: Mapping[int, str]
    """The properties that this run has not scanned yet, with their sources."""


def due(job: ClaimedJob) -> Part:
    """Return the properties of this job.

    The first job of a run enqueues jobs for the properties that are too many for it, in the lane of
    the account.
    """
    payload = job.payload
    run = job.id if payload.run is None else payload.run
    rows = WatchedProperty.objects.filter(user=payload.account, pk__gt=payload.after)
    if payload.concerned:
        rows = rows.filter(concerned_at__isnull=False)
    if payload.upto is not None:
        rows = rows.filter(pk__lte=payload.upto)
    if payload.sources:
        rows = rows.filter(source__in=payload.sources)
    properties = list(rows.order_by("pk").values_list("pk", "source", "scanned_by"))
    if payload.run is None:  # a job for the properties after each full batch
        ends = [id for id, *_ in properties[MOST_PER_JOB - 1 : -1 : MOST_PER_JOB]]
        enqueue_many(
            SCAN,
            [
                {
                    "payload": payload.model_copy(update={"after": end, "run": run}),
                    "unique_key": f"{payload.account}:{run}:{end}",
                }
                for end in ends
            ],
        )
    ours = properties[:MOST_PER_JOB]
    waiting = {id: source for id, source, scanned_by in ours if scanned_by != run}
    return Part(run, len(ours), ours[-1][0] if ours else payload.after, waiting)


def continue_in_new_job(job: ClaimedJob, part: Part, sources: Sequence[str], delay: float) -> None:
    """Enqueue a job that scans the rest of this part in `delay` seconds, by these sources."""
    changes = {"run": part.run, "upto": part.last, "sources": list(sources)}
    payload = job.payload.model_copy(update=changes)
    key = f"{payload.account}:{part.run}:{payload.after}:{','.join(sources)}"
    enqueue(SCAN, payload, delay=delay, unique_key=key)


def mark_concerned(place_keys: frozenset[str], source: str) -> int:
    """Enqueue scans of the properties at these places whose accounts are monitored; return the
    number of properties. Runs in the caller's transaction."""
    marked = 0
    keys = sorted(place_keys)
    for start in range(0, len(keys), 1000):
        rows = _monitored().filter(source=source, place_key__in=keys[start : start + 1000])
        users = dict(rows.order_by("pk").values_list("pk", "user"))
        # A reading that began before now does not clear these marks.
        WatchedProperty.objects.filter(pk__in=users).update(concerned_at=database_now())
        enqueue_many(
            SCAN,
            [
                {
                    "payload": {"account": user, "concerned": True},
                    "unique_key": f"{user}:concerned",
                }
                for user in sorted(set(users.values()))
            ],
        )
        marked += len(users)
    return marked


def has_monitored_properties(source: str) -> bool:
    """Return whether a monitored account watches a property in the records of this source."""
    return _monitored().filter(source=source).exists()


def _monitored() -> QuerySet[WatchedProperty]:
    accounts = PlanSubscription.objects.monitored().filter(account__is_active=True)
    return WatchedProperty.objects.filter(user__in=accounts.values("account"))
