"""System checks of protection: sources, files of operators, and system libraries."""

from collections.abc import Sequence
from typing import Any

from django.core.checks import CheckMessage, Error, Info, Warning, register
from django.db import DatabaseError, transaction

from tailrace.db.limits import statement_limit
from tailrace.domains.protection import unset
from tailrace.domains.protection.removals.brokers import InvalidBrokers, all_brokers
from tailrace.domains.protection.reports import libraries

STATEMENT_SECONDS = 3


@register("protection")
def brokers_are_valid(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """A broker that is described wrongly would be sent wrong things, or nothing."""
    try:
        all_brokers()
    except InvalidBrokers as error:
        return [
            Error(
                f"PROTECTION_BROKERS_FILE: {problem}",
                hint="what an entry consists of: docs/protection.md",
                id="tailrace_protection.E001",
            )
            for problem in error.problems
        ]
    return []


@register("protection", deploy=True)
def sources_are_configured(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """Without a key nothing is looked up in breaches, without a server no property is scanned.

    A warning if a plan with subscribers owes that; if none does, or the database cannot be asked,
    an information: who sells no such plan needs neither.
    """
    return [
        _unset(number, each, _plans_that_owe(each.handler))
        for number, each in enumerate(unset.ALL, start=1)
        if each.is_unset()
    ]


def _unset(number: int, lack: unset.Unset, plans: Sequence[str]) -> CheckMessage:
    words = f"{lack.setting}: is not set: {lack.effect}"
    if not plans:
        return Info(words, hint=lack.hint, id=f"tailrace_protection.I00{number}")
    names = ", ".join(plans)
    return Warning(
        f"{words}, which subscribers of {names} have in their plan ({lack.handler})",
        hint=f"{lack.hint}; or take {lack.handler} out of these plans",
        id=f"tailrace_protection.W00{number + 2}",
    )


def _plans_that_owe(handler: str) -> Sequence[str]:
    """Return none if the database is away or not migrated: checks run without it, too."""
    try:
        with transaction.atomic(), statement_limit(STATEMENT_SECONDS):
            return unset.plans_that_owe(handler)
    except DatabaseError:
        return ()


@register("protection")
def libraries_are_installed(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """Only reports need them, so it is a warning."""
    if packages := libraries.missing_packages():
        return [Warning(libraries.how_to_install(packages), id="tailrace_protection.W002")]
    return []
