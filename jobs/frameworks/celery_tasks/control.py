"""Revoke tasks, and limit their rates. Both change the database if a task runs as a job, so they
also work without a worker."""

from collections.abc import Sequence
from typing import Any

from celery import signals, states
from celery.app.control import TERM_SIGNAME
from celery.app.control import Control as CeleryControl
from celery.app.task import Context
from celery.utils.functional import maybe_list
from celery.utils.time import rate as celery_rate
from django.db.models import Q

from tailrace.db import row_wait
from tailrace.db.query import execute, query
from tailrace.db.sql.arrays import number_array, text_array
from tailrace.db.sql.plans import probe
from tailrace.jobs.engine.waking import dependents, wake
from tailrace.jobs.frameworks.celery_tasks import handlers, stamps
from tailrace.jobs.models import Queue
from tailrace.jobs.operations.cancel import cancel as cancel_jobs

UNLIMITED = 1e6
"""Calls per second: instead of the limit that the task declares."""

_JOBS = """
SELECT t.task_id, t.job_id, j.state, j.handler, j.payload->'headers'->>'parent_id'
FROM tailrace_jobs_celerytask t LEFT JOIN tailrace_jobs_live j ON j.id = t.job_id
WHERE t.task_id = ANY(%(ids)s::text[]) AND t.job_id IS NOT NULL
"""
_TERMINATE = f"""
UPDATE tailrace_jobs_celerytask SET state = '{states.REVOKED}', meta = NULL
WHERE job_id = ANY(%(jobs)s::bigint[])
"""
_NOT_NEEDED = f"""
SELECT t.task_id, j.handler, j.payload->'headers'->>'parent_id'
FROM tailrace_jobs_celerytask t JOIN tailrace_jobs_job j ON {probe("j.id", "t.job_id")}
WHERE t.job_id = ANY(%(jobs)s::bigint[])
"""


class Control(CeleryControl):
    """Celery's control, with revoking and rate limits in the database."""

    def revoke(
        self,
        task_id: Any,
        destination: Any = None,
        terminate: bool = False,
        signal: Any = TERM_SIGNAME,
        **kwargs: Any,
    ) -> Any:
        """Revoke these tasks. Running ones that run as jobs end only with `terminate`; without it,
        they are not tried again. Other tasks are revoked by their workers, as by Celery."""
        ids = [str(getattr(each, "id", each)) for each in maybe_list(task_id) or []]
        others = sorted(set(ids) - cancel(ids, terminate=terminate))
        if not others:
            return [] if kwargs.get("reply") else None
        return super().revoke(
            others, destination=destination, terminate=terminate, signal=signal, **kwargs
        )

    def revoke_by_stamped_headers(
        self,
        headers: Any,
        destination: Any = None,
        terminate: bool = False,
        signal: Any = TERM_SIGNAME,
        **kwargs: Any,
    ) -> Any:
        """Revoke all tasks that have one of these stamps, also tasks that are called later."""
        stamps.store_revoked(headers)
        if terminate:
            cancel(list(stamps.running_with(headers)), terminate=True)
        return super().revoke_by_stamped_headers(
            headers, destination=destination, terminate=terminate, signal=signal, **kwargs
        )

    def rate_limit(self, task_name: str, rate: Any, *args: Any, **kwargs: Any) -> Any:
        """Set the rate limit of the task, such as `10/m`; 0 or None: no limit. Of a task that runs
        as jobs it is the limit of its queue, for all workers together. Workers set that of other
        tasks. Raises ValueError if the rate cannot be read."""
        if cls := handlers.declared.get(task_name):
            set_rate_limit(cls.name, celery_rate(rate))
        return super().rate_limit(task_name, rate, *args, **kwargs)


def set_rate_limit(handler: str, per_second: float) -> None:
    """Set the rate limit of the handler's queue, and of the queues of its variants; 0: none."""
    names = Q(name=handler) | Q(name__startswith=f"{handler}@")
    for queue in Queue.objects.filter(names).order_by("name"):
        with row_wait.bounded(Queue, name=queue.name):
            queue.rate_limit = per_second or UNLIMITED
            queue.save(update_fields=["rate_limit"])
        wake.on_commit({queue.name})


def cancel(task_ids: Sequence[str], *, terminate: bool = False) -> set[str]:
    """Cancel the unfinished jobs of these tasks, and return the ids of tasks that run as jobs. With
    `terminate`, their workers interrupt the running ones."""
    rows = query(_JOBS, ids=text_array(task_ids))
    live = {job: (id, handler, parent) for id, job, state, handler, parent in rows if state}
    if live:
        result = cancel_jobs(sorted(live), reason="revoked")
        if terminate and result.stop_requested:
            execute(_TERMINATE, jobs=number_array(result.stop_requested))
        for job in result.changed:
            if job in live:
                _announce(*live[job])
    return {id for id, *_rest in rows}


def announce_not_needed(jobs: Sequence[int]) -> None:
    """Send `task_revoked` for the calls of these jobs, which do not run since a task before them
    failed: their publication was announced when the canvas was applied."""
    if signals.task_revoked.receivers:
        for row in query(_NOT_NEEDED, jobs=number_array(jobs)):
            _announce(*row)


dependents.on_cancelled.append(announce_not_needed)


def _announce(task_id: str, handler: str, parent_id: str | None) -> None:
    """Send the signal that a worker sends when it leaves out a revoked task."""
    cls = handlers.declared.get(handler.partition("@")[0])
    if cls is not None and (task := cls.app._tasks.get(cls.task_name)) is not None:
        request = Context(id=task_id, task=task.name, parent_id=parent_id, called_directly=False)
        signals.task_revoked.send(
            sender=task, request=request, terminated=False, signum=None, expired=False
        )
