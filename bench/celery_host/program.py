"""prepare | call COUNT PER_TRANSACTION | latency COUNT | group COUNT | chord COUNT | work OPTION…

`latency`, `group` and `chord` print seconds, the first for each call.
"""

import os
import sys
import time

import django

TABLES = """
CREATE TABLE bench_effect (
  id bigserial PRIMARY KEY, job text NOT NULL, at timestamptz NOT NULL DEFAULT clock_timestamp());
CREATE TABLE bench_task (
  id bigserial PRIMARY KEY, number bigint NOT NULL, state text NOT NULL DEFAULT 'pending',
  created_at timestamptz NOT NULL DEFAULT now(), finished_at timestamptz);
CREATE INDEX bench_task_pending ON bench_task (created_at) WHERE state = 'pending'
"""
OWE = "INSERT INTO bench_task (number) VALUES (%s) RETURNING id"
WARM = 50
PATIENCE = 300


def prepare() -> None:
    """Make the tables, and Tailrace's partitions, as the first worker or beat does."""
    from django.core.management import call_command
    from django.db import connection

    from tailrace.jobs.engine.maintenance.pruning import history

    call_command("migrate", verbosity=0)
    history.make_partitions()
    with connection.cursor() as cursor:
        cursor.execute(TABLES)


def call(count: int, at_once: int) -> None:
    """Call the task so often, some in each transaction."""
    from django.db import connection, transaction

    from bench.celery_host.celery import WAY, effect

    for start in range(0, count, at_once):
        with transaction.atomic(), connection.cursor() as cursor:
            for number in range(start, start + at_once):
                if WAY == "careful":
                    cursor.execute(OWE, [number])
                    effect.delay_on_commit(cursor.fetchone()[0])
                else:
                    effect.delay_on_commit(number)


def expect(result: int, got: int) -> None:
    if got != result:
        raise SystemExit(f"bench: the result is {got}; it must be {result}")


def latency(count: int) -> None:
    """Call a task and wait for its result, again and again."""
    from bench.celery_host.celery import add

    for number in range(-WARM, count):
        began = time.monotonic()
        expect(number + 1, add.delay(number, 1).get(timeout=PATIENCE))
        if number >= 0:
            print(time.monotonic() - began)


def group(count: int) -> None:
    """Call a group, and wait for its results."""
    from celery import group

    from bench.celery_host.celery import add

    add.delay(1, 1).get(timeout=PATIENCE)
    began = time.monotonic()
    results = group(add.s(number, 1) for number in range(count)).delay()
    expect(count * (count + 1) // 2, sum(results.get(timeout=PATIENCE)))
    print(time.monotonic() - began)


def chord(count: int) -> None:
    """Call a chord, and wait for the result of its callback."""
    from celery import chord

    from bench.celery_host.celery import add, total

    add.delay(1, 1).get(timeout=PATIENCE)
    began = time.monotonic()
    result = chord((add.s(number, 1) for number in range(count)), total.s()).delay()
    expect(count * (count + 1) // 2, result.get(timeout=PATIENCE))
    print(time.monotonic() - began)


def work(*options: str) -> None:
    """Become the worker: prefork, a process per core."""
    words = "-m celery -A bench.celery_host.celery worker -l WARNING -c".split()
    os.execv(sys.executable, [sys.executable, *words, os.environ["BENCH_PROCESSES"], *options])


if __name__ == "__main__":
    django.setup()
    import bench.celery_host.celery  # noqa: F401 the app that is current

    function = {each.__name__: each for each in (prepare, call, latency, group, chord, work)}
    words = [int(word) if word.isdigit() else word for word in sys.argv[2:]]
    function[sys.argv[1]](*words)
