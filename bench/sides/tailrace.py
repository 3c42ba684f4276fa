"""Our side: prepare | publish N [events per transaction] | work. BENCH_VARIANT: batch or single."""

import os
import subprocess
import sys

import django


def prepare() -> None:
    """Migrate, and make the partitions of the history, as the first worker or beat does."""
    from django.core.management import call_command

    from tailrace.jobs.engine.maintenance.pruning import history

    call_command("migrate", verbosity=0)
    history.make_partitions()


def publish(count: int, at_once: int = 1) -> None:
    """Publish that many events, `at_once` per transaction; each has four jobs."""
    from django.db import transaction

    from bench.app.event_types import Measured
    from tailrace.events.publish import NewEvent
    from tailrace.events.publish import publish as record

    for start in range(0, count, at_once):
        with transaction.atomic():
            record([NewEvent(Measured, {"number": start + n}) for n in range(at_once)])


def work() -> None:
    """Become the worker as it ships, beside a beat."""
    subprocess.Popen(
        [
            sys.executable,
            "-m",
            "celery",
            "-A",
            "tailrace.config",
            "beat",
            "--pidfile=",
            "-l",
            "WARNING",
        ]
    )
    processes = os.environ["BENCH_PROCESSES"]
    os.execv(
        sys.executable,
        [
            sys.executable,
            "-m",
            "celery",
            "-A",
            "tailrace.config",
            "worker",
            "-l",
            "WARNING",
            "-c",
            processes,
        ],
    )


if __name__ == "__main__":
    if sys.argv[1] == "work":
        work()
    django.setup()
    {"prepare": prepare, "publish": publish}[sys.argv[1]](*map(int, sys.argv[2:]))
