"""The entry of timelines in `make run`: it imports two samples into an embedded database."""

from django.conf import settings

from tailrace.environment.processes import Process


def addresses() -> dict[str, str]:
    return {"Timeline": f"{settings.PUBLIC_URL}/timeline/"}


PROCESSES = [
    Process("timeline", runs=lambda: settings.EMBEDDED.postgres, prepare="seed_timeline"),
]
