"""Select the properties that a job has to scan."""

from dataclasses import dataclass

from django.db.models import QuerySet

from tailrace.db.query import database_now
from tailrace.domains.protection.models import WatchedProperty
from tailrace.jobs.enqueue import enqueue_many
from tailrace.jobs.handler import ClaimedJob
from tailrace.subscriptions.models import PlanSubscription

MOST_PER_JOB = 100


@dataclass(frozen=True, slots=True)
class Due:
    """The properties of one job."""

    run: int
    """The id of the job that began the run. It marks the properties that the run has scanned."""
    ids: list[int]
    """The properties that the run has not scanned yet."""
    total: int
    """The number of properties of the job, with the scanned ones."""


def due(job: ClaimedJob) -> Due:
    """Return the properties that this job has to scan.

    The first job of a run enqueues jobs for the properties that are too many for it, in the lane of
    the account.
    """
    payload = job.payload
    run = job.id if payload.run is None else payload.run
    rows = WatchedProperty.objects.filter(user=payload.account, pk__gt=payload.after)
    if payload.concerned:
        rows = rows.filter(concerned_at__isnull=False)
    properties = list(rows.order_by("pk").values_list("pk", "scanned_by"))
    own_properties, other_properties = properties[:MOST_PER_JOB], properties[MOST_PER_JOB:]
    if payload.run is None and other_properties:
        starts = [own_properties, *_batches(other_properties)][:-1]
        enqueue_many(
            job.handler.name,
            [
                {
                    "payload": {
                        "account": payload.account,
                        "after": batch[-1][0],
                        "run": run,
                        "concerned": payload.concerned,
                    },
                    "unique_key": f"{payload.account}:{run}:{batch[-1][0]}",
                }
                for batch in starts
            ],
        )
    return Due(
        run, [id for id, scanned_by in own_properties if scanned_by != run], len(own_properties)
    )


def mark_concerned(place_keys: frozenset[str], source: str, handler: str) -> int:
    """Enqueue scans of the properties at these places whose accounts are monitored; return the
    number of properties. Runs in the caller's transaction."""
    marked: list[int] = []
    keys = sorted(place_keys)
    for start in range(0, len(keys), 1000):
        rows = _monitored().filter(source=source, place_key__in=keys[start : start + 1000])
        users = dict(rows.order_by("pk").values_list("pk", "user"))
        # A reading that began before now does not clear these marks.
        WatchedProperty.objects.filter(pk__in=users).update(concerned_at=database_now())
        enqueue_many(
            handler,
            [
                {
                    "payload": {"account": user, "concerned": True},
                    "unique_key": f"{user}:concerned",
                }
                for user in sorted(set(users.values()))
            ],
        )
        marked += users
    return len(marked)


def has_monitored_properties(source: str) -> bool:
    """Return whether a monitored account watches a property in the records of this source."""
    return _monitored().filter(source=source).exists()


def _monitored() -> QuerySet[WatchedProperty]:
    accounts = PlanSubscription.objects.monitored().filter(account__is_active=True)
    return WatchedProperty.objects.filter(user__in=accounts.values("account"))


def _batches(
    rows: list[tuple[int, int | None]],
) -> list[list[tuple[int, int | None]]]:
    return [rows[start : start + MOST_PER_JOB] for start in range(0, len(rows), MOST_PER_JOB)]
