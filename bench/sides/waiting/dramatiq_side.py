"""Dramatiq on Redis, two processes with threads. publish N | work THREADS"""

import os
import sys

import dramatiq
from dramatiq.brokers.redis import RedisBroker

from bench.servers import redis_url
from bench.sides.waiting.client import call

dramatiq.set_broker(RedisBroker(url=redis_url(os.environ["BROKER_URL"])))


@dramatiq.actor
def wait(number: int) -> None:
    """One call."""
    call(number)


if __name__ == "__main__":
    if sys.argv[1] == "publish":
        for number in range(int(sys.argv[2])):
            wait.send(number)
    else:
        words = ["-m", "dramatiq", "bench.sides.waiting.dramatiq_side"]
        words += ["-p", os.environ["BENCH_PROCESSES"], "-t", sys.argv[2]]
        os.execv(sys.executable, [sys.executable, *words])
