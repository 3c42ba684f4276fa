"""The processes of `make run` that belong to builds."""

from django.conf import settings

from tailrace.environment.processes import Process


def addresses() -> dict[str, str]:
    buses = (url.removeprefix("file://") for url in settings.BUS_BACKENDS.values())
    return {"Bus": ", ".join(buses)}


PROCESSES = [
    Process(
        "bus",
        "exec python -m tailrace consume_bus",
        runs=lambda: bool(settings.BUS_SOURCE_URL),
    ),
]
