"""What `make run` shows of timelines: two samples are imported, if the database is our own."""

from django.conf import settings

from tailrace.environment.processes import Process


def addresses() -> dict[str, str]:
    return {"Timeline": f"{settings.PUBLIC_URL}/timeline/"}


PROCESSES = [
    Process("timeline", runs=lambda: settings.EMBEDDED.postgres, prepare="seed_timeline"),
]
