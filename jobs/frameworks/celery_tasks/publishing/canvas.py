"""Groups and chords of Celery: their jobs are collected, and inserted together as one flow."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from celery.canvas import _chord, group

from tailrace.jobs.frameworks.celery_tasks.durable import has_durable
from tailrace.jobs.frameworks.celery_tasks.publishing.scope import check_header, collecting


def install() -> None:
    """Wrap the methods of Celery that apply a group and a chord. They do nothing else for an app
    without tasks that run as jobs."""
    for cls, name, wrap in ((group, "apply_async", _collected), (_chord, "run", _with_body)):
        method = getattr(cls, name)
        if not hasattr(method, "__wrapped__"):
            setattr(cls, name, wrap(method))


def _collected(apply_async: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(apply_async)
    def apply(self: Any, *args: Any, **kwargs: Any) -> Any:
        app = self.app
        if not has_durable(app) or app.conf.task_always_eager:
            return apply_async(self, *args, **kwargs)
        with collecting(app):
            return apply_async(self, *args, **kwargs)

    return apply


def _with_body(run: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(run)
    def run_chord(self: Any, header: Any, body: Any, *args: Any, **kwargs: Any) -> Any:
        app = kwargs.get("app") or self._get_app(body)
        if not has_durable(app):
            return run(self, header, body, *args, **kwargs)
        with collecting(app) as scope:
            if header.tasks:
                scope.expects_chord = check_header(list(header.tasks), body, app)
            return run(self, header, body, *args, **kwargs)

    return run_chord
