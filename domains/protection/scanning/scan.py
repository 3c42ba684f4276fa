"""One job's part of a scan: look its items up, and say what becomes of the job.

A job ends in one of five ways. All sources have answered for all items: `complete`. Some have, and
the others are away: `partial`, and another job asks those others alone. None has: the job is tried
again. Its time, or the rate limit of a source, is used up: it continues later, charged nothing.
The same while another source is away: `partial`, and two jobs follow, one for the sources that are
away, one for the rest. A job that continued itself would not know who is away, and ask them again.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from random import uniform
from typing import Any

import structlog
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User

from tailrace.domains.protection.models import Exposure
from tailrace.domains.protection.providers.ask import SourceAway, SourceBusy, SourceRefuses
from tailrace.domains.protection.providers.source import Source, ValueNotAccepted, all_sources
from tailrace.domains.protection.scanning import lookups
from tailrace.domains.protection.scanning.lookups import ItemRange, Lookup
from tailrace.domains.protection.scanning.payload import (
    ScanPayload,
    enqueue_follow_up,
    enqueue_parts,
)
from tailrace.domains.protection.scanning.results import LookupResult, store
from tailrace.jobs.backoff import Backoff
from tailrace.jobs.handler import ClaimedJob
from tailrace.jobs.models import Job
from tailrace.jobs.outcomes import Cancel, Permanent, Retry, Skip, Snooze
from tailrace.subscriptions.models import PlanSubscription

log = structlog.get_logger(__name__)

RUNS = 4
"""Of a source that is away: the first and three more."""
BACKOFF = Backoff(60, 300, 900)
SLICE_SECONDS = 30.0
"""After which a job lets those of others run."""
LOOK_SECONDS = 2.0
"""Between two looks at whether the job was cancelled."""
LOST_KEY = "add the key that encrypted them to ENCRYPTION_KEYS, or let their users add them again"


@dataclass(slots=True)
class Scan:
    """What a job looks up, and how far it is."""

    job: ClaimedJob
    payload: ScanPayload
    items: ItemRange
    since: datetime
    sources: Sequence[Source]
    lookups: Sequence[Lookup]
    missing: dict[str, SourceAway | SourceRefuses] = field(default_factory=dict)
    """Sources that do not answer, and why."""
    busy: dict[str, float] = field(default_factory=dict)
    """Sources whose rate limit is used up, and for how many seconds."""
    unreadable: set[int] = field(default_factory=set)
    """Items whose value nobody can read."""
    is_cut: bool = False
    """Whether it has to end before all is looked up, for the jobs of others or its worker's end."""

    @property
    def run(self) -> int:
        """Which of the RUNS this is."""
        return self.payload.tried + self.job.attempt


async def run_scan(job: ClaimedJob) -> Any:
    """Do the job; return its result."""
    scan = await sync_to_async(_begin)(job)
    if not isinstance(scan, Scan):
        return scan
    await _look_up_all(scan)
    return await sync_to_async(_finish)(scan)


def _begin(job: ClaimedJob) -> Scan | Mapping[str, Any]:
    """Return what is to be looked up; the result of the job if it only makes others."""
    payload: ScanPayload = job.payload
    if not User.objects.filter(pk=payload.account, is_active=True).exists():
        raise Skip("the account is closed or deleted")
    if not PlanSubscription.objects.served().filter(account=payload.account).exists():
        raise Skip("the account has no plan that is served")
    sources = _sources(payload.sources)
    since = payload.since or Job.objects.values_list("created_at", flat=True).get(pk=job.id)
    items = ItemRange(payload.account, payload.above, payload.upto)
    if payload.upto is None and len(parts := lookups.parts(items)) > 1:
        enqueue_parts(payload, parts, since)
        return {"parts": len(parts), "items": items.items().count()}
    return Scan(job, payload, items, since, sources, lookups.pending(items, sources, since))


def _sources(names: Sequence[str]) -> list[Source]:
    """Return the sources of these names, or all of them, that are configured."""
    wanted = [source for source in all_sources() if not names or source.name in names]
    sources = [source for source in wanted if not source.why_not()]
    if not sources:
        reasons = sorted({source.why_not() for source in wanted}) or ["there is no such source"]
        raise Skip(f"nothing is looked up: {', '.join(reasons)}")
    return sources


async def _look_up_all(scan: Scan) -> None:
    """Look up what is pending, and store each answer as it comes."""
    ends_at = time.monotonic() + SLICE_SECONDS
    look_at = time.monotonic() + LOOK_SECONDS
    for number, lookup in enumerate(scan.lookups):
        if lookup.source.name in scan.missing or lookup.source.name in scan.busy:
            continue
        if scan.job.shutting_down() or time.monotonic() > ends_at:
            scan.is_cut = True
            return
        if time.monotonic() > look_at:
            await scan.job.acheck_cancelled()
            await scan.job.aprogress(number, len(scan.lookups))
            look_at = time.monotonic() + LOOK_SECONDS
        await _look_up(scan, lookup)


async def _look_up(scan: Scan, lookup: Lookup) -> None:
    name = lookup.source.name
    value = await lookups.value_of(lookup.item)
    if value is None:  # it was removed meanwhile
        return
    if not value.is_served:
        raise Cancel("the account's plan is no longer served")
    if value.text is None:
        scan.unreadable.add(lookup.item)
        return
    try:
        breaches = await lookup.source.lookup(value.kind, value.text)
    except SourceBusy as error:
        scan.busy[name] = error.after
    except (SourceAway, SourceRefuses) as error:
        scan.missing[name] = error
    except ValueNotAccepted:
        await store(LookupResult(lookup.item, name, value.read_at, ()))
    else:
        await store(LookupResult(lookup.item, name, value.read_at, breaches))


def _finish(scan: Scan) -> Mapping[str, Any]:
    """Return the result, or raise what becomes of the job."""
    pause = _pause(scan)
    if pause and not scan.missing:
        raise pause
    for error in scan.missing.values():
        if isinstance(error, SourceRefuses):
            log.error("scan.refused", source=error.provider, reason=error.reason)
    if scan.unreadable:
        log.error("scan.unreadable", items=sorted(scan.unreadable), hint=LOST_KEY)
    away = {name: e for name, e in scan.missing.items() if isinstance(e, SourceAway)}
    if len(scan.missing) == len(scan.sources):
        _raise_for(scan, away)
    if away:
        _follow_up(scan, away)
    return _result(scan) | (_go_on(scan, pause) if pause else {})


def _pause(scan: Scan) -> Snooze | None:
    """Return why the scan continues later, and when; None if all who answer have been asked."""
    if scan.is_cut:
        return Snooze("continues after the jobs of others", seconds=0)
    if scan.busy:
        wait = max(scan.busy.values()) + uniform(0, 10)  # noqa: S311
        return Snooze(f"the rate limit of {', '.join(scan.busy)} is used up", seconds=wait)
    return None


def _go_on(scan: Scan, pause: Snooze) -> dict[str, Any]:
    """Let another job ask the sources that are not missing for the rest, in the same run; return
    what the result says of it."""
    names = [source.name for source in scan.sources if source.name not in scan.missing]
    tried, delay = scan.run - 1, pause.seconds or 0.0
    enqueue_follow_up(scan.payload, scan.items, scan.since, names, tried, delay)
    return {"goes_on": {"sources": names, "reason": pause.reason}}


def _raise_for(scan: Scan, away: Mapping[str, SourceAway]) -> None:
    """No source has answered: try the job again, unless that helps nothing."""
    reasons = "; ".join(sorted({str(error) for error in scan.missing.values()}))
    if not away:
        raise Permanent(reasons)
    if not any(error.was_asked for error in away.values()):
        raise Snooze(reasons, seconds=_wait_of(away))
    if scan.run >= RUNS:
        raise Permanent(f"{reasons}; tried {RUNS} times")
    raise Retry(reasons, after=BACKOFF.after(scan.run))


def _follow_up(scan: Scan, away: Mapping[str, SourceAway]) -> None:
    """Let another job ask the sources that are away, if they have not been asked often enough."""
    was_asked = any(error.was_asked for error in away.values())
    tried = scan.run if was_asked else scan.run - 1
    if tried < RUNS:
        delay = BACKOFF.after(tried) if was_asked else _wait_of(away)
        enqueue_follow_up(scan.payload, scan.items, scan.since, sorted(away), tried, delay)


def _wait_of(away: Mapping[str, SourceAway]) -> float:
    """Return the seconds until circuit breakers may be closed, and somewhat more."""
    return max([error.after or 1.0 for error in away.values()]) * uniform(1, 1.5)  # noqa: S311


def _result(scan: Scan) -> dict[str, Any]:
    exposures = Exposure.objects.filter(item__in=scan.items.items(), first_at__gte=scan.since)
    names = [source.name for source in scan.sources]
    return {
        "outcome": "partial" if scan.missing or scan.unreadable else "complete",
        "missing": {name: error.reason for name, error in sorted(scan.missing.items())},
        "items": scan.items.items().count(),
        "new_exposures": exposures.filter(breach__source__in=names).count(),
        "unreadable": sorted(scan.unreadable),
        "not_looked_up": lookups.not_looked_up(scan.items, all_sources()),
    }
