"""Tasks of django-tasks, on either backend: prepare | enqueue N [per transaction] | work."""

import os
import subprocess
import sys
import time

import django

from bench.sides import tailrace


def enqueue(count: int, at_once: int) -> None:
    """Enqueue that many tasks, one by one in their own transactions if `at_once` is 1; print the
    seconds that it took."""
    from contextlib import nullcontext

    from django.db import connection, transaction

    from bench.app.tasks import nothing

    connection.ensure_connection()
    began = time.monotonic()
    for start in range(0, count, at_once):
        with transaction.atomic() if at_once > 1 else nullcontext():
            for number in range(start, start + at_once):
                nothing.enqueue(number)
    print(time.monotonic() - began)


def become_db_workers() -> None:
    """Become a worker of django-tasks-db, after starting the others."""
    command = [sys.executable, "manage.py", "db_worker", "--no-startup-delay", "-v0"]
    command += ["--skip-checks"]
    for _ in range(int(os.environ["BENCH_PROCESSES"]) - 1):
        subprocess.Popen(command)
    os.execv(sys.executable, command)


def work() -> None:
    if "tailrace" in os.environ["BENCH_TASKS"]:
        tailrace.work()
    become_db_workers()


if __name__ == "__main__":
    if sys.argv[1] == "work":
        work()
    django.setup()
    {"prepare": tailrace.prepare, "enqueue": enqueue}[sys.argv[1]](*map(int, sys.argv[2:]))
