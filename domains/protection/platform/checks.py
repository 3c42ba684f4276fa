"""System checks of protection: sources, the brokers file, and system libraries.

A missing setting does not stop the program: an installation without such plans does not need it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from django.core.checks import CheckMessage, Error, Info, Warning, register
from django.db import DatabaseError, transaction

from tailrace.db.limits import statement_limit
from tailrace.domains.protection.services.properties import due
from tailrace.domains.protection.services.providers import deeds
from tailrace.domains.protection.services.providers.source import all_sources
from tailrace.domains.protection.services.removals.brokers import InvalidBrokers, all_brokers
from tailrace.domains.protection.services.reports import pdf
from tailrace.domains.protection.services.scanning.payload import SCAN
from tailrace.subscriptions.models import PlanJob, PlanSubscription

STATEMENT_SECONDS = 3
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


def missing_settings() -> list[Unset]:
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


@register("protection")
def brokers_are_valid(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """Report errors in the brokers file: a wrong entry would send wrong data, or none."""
    try:
        all_brokers()
    except InvalidBrokers as error:
        return [
            Error(
                f"PROTECTION_BROKERS_FILE: {problem}",
                hint="docs/reference/platform/protection.md describes the keys of an entry",
                id="tailrace_protection.E001",
            )
            for problem in error.problems
        ]
    return []


@register("protection", deploy=True)
def sources_are_configured(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """Report settings of providers that are missing.

    A missing setting is a warning if a plan with subscribers needs it. Otherwise, or if the
    database is unavailable, the message is only for information.
    """
    return [_unset_message(each, _plans_with_scan(each.handler)) for each in missing_settings()]


def _unset_message(missing: Unset, plans: Sequence[str]) -> CheckMessage:
    number = 1 + ALL.index(missing)
    message = f"{missing.setting}: is not set: {missing.effect}"
    if not plans:
        return Info(message, hint=missing.hint, id=f"tailrace_protection.I00{number}")
    names = ", ".join(plans)
    return Warning(
        f"{message}. Plans with subscribers that include {missing.handler}: {names}",
        hint=f"{missing.hint}; or remove {missing.handler} from these plans",
        id=f"tailrace_protection.W00{number + 2}",
    )


def _plans_with_scan(handler: str) -> Sequence[str]:
    """Return the plans with this scan; none if the database cannot be read, since checks also run
    without it."""
    try:
        with transaction.atomic(), statement_limit(STATEMENT_SECONDS):
            return plans_with_scan(handler)
    except DatabaseError:
        return ()


@register("protection")
def libraries_are_installed(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """Warn about missing system libraries. Only reports need them."""
    if packages := pdf.missing_packages():
        return [Warning(pdf.how_to_install(packages), id="tailrace_protection.W002")]
    return []
