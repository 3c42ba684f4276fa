"""Celery's own tasks that a canvas uses, and ours."""

from typing import Any

from celery.canvas import maybe_signature
from celery.exceptions import ChordError
from celery.utils.functional import maybe_list

from tailrace.jobs.frameworks.celery_tasks import running
from tailrace.jobs.frameworks.celery_tasks.message.opaque import value_from_json
from tailrace.jobs.frameworks.celery_tasks.publishing.scope import CHORD_ERROR
from tailrace.jobs.frameworks.celery_tasks.results import job_states
from tailrace.jobs.frameworks.celery_tasks.task import LeavingTask, Task

_OF_CANVAS = ("celery.accumulate", "celery.map", "celery.starmap")


def add(app: Any) -> None:
    """Add the tasks that run as jobs to the app."""
    app.task(call_errbacks_of_chord, name=CHORD_ERROR, base=Task, shared=False, ignore_result=True)
    _replace(app)
    app.on_after_finalize.connect(_replace, weak=False)  # the others


def _replace(sender: Any, **kwargs: Any) -> None:
    """Let Celery's tasks of maps and of groups that replace a task run as jobs, too."""
    app = sender
    base = LeavingTask if issubclass(app.Task, LeavingTask) else Task
    for name in _OF_CANVAS:
        task = app._tasks.get(name)
        if task is None or isinstance(task, Task):
            continue
        run = vars(type(task))["run"]
        del app._tasks[name]
        binds = not isinstance(run, staticmethod)
        app._task_from_fun(getattr(run, "__func__", run), name=name, base=base, bind=binds)


def call_errbacks_of_chord(body: dict[str, Any]) -> None:
    """Call the error callbacks of a chord whose body does not run, since a task of its header has
    failed."""
    call = running.current.get()
    assert call is not None  # noqa: S101
    app = call.task.app
    called = _called_by_nested_chords(app, call.job.id)
    errbacks = maybe_list(body["options"].get("link_error")) or []
    body["options"]["link_error"] = [each for each in errbacks if _key(each) not in called]
    try:
        raise app.backend.error_of_parents(call.job.id)
    except ChordError as error:  # Celery reads its traceback
        app.backend.chord_error_from_stack(maybe_signature(body, app=app), error)


def _called_by_nested_chords(app: Any, job: int) -> list[Any]:
    """Return the error callbacks of chords in the header: `link_error` of a chord adds its callback
    to them, too, and each is called once."""
    bodies = [each for each in job_states.of_parents(job) if each.is_chord_body]
    return [
        _key(errback)
        for body in bodies
        for errback in value_from_json(app, body.payload.get("embed", {})).get("errbacks") or []
    ]


def _key(errback: Any) -> Any:
    return errback["task"], list(errback["args"]), dict(errback["kwargs"])
