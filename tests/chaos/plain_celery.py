"""The same work on plain Celery, at the settings that suit it best.

An event is a row; its tasks are sent when it is committed. CHAOS_SIDE is `early` (a message is
acknowledged when its task starts, as by default) or `late` (when it ends; a task whose worker
died comes back, at most three times; visibility timeout 10 s, looked at each second).
"""

import os
import sys
import time

from celery import Celery
from celery.signals import worker_ready

from tests.chaos.effects import effect

LATE = os.environ.get("CHAOS_SIDE") == "late"
TASKS = ("one", "together", "fair", "ordered", "slow", "flaky")

app = Celery("chaos_plain", broker=os.environ.get("BROKER_URL"), set_as_current=False)
app.conf.update(
    task_ignore_result=True,
    worker_prefetch_multiplier=1,
    broker_connection_retry_on_startup=True,
    broker_connection_max_retries=None,
    task_acks_late=LATE,
    task_reject_on_worker_lost=LATE,
    task_retry_on_worker_lost=LATE,
    broker_transport_options={
        "visibility_timeout": 10,
        "unacked_restore_interval": 1,
        "unacked_restore_throttle": 1,
    }
    if LATE
    else {},
    task_routes={f"plain.{name}": {"queue": f"plain.{name}"} for name in TASKS},
)


@worker_ready.connect
def _say_so(**kwargs: object) -> None:
    sys.stdout.write("ready.\n")
    sys.stdout.flush()


RECORD = "INSERT INTO chaos_event (id, number) VALUES (%s, %s) ON CONFLICT DO NOTHING"


def expected(number: int) -> list[str]:
    """The tasks of an event: a tenth have a slow one, a tenth one that fails at first."""
    last = {0: ["slow"], 1: ["flaky"]}.get(number % 10, [])
    return [*TASKS[:4], *last]


def record(id: str, number: int) -> None:
    """Record an event and send its tasks after the commit.

    An event that stands already is a client's second try: whether the tasks of the first were
    sent, nobody knows, so they are sent again.
    """
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(RECORD, [id, number])
    for name in expected(number):
        tasks[name].delay_on_commit(id)


def _task(name: str):
    def work(self, event: str) -> None:
        if name == "slow":
            time.sleep(0.4)
        if name == "flaky" and not self.request.retries:
            raise RuntimeError("as always at first")
        effect(f"plain.{name}", event, self.request.retries)

    # Three tries of a task whose worker died, and of one that raises.
    return app.task(
        bind=True, name=f"plain.{name}", autoretry_for=(RuntimeError,), max_retries=3,
        default_retry_delay=1, retry_jitter=False,
    )(work)  # fmt: skip


tasks = {name: _task(name) for name in TASKS}
