"""Commit a job, or send a task, and wait until it begins; again and again: SIDE COUNT."""

import sys
import time
from pathlib import Path

import django

from bench.app import parts

PAUSE = 0.05
PATIENCE = 10


def tailrace() -> None:
    """Commit a job."""
    from django.db import transaction

    from tailrace.jobs.enqueue import enqueue

    with transaction.atomic():
        transaction.on_commit(lambda: parts.reached("committed"))
        enqueue("bench.effect_a", {})


def celery() -> None:
    """Send a task."""
    from bench.sides.steady_load.celery_tasks import TASKS

    parts.reached("committed")
    TASKS[0].delay(0)  # type: ignore[attr-defined]
    parts.reached("sent")


def main(side: str, count: int) -> None:
    call, file = {"tailrace": tailrace, "celery": celery}[side], Path(parts.FILE)
    for number in range(1, count + 1):
        call()
        until = time.monotonic() + PATIENCE
        while file.read_text().count("called") < number:
            if time.monotonic() > until:
                raise SystemExit(f"bench: job {number} did not begin in {PATIENCE} s")
            time.sleep(PAUSE)


if __name__ == "__main__":
    django.setup()
    main(sys.argv[1], int(sys.argv[2]))
