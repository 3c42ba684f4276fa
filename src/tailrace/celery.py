"""The class of Celery tasks that run as jobs.

app = Celery("shop", task_cls="tailrace.celery:Task")  # all tasks of the app
@shared_task(base=Task)                                # or single tasks
"""

from django.apps import apps

from tailrace.jobs.frameworks.celery_tasks.task import LeavingTask, Task

__all__ = ["LeavingTask", "Task"]

if apps.models_ready:  # else it is imported when Django is set up
    import tailrace.jobs.frameworks.celery_tasks.registration  # noqa: F401
