"""django-tasks with its database worker: four tasks per event. prepare | publish N | work

A `db_worker` per core; its rows stay when done.
"""

import os
import sys

os.environ["DJANGO_SETTINGS_MODULE"] = "bench.sides.tasks_settings"
import django

django.setup()
from django_tasks import task  # noqa: E402

from bench.sides.celery_side import EFFECT, migrate  # noqa: E402
from bench.sides.tasks import become_db_workers  # noqa: E402


@task()
def effect(event: int, letter: str) -> None:
    """Insert one row."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(EFFECT, [f"{event}{letter}"])


def publish(count: int) -> None:
    """A thousand at a time: publishing is not what is measured."""
    from django.db import transaction

    for start in range(0, count, 1000):
        with transaction.atomic():
            for number in range(start, min(start + 1000, count)):
                for letter in "abcd":
                    effects.enqueue(number, letter)


if __name__ == "__main__":
    if sys.argv[1] == "work":
        become_db_workers()
    elif sys.argv[1] == "prepare":
        migrate()
    else:
        # Under this module's own name, or its path would be `__main__.effect` to the worker.
        from bench.sides.django_tasks_db import effect as effects

        publish(int(sys.argv[2]))
