"""System checks of protection: sources, files of operators, and system libraries."""

from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Info, Warning, register

from domains.protection.removals.brokers import InvalidBrokers, all_brokers
from domains.protection.reports import libraries


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
                id="protection.E001",
            )
            for problem in error.problems
        ]
    return []


@register("protection", deploy=True)
def sources_are_configured(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """Without a key nothing is looked up in breaches, without a server no property is scanned."""
    messages: list[CheckMessage] = []
    if not settings.PROTECTION_HIBP_KEY:
        messages.append(
            Info(
                "PROTECTION_HIBP_KEY: is not set: scans look nothing up, and are skipped",
                hint="set the key of a subscription from https://haveibeenpwned.com/API/Key",
                id="protection.I001",
            )
        )
    if not settings.PROTECTION_SODA_URL:
        messages.append(
            Info(
                "PROTECTION_SODA_URL: is not set: scans of properties fail, once each",
                hint="for New York City: https://data.cityofnewyork.us",
                id="protection.I002",
            )
        )
    return messages


@register("protection")
def libraries_are_installed(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """Only reports need them, so it is a warning."""
    if packages := libraries.missing_packages():
        return [Warning(libraries.how_to_install(packages), id="protection.W002")]
    return []
