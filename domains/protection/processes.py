"""The sample sources that `make run` starts if it runs its own database and no real source is
configured. The admin appears in their leaks, deeds and listings."""

from pathlib import Path

from django.conf import settings

from tailrace.domains.protection.sample_sources.hibp import KEY
from tailrace.environment.processes import Process


def runs_samples() -> bool:
    return settings.EMBEDDED.postgres and not settings.PROTECTION_HIBP_KEY


def sample_url() -> str:
    return f"http://127.0.0.1:{settings.PROTECTION_SAMPLE_PORT}"


def sample_brokers() -> Path:
    """Return the path of the sample brokers' file, which `manage.py seed_protection` writes."""
    return Path(settings.VAR_DIR) / "sample_brokers.yaml"


def sample_variables() -> dict[str, str]:
    """Return the variables with which scans and removals use the sample sources; configured sources
    are not replaced."""
    url = sample_url()
    variables = {
        "PROTECTION_HIBP_URL": url,
        "PROTECTION_PASSWORDS_URL": url,
        "PROTECTION_HIBP_KEY": KEY,
        "PROTECTION_HIBP_PER_MINUTE": "600",
    }
    if not settings.PROTECTION_SODA_URL:
        variables |= {"PROTECTION_SODA_URL": url}
    if not settings.PROTECTION_BROKERS_FILE:
        variables |= {
            "PROTECTION_BROKERS_FILE": str(sample_brokers()),
            "PROTECTION_LOCAL_BROKERS": "true",
        }
    return variables


def addresses() -> dict[str, str]:
    return {"Protection": f"{settings.PUBLIC_URL}/protection/"}


PROCESSES = [
    Process(
        "sources",
        "exec python -m tailrace sample_sources --port $PROTECTION_SAMPLE_PORT",
        runs=runs_samples,
        port="PROTECTION_SAMPLE_PORT",
        prepare="seed_protection",
        variables=sample_variables,
    ),
]
