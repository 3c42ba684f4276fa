"""Of the project in DJANGO_SETTINGS_MODULE: prepare | fill N QUEUE…: N jobs of each."""

import sys

import django


def prepare() -> None:
    from django.core.management import call_command

    from tailrace.jobs.engine.maintenance.pruning import history

    call_command("migrate", verbosity=0)
    history.make_partitions()


def fill(count: str, *queues: str) -> None:
    from tailrace.jobs.enqueue import enqueue_many

    for name in queues:
        enqueue_many(name, [{}] * int(count))


if __name__ == "__main__":
    django.setup()
    {"prepare": prepare, "fill": fill}[sys.argv[1]](*sys.argv[2:])
