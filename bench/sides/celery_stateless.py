"""Plain Celery without a state: the event's row, four tasks sent on commit, and each effect.

Nothing records which tasks are pending or done. prepare | publish N | work
"""

import sys

import django

from bench.sides.celery_side import EFFECT, OWED, app, migrate, record, work


@app.task(name="bench.stateless")
def effect(event: int, letter: str) -> None:
    """Insert one row."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(EFFECT, [f"{event}{letter}"])


def publish(count: int) -> None:
    """One transaction per event, as in a request."""
    from django.db import transaction

    for _ in range(count):
        with transaction.atomic():
            event = record()
            for letter in OWED:
                effect.delay_on_commit(event, letter)


if __name__ == "__main__":
    if sys.argv[1] == "work":
        work("bench.sides.celery_stateless")
    elif sys.argv[1] == "prepare":
        migrate()
    else:
        django.setup()
        publish(int(sys.argv[2]))
