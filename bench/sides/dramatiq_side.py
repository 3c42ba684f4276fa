"""Dramatiq on Redis: four messages per event, no state. prepare | publish N | work

Its defaults: a process per core with 8 threads each, messages acknowledged when they are done.
"""

import os
import sys
import threading

import dramatiq
import psycopg
from dramatiq.brokers.redis import RedisBroker

from bench.servers import dsn

broker = RedisBroker(url=os.environ["BROKER_URL"])
dramatiq.set_broker(broker)
_own = threading.local()


def connection() -> psycopg.Connection:  # type: ignore[type-arg]
    """The thread's connection, kept."""
    if not hasattr(_own, "connection"):
        _own.connection = psycopg.connect(dsn(os.environ["DATABASE_URL"]), autocommit=True)
    return _own.connection


@dramatiq.actor
def effect(event: int, letter: str) -> None:
    """Insert one row."""
    connection().execute("INSERT INTO bench_effect (job) VALUES (%s)", [f"{event}{letter}"])


def publish(count: int) -> None:
    """Only the messages: no event is recorded."""
    for number in range(count):
        for letter in "abcd":
            effect.send(number, letter)


if __name__ == "__main__":
    if sys.argv[1] == "work":
        words = ["-m", "dramatiq", "bench.sides.dramatiq_side", "-p", os.environ["BENCH_PROCESSES"]]
        os.execv(sys.executable, [sys.executable, *words])
    elif sys.argv[1] == "prepare":
        from bench.sides.celery_side import migrate

        migrate()
    else:
        publish(int(sys.argv[2]))
