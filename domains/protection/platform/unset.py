"""Missing settings of providers, and the plans whose scans need them.

A missing setting does not stop the program: an installation without such plans does not need it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tailrace.domains.protection.services.properties import due
from tailrace.domains.protection.services.providers import deeds
from tailrace.domains.protection.services.providers.source import all_sources
from tailrace.domains.protection.services.scanning.payload import SCAN
from tailrace.subscriptions.models import PlanJob, PlanSubscription

MOST_PLANS = 50


@dataclass(frozen=True, slots=True)
class Unset:
    """A setting that a scan needs."""

    setting: str
    handler: str
    effect: str
    """What happens to the scans without the setting."""
    hint: str
    """How to set it."""
    is_unset: Callable[[], bool]


ALL = (
    Unset(
        "PROTECTION_HIBP_KEY",
        SCAN,
        "scans of watchlists are skipped",
        "set the key of a subscription from https://haveibeenpwned.com/API/Key",
        lambda: all(source.why_not() for source in all_sources()),
    ),
    Unset(
        "PROTECTION_SODA_URL",
        due.SCAN,
        "scans of properties fail without a retry",
        "set the server of the public records, for New York City https://data.cityofnewyork.us",
        lambda: not deeds.sources(),
    ),
)


def unset() -> list[Unset]:
    """Return the missing settings."""
    return [each for each in ALL if each.is_unset()]


def plans_with_scan(handler: str) -> Sequence[str]:
    """Return the names of the plans that have this scan and a subscription that is served."""
    jobs = PlanJob.objects.filter(handler=handler, installed=True).select_related("plan")
    served = PlanSubscription.objects.served()
    return [
        job.plan.name
        for job in jobs.order_by("plan__name")[:MOST_PLANS]
        if served.filter(plan=job.plan_id).exists()
    ]
