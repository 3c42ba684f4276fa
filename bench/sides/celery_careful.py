"""Plain Celery as a careful team writes it: a status row per task.

The publisher inserts the event and four pending rows in its transaction and sends the tasks on
commit; a task has its effect and marks its row done. prepare | publish N | work
"""

import sys

import django

from bench.sides.celery_side import EFFECT, OWED, app, migrate, record, work

TABLE = """
CREATE TABLE bench_task (
  id bigserial PRIMARY KEY, event_id bigint NOT NULL, effect text NOT NULL,
  state text NOT NULL DEFAULT 'pending', created_at timestamptz NOT NULL DEFAULT now(),
  finished_at timestamptz, UNIQUE (event_id, effect));
CREATE INDEX bench_task_pending ON bench_task (created_at) WHERE state = 'pending'
"""
OWE = """
INSERT INTO bench_task (event_id, effect) SELECT %s, unnest(%s::text[]) RETURNING id
"""
DONE = """
UPDATE bench_task SET state = 'done', finished_at = now() WHERE id = %s AND state = 'pending'
"""


@app.task(name="bench.careful")
def effect(task: int) -> None:
    """Insert one row, then mark the task done."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(EFFECT, [str(task)])
        cursor.execute(DONE, [task])


def prepare() -> None:
    """Make the tables, that of the states too."""
    migrate()
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(TABLE)


def publish(count: int) -> None:
    """One transaction per event, as in a request."""
    from django.db import connection, transaction

    for _ in range(count):
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(OWE, [record(), list(OWED)])
            for (task,) in cursor.fetchall():
                effect.delay_on_commit(task)


if __name__ == "__main__":
    if sys.argv[1] == "work":
        work("bench.sides.celery_careful")
    elif sys.argv[1] == "prepare":
        prepare()
    else:
        django.setup()
        publish(int(sys.argv[2]))
