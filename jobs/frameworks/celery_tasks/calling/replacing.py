"""`self.replace()` in a task: the jobs that wait for its job wait for the replacement."""

from typing import Any

from celery.exceptions import ImproperlyConfigured

from tailrace.jobs.frameworks.celery_tasks import running
from tailrace.jobs.frameworks.celery_tasks.publishing.scope import Scope, collecting
from tailrace.jobs.frameworks.celery_tasks.task import continuing


def replace(task: Any, signature: Any) -> bool:
    """Collect the jobs of the replacement; they are inserted when the call has ended, whatever
    happens to the transaction in which it calls this. Return False if the call is no job. Raises
    ImproperlyConfigured if the replacement does not run as jobs."""
    call = running.call_of(task.request.id)
    if call is None:
        return False
    scope = Scope(task.app)
    with continuing(), collecting(scope.app, scope):
        signature.delay()
    if all(job.message.id != call.id for job in scope.jobs):
        raise ImproperlyConfigured(
            f"{task.name} runs as a job; the tasks that replace it must do so, too: give them the"
            " class tailrace.celery.Task"
        )
    call.replacement = scope.jobs
    return True
