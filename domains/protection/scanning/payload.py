"""The jobs of scans: what each is to look up, and how one makes others."""

from collections.abc import Iterable, Sequence
from datetime import datetime

from pydantic import AwareDatetime

from tailrace.domains.protection.scanning.lookups import ItemRange
from tailrace.jobs.enqueue import enqueue, enqueue_many
from tailrace.subscriptions.plans.payload import AccountPayload

SCAN = "protection.darkwatch_scan"


class ScanPayload(AccountPayload):
    """Whose watchlist is scanned. The other fields are for the jobs that a scan makes itself."""

    since: AwareDatetime | None = None
    """Look-ups since then are not repeated. None: since the job was created."""
    above: int = 0
    upto: int | None = None
    """The items of a part, by their ids. None: all; a job of more than 100 makes others."""
    sources: list[str] = []
    """Who is asked. None named: all."""
    tried: int = 0
    """How often these sources were tried before this job."""


def enqueue_parts(payload: ScanPayload, parts: Iterable[ItemRange], since: datetime) -> None:
    """Create a job for each part, unless it is there and has not begun. One that is made again
    looks up what is missing."""
    enqueue_many(
        SCAN,
        [
            {
                "payload": _of_part(payload, part, since),
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
    """Create the job that asks these sources alone, in `delay` seconds."""
    changes = {"sources": list(sources), "tried": tried}
    key = f"{items.account}:{since.isoformat()}:{items.above}:{','.join(sources)}:{tried}"
    new = _of_part(payload, items, since).model_copy(update=changes)
    enqueue(SCAN, new, delay=delay, unique_key=key)


def enqueue_scans(accounts: Iterable[int], since: datetime, sources: Sequence[str]) -> None:
    """Create a scan of each account by these sources, behind those of their plans."""
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


def _of_part(payload: ScanPayload, part: ItemRange, since: datetime) -> ScanPayload:
    changes = {"since": since, "above": part.above, "upto": part.upto}
    return payload.model_copy(update=changes)
