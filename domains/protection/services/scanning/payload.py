"""The payloads of scan jobs, and how scans enqueue other scans."""

from collections.abc import Iterable, Sequence
from datetime import datetime

from pydantic import AwareDatetime

from tailrace.domains.protection.services.scanning.lookups import ItemRange
from tailrace.jobs.enqueue import enqueue, enqueue_many
from tailrace.subscriptions.plans.payload import AccountPayload

SCAN = "protection.darkwatch_scan"


class ScanPayload(AccountPayload):
    """The account whose watchlist is scanned. Scans set the other fields of the jobs that they
    enqueue."""

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


def enqueue_parts(payload: ScanPayload, parts: Iterable[ItemRange], since: datetime) -> None:
    """Enqueue a job for each part that has no pending job. A repeated job looks up only the missing
    values."""
    enqueue_many(
        SCAN,
        [
            {
                "payload": _part_payload(payload, part, since),
                "unique_key": f"{part.account}:{since.isoformat()}:{part.above}",
            }
            for part in parts
        ],
    )


def enqueue_follow_up(
    payload: ScanPayload,
    items: ItemRange,
    since: datetime,
    sources: Sequence[str],
    tried: int,
    delay: float,
) -> None:
    """Enqueue a job that queries only these sources, in `delay` seconds."""
    changes = {"sources": list(sources), "tried": tried}
    key = f"{items.account}:{since.isoformat()}:{items.above}:{','.join(sources)}:{tried}"
    new = _part_payload(payload, items, since).model_copy(update=changes)
    enqueue(SCAN, new, delay=delay, unique_key=key)


def enqueue_scans(accounts: Iterable[int], since: datetime, sources: Sequence[str]) -> None:
    """Enqueue a scan of each account by these sources, with a lower priority than the scans of
    plans."""
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


def _part_payload(payload: ScanPayload, part: ItemRange, since: datetime) -> ScanPayload:
    changes = {"since": since, "above": part.above, "upto": part.upto}
    return payload.model_copy(update=changes)
