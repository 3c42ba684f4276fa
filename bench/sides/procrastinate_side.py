"""Procrastinate: four jobs per event, kept in PostgreSQL. prepare | publish N | work

A worker process per core, ten async jobs at a time each. Its jobs stay in its table when done.
"""

import asyncio
import os
import subprocess
import sys

import procrastinate
from psycopg_pool import AsyncConnectionPool

from bench.servers import dsn

CONCURRENCY = 10
BATCH = 1000
DSN = dsn(os.environ["DATABASE_URL"])
app = procrastinate.App(
    connector=procrastinate.PsycopgConnector(conninfo=DSN, max_size=CONCURRENCY)
)
_pool: list[AsyncConnectionPool] = []


@app.task(name="effect")
async def effect(event: int, letter: str) -> None:
    """Insert one row."""
    async with _pool[0].connection() as connection:
        await connection.execute("INSERT INTO bench_effect (job) VALUES (%s)", [f"{event}{letter}"])


async def work() -> None:
    """One worker."""
    pool = AsyncConnectionPool(DSN, max_size=CONCURRENCY, kwargs={"autocommit": True}, open=False)
    async with pool, app.open_async():
        _pool.append(pool)
        await app.run_worker_async(concurrency=CONCURRENCY, install_signal_handlers=True)


async def publish(count: int) -> None:
    """In bulk: publishing is not what is measured."""
    async with app.open_async():
        jobs = [{"event": number, "letter": letter} for number in range(count) for letter in "abcd"]
        for start in range(0, len(jobs), BATCH):
            await effect.batch_defer_async(*jobs[start : start + BATCH])


async def prepare() -> None:
    """Its schema, beside our table."""
    async with app.open_async():
        await app.schema_manager.apply_schema_async()


if __name__ == "__main__":
    if sys.argv[1] == "work":
        for _ in range(int(os.environ["BENCH_PROCESSES"]) - 1):
            subprocess.Popen([sys.executable, "-m", "bench.sides.procrastinate_side", "worker"])
        asyncio.run(work())
    elif sys.argv[1] == "worker":
        asyncio.run(work())
    elif sys.argv[1] == "prepare":
        from bench.sides.celery_side import migrate

        migrate()
        asyncio.run(prepare())
    else:
        asyncio.run(publish(int(sys.argv[2])))
