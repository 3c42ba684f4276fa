"""taskiq on a Redis stream, two processes; acknowledged when done. publish N | work IN_FLIGHT"""

import asyncio
import os
import sys

from taskiq_redis import RedisStreamBroker

from bench.servers import redis_url
from bench.sides.waiting.client import acall

broker = RedisStreamBroker(url=redis_url(os.environ["BROKER_URL"]))


@broker.task(task_name="wait")
async def wait(number: int) -> None:
    """One call."""
    await acall(number)


async def publish(count: int) -> None:
    """One by one: it has no bulk."""
    await broker.startup()
    for number in range(count):
        await wait.kiq(number)
    await broker.shutdown()


if __name__ == "__main__":
    if sys.argv[1] == "publish":
        asyncio.run(publish(int(sys.argv[2])))
    else:
        words = ["-m", "taskiq", "worker", "bench.sides.waiting.taskiq_side:broker"]
        words += ["--workers", os.environ["BENCH_PROCESSES"], "--max-async-tasks", sys.argv[2]]
        words += ["--log-level", "WARNING"]
        os.execv(sys.executable, [sys.executable, *words])
