"""The Celery application, with the same tasks for each way to run them."""

import os
from contextlib import nullcontext

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "bench.celery_host.settings")
WAY = os.environ.get("BENCH_TASKS", "jobs")
options = {"task_cls": "tailrace.celery:Task"} if WAY == "jobs" else {}
app = Celery("celery_host", **options)
app.config_from_object("django.conf:settings", namespace="CELERY")
app.conf.task_acks_late = WAY == "careful"
app.set_default()
app.autodiscover_tasks()
EFFECT = "INSERT INTO bench_effect (job) VALUES (%s)"
DONE = """
UPDATE bench_task SET state = 'done', finished_at = now() WHERE id = %s AND state = 'pending'
"""


@app.task(name="bench.effect", ignore_result=True)
def effect(task: int) -> None:
    """Insert a row; the careful way marks the task's row done in the same transaction."""
    from django.db import connection, transaction

    both = transaction.atomic() if WAY == "careful" else nullcontext()
    with both, connection.cursor() as cursor:
        cursor.execute(EFFECT, [str(task)])
        if WAY == "careful":
            cursor.execute(DONE, [task])


@app.task(name="bench.add")
def add(a: int, b: int) -> int:
    return a + b


@app.task(name="bench.total")
def total(numbers: list[int]) -> int:
    return sum(numbers)
