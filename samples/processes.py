"""The samples of each domain in `make run`. What is configured is used instead of its sample."""

import os
import secrets

from django.conf import settings

from tailrace.environment import private_files
from tailrace.environment.processes import Process
from tailrace.samples.builds.seed import LOGINS, PROJECT, seed_builds
from tailrace.samples.protection.hibp import KEY
from tailrace.samples.protection.seed import brokers_file, seed_protection
from tailrace.samples.records.seed import seed_records
from tailrace.samples.timeline.seed import seed_timeline

POLL_SECONDS = "2"


def runs_backend() -> bool:
    """Return whether no real source of build events is configured."""
    return not settings.OBS_BACKENDS and not settings.BUS_SOURCE_URL


def backend_variables() -> dict[str, str]:
    """Return the environment variables that make the pollers read the sample backend."""
    return {
        "OBS_BACKEND_URL": f"sample=http://127.0.0.1:{settings.SAMPLE_BACKEND_PORT}",
        "OBS_NOPRUNE": os.environ.get("OBS_NOPRUNE", "no"),
        "OBS_PAST": os.environ.get("OBS_PAST", "notify"),
        "OBS_POLL_SECONDS": os.environ.get("OBS_POLL_SECONDS", POLL_SECONDS),
    }


def runs_sources() -> bool:
    """Return whether the database is embedded, and Have I Been Pwned is not configured."""
    return settings.EMBEDDED.postgres and not settings.PROTECTION_HIBP_KEY


def sources_variables() -> dict[str, str]:
    """Return the variables with which scans and removals use the sample sources; configured sources
    are not replaced."""
    url = f"http://127.0.0.1:{settings.PROTECTION_SAMPLE_PORT}"
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
            "PROTECTION_BROKERS_FILE": str(brokers_file()),
            "PROTECTION_LOCAL_BROKERS": "true",
        }
    return variables


def prepare_sources() -> str:
    """Create the samples of protection with the file of brokers that `sources_variables` gives the
    other processes."""
    given = settings.PROTECTION_BROKERS_FILE
    settings.PROTECTION_BROKERS_FILE = given or str(brokers_file())
    try:
        return seed_protection()
    finally:
        settings.PROTECTION_BROKERS_FILE = given


def runs_repository() -> bool:
    """Return whether the database is embedded, and no local source of records is configured."""
    return settings.EMBEDDED.postgres and not settings.RECORDS_LOCAL_SOURCES


def repository_variables() -> dict[str, str]:
    """Let the sample repository be read, though it is on this machine."""
    return {"RECORDS_LOCAL_SOURCES": f"http://127.0.0.1:{settings.RECORDS_SAMPLE_PORT}"}


def addresses() -> dict[str, str]:
    feed = f"{settings.PUBLIC_URL}/feeds/projects/{PROJECT}.atom"
    return {"Feed": feed} if runs_backend() else {}


def sample_password() -> str | None:
    """Return the password of the sample users; None if they cannot sign in, since the database may
    be one that others use."""
    if not settings.EMBEDDED.postgres:
        return None
    path = settings.VAR_DIR / "sample_password"
    return private_files.read_or_create(path, secrets.token_urlsafe(9))


def accounts() -> dict[str, str]:
    """Return the sample users and their password, if they can sign in with it."""
    from django.contrib.auth.models import User

    password = sample_password() if runs_backend() else None
    user = User.objects.filter(username=LOGINS[0]).first()
    if password is None or user is None or not user.check_password(password):
        return {}
    return {"Sample users": f"{', '.join(LOGINS)}, password {password}"}


PROCESSES = [
    Process(
        "backend",
        "exec python -m tailrace.samples backend --port $SAMPLE_BACKEND_PORT",
        runs=runs_backend,
        port="SAMPLE_BACKEND_PORT",
        prepare=lambda: seed_builds(sample_password()),
        variables=backend_variables,
    ),
    Process("timeline", runs=lambda: settings.EMBEDDED.postgres, prepare=seed_timeline),
    Process(
        "sources",
        "exec python -m tailrace.samples sources --port $PROTECTION_SAMPLE_PORT",
        runs=runs_sources,
        port="PROTECTION_SAMPLE_PORT",
        prepare=prepare_sources,
        variables=sources_variables,
    ),
    Process(
        "repository",
        "exec python -m tailrace.samples repository --port $RECORDS_SAMPLE_PORT",
        runs=runs_repository,
        port="RECORDS_SAMPLE_PORT",
        prepare=seed_records,
        variables=repository_variables,
    ),
]
