"""Procrastinate: async jobs kept in PostgreSQL. prepare | publish N | work IN_FLIGHT

Two worker processes; its jobs stay in its table when done.
"""

import asyncio
import os
import subprocess
import sys

import procrastinate

from bench.servers import dsn
from bench.sides.waiting.client import acall

BATCH = 1000
CONNECTIONS = 10
app = procrastinate.App(
    connector=procrastinate.PsycopgConnector(
        conninfo=dsn(os.environ["DATABASE_URL"]), max_size=CONNECTIONS
    )
)


@app.task(name="wait")
async def wait(number: int) -> None:
    """One call."""
    await acall(number)


async def prepare() -> None:
    """Its schema."""
    async with app.open_async():
        await app.schema_manager.apply_schema_async()


async def publish(count: int) -> None:
    """In bulk."""
    async with app.open_async():
        for start in range(0, count, BATCH):
            numbers = range(start, min(start + BATCH, count))
            await wait.batch_defer_async(*({"number": number} for number in numbers))


async def work(in_flight: int) -> None:
    """One worker."""
    async with app.open_async():
        await app.run_worker_async(concurrency=in_flight, install_signal_handlers=True)


if __name__ == "__main__":
    if sys.argv[1] == "work":
        command = [sys.executable, "-m", "bench.sides.waiting.procrastinate_side", "worker"]
        for _ in range(int(os.environ["BENCH_PROCESSES"]) - 1):
            subprocess.Popen([*command, sys.argv[2]])
    if sys.argv[1] == "prepare":
        asyncio.run(prepare())
    else:
        asyncio.run((publish if sys.argv[1] == "publish" else work)(int(sys.argv[2])))
