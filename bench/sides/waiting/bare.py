"""No queue at all: one process with that many calls in flight. bare CALLS IN_FLIGHT"""

import asyncio
import os
import sys

from bench.sides.waiting.client import acall


async def main(calls: int, in_flight: int) -> None:
    """Each of these tasks takes the next call."""
    numbers = iter(range(calls))

    async def take() -> None:
        for number in numbers:
            await acall(f"{os.getpid()}-{number}")

    await asyncio.gather(*(take() for _ in range(in_flight)))


if __name__ == "__main__":
    asyncio.run(main(*map(int, sys.argv[1:])))
