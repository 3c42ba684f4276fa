"""Settings of the application that lose their meaning, or that are not supported."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from celery import Celery

from tailrace.jobs.frameworks.celery_tasks.checks import POOLS
from tailrace.jobs.frameworks.celery_tasks.message.opaque import is_accepted
from tailrace.jobs.platform.adopting.workers import Workers

_NO_MEANING = {
    "task_acks_late": "messages carry no work: a job of a lost worker is always run again",
    "task_reject_on_worker_lost": "a job of a lost worker is always run again, at most 4 times",
    "task_compression": "arguments are in the database",
    "worker_deduplicate_successful_tasks": "a job that has ended is not run again",
}
_NO_VISIBILITY = (
    "nothing waits in the broker that could be delivered twice: the time after which the job of a"
    " lost worker is run again is the claim's"
)


@dataclass(frozen=True, slots=True)
class SettingReport:
    name: str
    value: Any
    meaning: str
    is_obstacle: bool = False


def of_app(app: Celery, workers: Workers | None) -> Iterator[SettingReport]:
    """Yield the settings that a team should know of; `workers` are the running workers."""
    conf = app.conf
    for name, why in _NO_MEANING.items():
        if conf[name]:
            yield SettingReport(name, conf[name], f"has no meaning for durable tasks: {why}")
    options = conf.broker_transport_options or {}
    if "visibility_timeout" in options:
        name = "broker_transport_options['visibility_timeout']"
        meaning = f"has no meaning for durable tasks: {_NO_VISIBILITY}"
        yield SettingReport(name, options["visibility_timeout"], meaning)
    serializer = conf.task_serializer
    if serializer != "json" and not is_accepted(app, serializer):
        meaning = "is not supported: arguments are JSON, or in a serializer in accept_content"
        yield SettingReport("task_serializer", serializer, meaning, True)
    results = conf.result_serializer
    if results != "json" and not is_accepted(app, results):
        meaning = "has no meaning for durable tasks: their results are JSON, and"
        meaning += " a task that returns another value fails at its end"
        yield SettingReport("result_serializer", results, meaning)
    if conf.task_protocol == 1:
        yield SettingReport("task_protocol", 1, "is not supported: protocol 2 is needed", True)
    if conf.task_always_eager:
        meaning = "is as before: a call runs the task at once and creates no job"
        yield SettingReport("task_always_eager", True, meaning)
    yield from _pools(app, workers)


def _pools(app: Celery, workers: Workers | None) -> Iterator[SettingReport]:
    why = (
        "has no time limits for durable tasks, and revoke does not end a running call: use prefork"
    )
    if app.conf.worker_pool not in POOLS:
        yield SettingReport("worker_pool", str(app.conf.worker_pool), why)
    for node, pool in sorted((workers.pools if workers else {}).items()):
        if pool and pool not in POOLS:
            yield SettingReport(f"the pool of {node}", pool, why)
