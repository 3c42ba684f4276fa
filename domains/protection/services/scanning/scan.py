"""One job's part of a scan: look up its items, and determine how the job ends.

A job ends in one of five ways:

- All sources have answered for all items: `complete`.
- Some sources have answered, the others are unavailable: `partial`, and another job queries only
  the unavailable ones.
- No source has answered: the job is retried.
- The job's time or a source's rate limit is used up: the job is snoozed, and no attempt is charged.
- The same, while another source is unavailable: `partial`, and two jobs follow, one for the
  unavailable sources, one for the rest. A snoozed job would query the unavailable sources again.
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
from tailrace.domains.protection.services.providers.source import (
    Source,
    ValueNotAccepted,
    all_sources,
)
from tailrace.domains.protection.services.scanning import lookups
from tailrace.domains.protection.services.scanning.lookups import Lookup
from tailrace.domains.protection.services.scanning.payload import (
    ScanPayload,
    enqueue_follow_up,
    enqueue_parts,
)
from tailrace.domains.protection.services.scanning.results import LookupResult, store
from tailrace.jobs.destinations.request_errors import RateLimited, RequestRefused, Unavailable
from tailrace.jobs.handler import Backoff, Cancel, ClaimedJob, Permanent, Retry, Skip, Snooze
from tailrace.jobs.models import Job
from tailrace.subscriptions.models import PlanSubscription

log = structlog.get_logger(__name__)

RUNS = 4
"""Maximum number of runs for a source that is unavailable."""
BACKOFF = Backoff(60, 300, 900)
SLICE_SECONDS = 30.0
"""Time after which a job lets other jobs run."""
LOOK_SECONDS = 2.0
"""Seconds between two checks whether the job was cancelled."""
LOST_KEY = "add the key that encrypted them to ENCRYPTION_KEYS, or let their users add them again"


@dataclass(slots=True)
class Scan:
    """The look-ups of a job, and their progress."""

    job: ClaimedJob
    payload: ScanPayload
    since: datetime
    sources: Sequence[Source]
    lookups: Sequence[Lookup]
    missing: dict[str, Unavailable | RequestRefused] = field(default_factory=dict)
    """The sources that do not answer, with their errors."""
    busy: dict[str, float] = field(default_factory=dict)
    """The sources whose rate limit is used up, with the seconds to wait."""
    unreadable: set[int] = field(default_factory=set)
    """The items whose value cannot be decrypted."""
    is_cut: bool = False
    """Whether the job stops before all look-ups are made, to let other jobs run or because its
    worker shuts down."""

    @property
    def run(self) -> int:
        """The number of this run, from 1 to RUNS."""
        return self.payload.tried + self.job.attempt


async def run_scan(job: ClaimedJob) -> Any:
    """Run the scan of this job; return the job's result."""
    scan = await sync_to_async(_begin)(job)
    if not isinstance(scan, Scan):
        return scan
    await _look_up_all(scan)
    return await sync_to_async(_finish)(scan)


def _begin(job: ClaimedJob) -> Scan | Mapping[str, Any]:
    """Return the scan, or the result of the job if it only enqueues other jobs."""
    payload: ScanPayload = job.payload
    if not User.objects.filter(pk=payload.account, is_active=True).exists():
        raise Skip("the account is closed or deleted")
    if not PlanSubscription.objects.served().filter(account=payload.account).exists():
        raise Skip("the account has no active plan")
    sources = _sources(payload.sources)
    since = payload.since or Job.objects.values_list("created_at", flat=True).get(pk=job.id)
    items = payload.items()
    if payload.upto is None and len(parts := lookups.parts(items)) > 1:
        enqueue_parts(payload, parts, since)
        return {"parts": len(parts), "items": items.count()}
    return Scan(job, payload, since, sources, lookups.pending(items, sources, since))


def _sources(names: Sequence[str]) -> list[Source]:
    """Return the configured sources with these names; without names, all configured sources."""
    wanted = [source for source in all_sources() if not names or source.name in names]
    sources = [source for source in wanted if not source.why_not()]
    if not sources:
        reasons = sorted({source.why_not() for source in wanted}) or ["there is no such source"]
        raise Skip(f"no source is configured: {', '.join(reasons)}")
    return sources


async def _look_up_all(scan: Scan) -> None:
    """Make the pending look-ups, and store each answer at once."""
    ends_at = time.monotonic() + SLICE_SECONDS
    next_check_at = time.monotonic() + LOOK_SECONDS
    for number, lookup in enumerate(scan.lookups):
        if lookup.source.name in scan.missing or lookup.source.name in scan.busy:
            continue
        if scan.job.shutting_down() or time.monotonic() > ends_at:
            scan.is_cut = True
            return
        if time.monotonic() > next_check_at:
            await scan.job.acheck_cancelled()
            await scan.job.aprogress(number, len(scan.lookups))
            next_check_at = time.monotonic() + LOOK_SECONDS
        await _look_up(scan, lookup)


async def _look_up(scan: Scan, lookup: Lookup) -> None:
    name = lookup.source.name
    value = await lookups.value_of(lookup.item)
    if value is None:  # the item was removed or paused
        return
    if not value.is_served:
        raise Cancel("the account's plan is no longer active")
    if value.text is None:
        scan.unreadable.add(lookup.item)
        return
    try:
        breaches = await lookup.source.lookup(value.kind, value.text)
    except RateLimited as error:
        scan.busy[name] = error.after
    except (Unavailable, RequestRefused) as error:
        scan.missing[name] = error
    except ValueNotAccepted:
        await store(LookupResult(lookup.item, name, value.read_at, ()))
    else:
        await store(LookupResult(lookup.item, name, value.read_at, breaches))


def _finish(scan: Scan) -> Mapping[str, Any]:
    """Return the result of the job, or raise its outcome."""
    pause = _pause(scan)
    if pause and not scan.missing:
        raise pause
    for error in scan.missing.values():
        if isinstance(error, RequestRefused):
            log.error("scan.refused", destination=error.destination, reason=error.reason)
    if scan.unreadable:
        log.error("scan.unreadable", items=sorted(scan.unreadable), hint=LOST_KEY)
    away = {name: e for name, e in scan.missing.items() if isinstance(e, Unavailable)}
    if len(scan.missing) == len(scan.sources):
        _raise_without_answers(scan, away)
    if away:
        _enqueue_unavailable(scan, away)
    return _result(scan) | (_continue_in_new_job(scan, pause) if pause else {})


def _pause(scan: Scan) -> Snooze | None:
    """Return why and when the scan continues; None if all available sources have answered."""
    if scan.is_cut:
        return Snooze("continues after other jobs", seconds=0)
    if scan.busy:
        wait = max(scan.busy.values()) + uniform(0, 10)  # noqa: S311
        return Snooze(f"the rate limit of {', '.join(scan.busy)} is used up", seconds=wait)
    return None


def _continue_in_new_job(scan: Scan, pause: Snooze) -> dict[str, Any]:
    """Enqueue a job that queries the available sources for the remaining items, in the same run;
    return its entry in the result."""
    names = [source.name for source in scan.sources if source.name not in scan.missing]
    tried, delay = scan.run - 1, pause.seconds or 0.0
    enqueue_follow_up(scan.payload, scan.since, names, tried, delay)
    return {"goes_on": {"sources": names, "reason": pause.reason}}


def _raise_without_answers(scan: Scan, away: Mapping[str, Unavailable]) -> None:
    """Raise the outcome of a job for which no source has answered: a retry if it can help."""
    reasons = "; ".join(sorted({str(error) for error in scan.missing.values()}))
    if not away:
        raise Permanent(reasons)
    if not any(error.was_asked for error in away.values()):
        raise Snooze(reasons, seconds=_wait_of(away))
    if scan.run >= RUNS:
        raise Permanent(f"{reasons}; tried {RUNS} times")
    raise Retry(reasons, after=BACKOFF.after(scan.run))


def _enqueue_unavailable(scan: Scan, away: Mapping[str, Unavailable]) -> None:
    """Enqueue a job for the unavailable sources, unless they have been tried RUNS times."""
    was_asked = any(error.was_asked for error in away.values())
    tried = scan.run if was_asked else scan.run - 1
    if tried < RUNS:
        delay = BACKOFF.after(tried) if was_asked else _wait_of(away)
        enqueue_follow_up(scan.payload, scan.since, sorted(away), tried, delay)


def _wait_of(away: Mapping[str, Unavailable]) -> float:
    """Return the seconds until the circuit breakers may close, with some jitter."""
    return max([error.after or 1.0 for error in away.values()]) * uniform(1, 1.5)  # noqa: S311


def _result(scan: Scan) -> dict[str, Any]:
    items = scan.payload.items()
    exposures = Exposure.objects.filter(item__in=items, first_at__gte=scan.since)
    names = [source.name for source in scan.sources]
    return {
        "outcome": "partial" if scan.missing or scan.unreadable else "complete",
        "missing": {name: error.reason for name, error in sorted(scan.missing.items())},
        "items": items.count(),
        "new_exposures": exposures.filter(breach__source__in=names).count(),
        "unreadable": sorted(scan.unreadable),
        "not_looked_up": lookups.not_looked_up(items, all_sources()),
    }
