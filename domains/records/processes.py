"""The process that records adds to `make run`: a sample repository, which is harvested.

It runs if the database is embedded and RECORDS_LOCAL_SOURCES is empty.
"""

from django.conf import settings

from tailrace.environment.processes import Process


def runs_sample() -> bool:
    return settings.EMBEDDED.postgres and not settings.RECORDS_LOCAL_SOURCES


def sample_variables() -> dict[str, str]:
    """Return the variables that allow the sample repository to be read, although it is local."""
    return {"RECORDS_LOCAL_SOURCES": f"http://127.0.0.1:{settings.RECORDS_SAMPLE_PORT}"}


def addresses() -> dict[str, str]:
    return {"Records": f"{settings.PUBLIC_URL}/records/"}


PROCESSES = [
    Process(
        "repository",
        "exec python -m tailrace sample_repository --port $RECORDS_SAMPLE_PORT",
        runs=runs_sample,
        port="RECORDS_SAMPLE_PORT",
        prepare="seed_records",
        variables=sample_variables,
    ),
]
