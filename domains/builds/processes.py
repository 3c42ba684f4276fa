"""The processes of `make run` that belong to builds."""

import os

from django.conf import settings

from tailrace.environment.processes import Process

SAMPLE_PROJECT = "home:alice"
SAMPLE_POLL_SECONDS = "2"


def runs_sample() -> bool:
    """Return whether to run the sample backend: only if no real source of events is configured."""
    return not settings.OBS_BACKENDS and not settings.BUS_SOURCE_URL


def sample_variables() -> dict[str, str]:
    """Return the environment variables that make the pollers read the sample backend."""
    return {
        "OBS_BACKEND_URL": f"sample=http://127.0.0.1:{settings.SAMPLE_BACKEND_PORT}",
        "OBS_NOPRUNE": os.environ.get("OBS_NOPRUNE", "no"),
        "OBS_PAST": os.environ.get("OBS_PAST", "notify"),
        "OBS_POLL_SECONDS": os.environ.get("OBS_POLL_SECONDS", SAMPLE_POLL_SECONDS),
    }


def addresses() -> dict[str, str]:
    buses = (url.removeprefix("file://") for url in settings.BUS_BACKENDS.values())
    return {
        "Feed": f"{settings.PUBLIC_URL}/feeds/projects/{SAMPLE_PROJECT}.atom",
        "Bus": ", ".join(buses),
    }


PROCESSES = [
    Process(
        "backend",
        "exec python -m tailrace sample_backend --port $SAMPLE_BACKEND_PORT",
        runs=runs_sample,
        port="SAMPLE_BACKEND_PORT",
        prepare="seed_builds",
        variables=sample_variables,
    ),
    Process(
        "bus",
        "exec python -m tailrace consume_bus",
        runs=lambda: bool(settings.BUS_SOURCE_URL),
    ),
]
