"""System checks of protection: what operators write in files."""

from typing import Any

from django.core.checks import CheckMessage, Error, register

from domains.protection.removals.brokers import InvalidBrokers, all_brokers


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
