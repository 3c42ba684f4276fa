"""Select the properties that a job has to scan."""

from django.db.models import QuerySet

from tailrace.db.query import database_now
from tailrace.domains.protection.models import WatchedProperty
from tailrace.jobs.enqueue import enqueue_many
from tailrace.jobs.handler import ClaimedJob
from tailrace.subscriptions.models import PlanSubscription

SCAN = "protection.hometitle_scan"
MOST_PER_JOB = 100


def due(job: ClaimedJob) -> tuple[int, dict[int, int | None]]:
    """Return the id of the job that began the run, and the properties of this job, each with the
    run that scanned it last.

    The first job of a run enqueues jobs for the properties that are too many for it, in the lane of
    the account.
    """
    payload = job.payload
    run = job.id if payload.run is None else payload.run
    rows = WatchedProperty.objects.filter(user=payload.account, pk__gt=payload.after)
    if payload.concerned:
        rows = rows.filter(concerned_at__isnull=False)
    properties = list(rows.order_by("pk").values_list("pk", "scanned_by"))
    if payload.run is None:  # a job for the properties after each full batch
        ends = [id for id, _run in properties[MOST_PER_JOB - 1 : -1 : MOST_PER_JOB]]
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
    return run, dict(properties[:MOST_PER_JOB])


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
