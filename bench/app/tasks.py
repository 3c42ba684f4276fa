"""A task that does nothing, so that the task framework's backend is measured."""

from django_tasks import task


@task
def nothing(number: int) -> int:
    return number
