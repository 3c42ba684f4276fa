"""What `make run` shows of protection, if the database is our own and no real source is configured:
sample sources, and an admin who is in their leaks, deeds and listings."""

from pathlib import Path

from django.conf import settings

from tailrace.domains.protection.sample_sources.hibp import KEY
from tailrace.environment.processes import Process


def runs_samples() -> bool:
    return settings.EMBEDDED.postgres and not settings.PROTECTION_HIBP_KEY


def sample_url() -> str:
    return f"http://127.0.0.1:{settings.PROTECTION_SAMPLE_PORT}"


def sample_brokers() -> Path:
    """Return where `manage.py seed_protection` writes the file of the sample brokers."""
    return Path(settings.VAR_DIR) / "sample_brokers.yaml"


def sample_variables() -> dict[str, str]:
    """Let scans and removals ask the sample sources, but for what is configured."""
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
