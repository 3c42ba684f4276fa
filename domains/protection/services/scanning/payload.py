"""The payloads of scan jobs, and how scans enqueue other scans."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import pairwise

from django.db.models import QuerySet
from pydantic import AwareDatetime

from tailrace.domains.protection.models import WatchlistItem
from tailrace.jobs.enqueue import enqueue, enqueue_many
from tailrace.jobs.flows import NewFlow
from tailrace.subscriptions.plans.payload import AccountPayload

SCAN = "protection.darkwatch_scan"


class ScanPayload(AccountPayload):
    """The account whose watchlist is scanned. Only scans set the other fields."""

    since: AwareDatetime | None = None
    """Look-ups made since then are not repeated. None: since the job was created."""
    above: int = 0
    upto: int | None = None
    """The range of item ids. None: all items; for more than 100 items the job enqueues other
    jobs."""
    sources: list[str] = []
    """The names of the sources to query; empty: all sources."""
    tried: int = 0
    """How often the sources were tried before this job."""

    def items(self) -> QuerySet[WatchlistItem]:
        """Return the active items in the range."""
        items = WatchlistItem.objects.filter(user=self.account, active=True, pk__gt=self.above)
        return items if self.upto is None else items.filter(pk__lte=self.upto)


def enqueue_parts(payload: ScanPayload, ends: Sequence[int], since: datetime) -> None:
    """Enqueue a flow with a job for the items up to each of these ids, once for each scan."""
    key = f"{SCAN}:{payload.account}:{since.isoformat()}"
    flow = NewFlow(f"scan of the watchlist of account {payload.account}", unique_key=key)
    for above, end in pairwise([payload.above, *ends]):
        flow.add(SCAN, payload.model_copy(update={"since": since, "above": above, "upto": end}))
    flow.enqueue()


def enqueue_follow_up(
    payload: ScanPayload, since: datetime, sources: Sequence[str], tried: int, delay: float
) -> None:
    """Enqueue a job that queries only these sources, in `delay` seconds."""
    changes = {"since": since, "sources": list(sources), "tried": tried}
    key = f"{payload.account}:{since.isoformat()}:{payload.above}:{','.join(sources)}:{tried}"
    enqueue(SCAN, payload.model_copy(update=changes), delay=delay, unique_key=key)


def enqueue_scans(accounts: Iterable[int], since: datetime, sources: Sequence[str]) -> None:
    """Enqueue scans of the accounts by these sources, after the scans of plans."""
    enqueue_many(
        SCAN,
        [
            {
                "payload": ScanPayload(account=account, since=since, sources=list(sources)),
                "unique_key": f"{account}:{since.isoformat()}:feed",
                "priority": 2,
            }
            for account in accounts
        ],
    )
