"""System checks of protection: sources, the brokers file, and system libraries."""

from collections.abc import Sequence
from typing import Any

from django.core.checks import CheckMessage, Error, Info, Warning, register
from django.db import DatabaseError, transaction

from tailrace.db.limits import statement_limit
from tailrace.domains.protection.platform import unset
from tailrace.domains.protection.services.removals.brokers import InvalidBrokers, all_brokers
from tailrace.domains.protection.services.reports import libraries

STATEMENT_SECONDS = 3


@register("protection")
def brokers_are_valid(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """Report errors in the brokers file: a wrong entry would send wrong data, or none."""
    try:
        all_brokers()
    except InvalidBrokers as error:
        return [
            Error(
                f"PROTECTION_BROKERS_FILE: {problem}",
                hint="docs/domains/protection.md describes the keys of an entry",
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
    return [
        _unset_message(number, each, _plans_with_scan(each.handler))
        for number, each in enumerate(unset.ALL, start=1)
        if each.is_unset()
    ]


def _unset_message(number: int, missing: unset.Unset, plans: Sequence[str]) -> CheckMessage:
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
            return unset.plans_with_scan(handler)
    except DatabaseError:
        return ()


@register("protection")
def libraries_are_installed(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """Warn about missing system libraries. Only reports need them."""
    if packages := libraries.missing_packages():
        return [Warning(libraries.how_to_install(packages), id="tailrace_protection.W002")]
    return []
