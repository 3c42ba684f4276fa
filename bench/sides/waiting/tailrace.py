"""Our side. prepare | publish N | work: BENCH_HANDLER names the handler."""

import os
import sys

import django

from bench.sides.tailrace import prepare, work


def publish(count: int) -> None:
    """Jobs without events, by 1000."""
    from tailrace.jobs.enqueue import enqueue_many

    for start in range(0, count, 1000):
        jobs: list[dict[str, object]] = [{} for _ in range(start, min(start + 1000, count))]
        enqueue_many(os.environ["BENCH_HANDLER"], jobs)


if __name__ == "__main__":
    if sys.argv[1] == "work":
        work()
    django.setup()
    if sys.argv[1] == "prepare":
        prepare()
    else:
        publish(int(sys.argv[2]))
