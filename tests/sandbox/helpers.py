"""A task outside of the modules that are searched for tasks: TASKS names it in OPTIONS."""

from tailrace.jobs.frameworks.django_tasks.framework import task


@task(backend="elsewhere")
def helped() -> str:
    return "helped"
