"""Scans that nobody can do, since the setting of their provider lacks, and the plans that owe them.

An installation without such plans needs none of these settings, so nothing is stopped.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tailrace.domains.protection.handlers.hometitle_scan import ScanHomeTitles
from tailrace.domains.protection.providers import deeds
from tailrace.domains.protection.providers.source import all_sources
from tailrace.domains.protection.scanning.payload import SCAN
from tailrace.subscriptions.models import PlanJob, PlanSubscription

MOST_PLANS = 50


@dataclass(frozen=True, slots=True)
class Unset:
    """A setting without which a scan has nobody to ask."""

    setting: str
    handler: str
    effect: str
    """What becomes of the scans."""
    hint: str
    """What to set."""
    is_unset: Callable[[], bool]


ALL = (
    Unset(
        "PROTECTION_HIBP_KEY",
        SCAN,
        "scans look nothing up, and are skipped",
        "set the key of a subscription from https://haveibeenpwned.com/API/Key",
        lambda: all(source.why_not() for source in all_sources()),
    ),
    Unset(
        "PROTECTION_SODA_URL",
        ScanHomeTitles.name,
        "scans of properties fail, once each",
        "for New York City: https://data.cityofnewyork.us",
        lambda: not deeds.sources(),
    ),
)


def unset() -> list[Unset]:
    """Return the settings that lack."""
    return [each for each in ALL if each.is_unset()]


def plans_that_owe(handler: str) -> Sequence[str]:
    """Return the names of the plans that have this scan and a subscription that is served."""
    jobs = PlanJob.objects.filter(handler=handler, installed=True).select_related("plan")
    served = PlanSubscription.objects.served()
    return [
        job.plan.name
        for job in jobs.order_by("plan__name")[:MOST_PLANS]
        if served.filter(plan=job.plan_id).exists()
    ]
