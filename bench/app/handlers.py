"""Four handlers; BENCH_VARIANT says what each does with its jobs.

batch: inserts a row per job, all of a batch in one statement. single: a row per call.
stamp: appends event id and time to BENCH_STAMPS.
parts: writes that it was called. call: asks BENCH_DESTINATION. nothing: nothing.
Those of the other benchmarks follow.
"""

import os
import socket
import time
from collections.abc import Sequence
from typing import Any

from django.db import connection

from bench.app import parts
from bench.app.event_types import Aside, Measured
from bench.sides.waiting import client
from tailrace.jobs.handler import ClaimedJob, Handler

VARIANT = os.environ.get("BENCH_VARIANT", "batch")


class _Measured(Handler):
    on = [Measured]
    batch_size = 10 if VARIANT == "stamp" else 100


class _Batch(_Measured):
    def handle_batch(self, jobs: Sequence[ClaimedJob]) -> None:
        if VARIANT == "batch":
            with connection.cursor() as cursor:
                cursor.execute(
                    "INSERT INTO bench_effect (job) SELECT unnest(%s::text[])",
                    [[str(job.id) for job in jobs]],
                )


class _Single(_Measured):
    def handle(self, job: ClaimedJob) -> None:
        if VARIANT == "single":
            with connection.cursor() as cursor:
                cursor.execute("INSERT INTO bench_effect (job) VALUES (%s)", [str(job.id)])
        elif VARIANT == "stamp":
            _stamp(job)
        elif VARIANT == "parts":
            parts.reached("called")
        elif VARIANT == "call":
            _call()


def _stamp(job: ClaimedJob) -> None:
    line = f"{job.event.id if job.event else 0} {time.monotonic()}\n"
    os.write(_stamps(), line.encode())


_open: dict[str, Any] = {}


def _stamps() -> int:
    if "stamps" not in _open:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
        _open["stamps"] = os.open(os.environ["BENCH_STAMPS"], flags, 0o644)
    return int(_open["stamps"])


def _call() -> None:
    """Ask the destination over a connection that stays, as an HTTP client does."""
    if "destination" not in _open:
        port = int(os.environ["BENCH_DESTINATION"])
        _open["destination"] = socket.create_connection(("127.0.0.1", port), 10)
    _open["destination"].sendall(b"x")
    if _open["destination"].recv(1) != b"y":
        raise ConnectionError("the destination went away")


Base: type[Handler] = _Batch if VARIANT in ("batch", "nothing") else _Single


class EffectA(Base):  # type: ignore[misc, valid-type]
    """The first."""

    name = "bench.effect_a"


class EffectB(Base):  # type: ignore[misc, valid-type]
    """The second."""

    name = "bench.effect_b"


class EffectC(Base):  # type: ignore[misc, valid-type]
    """The third."""

    name = "bench.effect_c"


class EffectD(Base):  # type: ignore[misc, valid-type]
    """The fourth."""

    name = "bench.effect_d"


class Beside(Handler):
    """Works while another queue has many due jobs."""

    name = "bench.beside"
    on = [Aside]

    def handle(self, job: ClaimedJob) -> None:
        _stamp(job)


class Besides(Beside):
    """The same in another queue."""

    name = "bench.besides"


class Plain(Handler):
    """To be claimed in order."""

    name = "bench.plain"

    def handle(self, job: ClaimedJob) -> None:
        """Do nothing."""


class ShortCall(Handler):
    """Takes a millisecond."""

    name = "bench.short_call"

    def handle(self, job: ClaimedJob) -> None:
        time.sleep(0.001)


class Fair(Plain):
    """To be claimed from lanes in turn."""

    name = "bench.fair"
    fair = True


class Ordered(Plain):
    """To be claimed one per lane."""

    name = "bench.ordered"
    ordered = True


class Wait(Handler):
    """Waits for a server that answers after 100 ms, one call at a time."""

    name = "bench.wait"

    def handle(self, job: ClaimedJob) -> None:
        client.call(job.id)


class WaitTogether(Handler):
    """The same, many calls at a time."""

    name = "bench.wait_together"
    concurrency = 100

    async def handle(self, job: ClaimedJob) -> None:
        await client.acall(job.id)
