"""The Celery application of both Celery sides, with the settings that suit it best.

Early acks, no results, no task events, no gossip; database connections are kept.
"""

import os
import sys
import uuid

import django
from celery import Celery

OWED = "abcd"
app = Celery("bench_plain", broker=os.environ.get("BROKER_URL"))
app.conf.update(
    task_ignore_result=True,
    worker_send_task_events=False,
    task_send_sent_event=False,
    broker_connection_retry_on_startup=True,
    worker_hijack_root_logger=False,
)
# The Django fixup asks for this very name; without it each task opens a connection of its own.
app.conf["CELERY_DB_REUSE_MAX"] = 1000

EVENT = """
INSERT INTO tailrace_events_event (source, source_id, type, schema_version, subject, payload,
                          occurred_at, recorded_at, actor, trace_parent, problem)
VALUES ('plain', %s, 'bench.measured', 1, '', %s, now(), now(), '', '', '') RETURNING id
"""
EFFECT = "INSERT INTO bench_effect (job) VALUES (%s)"


def record() -> int:
    """Insert an event's row in the caller's transaction; return its id."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(EVENT, [uuid.uuid4().hex, '{"number": 1}'])
        return int(cursor.fetchone()[0])


def work(module: str) -> None:
    """Become Celery's worker: prefork, one process per core."""
    words = f"-m celery -A {module} worker -l WARNING --without-gossip --without-mingle -c".split()
    os.execv(sys.executable, [sys.executable, *words, os.environ["BENCH_PROCESSES"]])


def migrate() -> None:
    """Make the tables."""
    from django.core.management import call_command

    django.setup()
    call_command("migrate", verbosity=0)
