"""What `make run` shows of protection, if the database is our own and no real source is configured:
sample sources, and an admin whose values are in their leaks."""

from django.conf import settings

from domains.protection.sample_sources.hibp import KEY
from environment.processes import Process


def runs_samples() -> bool:
    return settings.EMBEDDED.postgres and not settings.PROTECTION_HIBP_KEY


def sample_variables() -> dict[str, str]:
    """Let scans ask the sample sources."""
    url = f"http://127.0.0.1:{settings.PROTECTION_SAMPLE_PORT}"
    return {
        "PROTECTION_HIBP_URL": url,
        "PROTECTION_PASSWORDS_URL": url,
        "PROTECTION_HIBP_KEY": KEY,
        "PROTECTION_HIBP_PER_MINUTE": "600",
    }


def addresses() -> dict[str, str]:
    return {"Protection": f"{settings.PUBLIC_URL}/protection/"}


PROCESSES = [
    Process(
        "sources",
        "exec python manage.py sample_sources --port $PROTECTION_SAMPLE_PORT",
        runs=runs_samples,
        port="PROTECTION_SAMPLE_PORT",
        prepare="seed_protection",
        variables=sample_variables,
    ),
]
