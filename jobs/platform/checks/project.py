"""System checks of a project that adds these apps: what cannot work in it, with the line to write.
The platform has its own (`config/startup/checks.py`)."""

from collections.abc import Iterator, Mapping
from typing import Any

from celery import current_app
from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.checks import CheckMessage, Error, Warning, register
from django.db import connections, router

from tailrace.db.engine_database import home
from tailrace.environment.conf import on_platform, project_settings
from tailrace.environment.suggest import did_you_mean

WITHIN_THE_PROCESS = ("memory", "filesystem")
"""Schemes of brokers without a server, which kombu has for tests."""


@register("jobs")
def check_project(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    return [] if on_platform() else [*_settings(), *_database(), *_celery()]


@register("jobs", deploy=True)
def check_insecure(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    return [] if on_platform() else project_settings().insecure()


def _settings() -> Iterator[CheckMessage]:
    """Yield the problems of TAILRACE, and of the settings of Django that the apps rely on."""
    given = getattr(settings, "TAILRACE", {})
    if not isinstance(given, Mapping):
        yield _error("E020", f"TAILRACE is {given!r}", "TAILRACE = {}  # a dict of settings")
        return
    known = project_settings()
    for problem in known.problems:
        yield _error(
            "E021", f"TAILRACE: {problem}", "its default is used; see docs/how-to/your-project.md"
        )
    for name in given:
        if name not in (*known.names, "DATABASE"):
            hint = f"remove it{did_you_mean(str(name), known.names)}"
            yield _error("E022", f"TAILRACE: no setting is called {name!r}", hint)
    if not settings.USE_TZ:
        yield _error(
            "E023", "USE_TZ is False; events and jobs have times with zones", "USE_TZ = True"
        )


def _database() -> Iterator[CheckMessage]:
    database = connections[home()]
    if database.vendor != "postgresql":
        yield _error(
            "E024",
            f"the database {home()!r} is {database.display_name}; events and jobs need"
            " PostgreSQL 15 or newer",
            "DATABASES = {'default': {'ENGINE': 'django.db.backends.postgresql', …}}",
        )

    if (users := router.db_for_write(get_user_model())) != home():
        yield _error(
            "E029",
            f"events and jobs are in the database {home()!r}, but users are in {users!r};"
            " they refer to each other",
            f'TAILRACE = {{"DATABASE": {users!r}}}',
        )


def _celery() -> Iterator[CheckMessage]:
    celery = current_app.conf
    if current_app.main == "default" and not celery.broker_url:
        yield Warning(
            "no Celery application is loaded: this process can wake no worker, so jobs begin up to"
            " two seconds later",
            hint="import it in the project's __init__.py: from .celery import app as celery_app",
            id="tailrace_jobs.W025",
        )
        return
    scheme = str(celery.broker_write_url or celery.broker_url or "").partition(":")[0]
    if scheme in WITHIN_THE_PROCESS:
        yield _error(
            "E026",
            f"the broker {scheme}:// works only within one process",
            "CELERY_BROKER_URL = 'redis://127.0.0.1:6379/0'  # or amqp://",
        )
    if "json" not in celery.accept_content and "application/json" not in celery.accept_content:
        yield _error(
            "E027",
            f"accept_content of Celery is {list(celery.accept_content)}; wake-ups are JSON",
            f"CELERY_ACCEPT_CONTENT = {[*celery.accept_content, 'json']}",
        )
    if celery.task_always_eager:
        yield Warning(
            "task_always_eager of Celery is True; jobs still run in workers, and tests have to run"
            " them",
            hint="CELERY_TASK_ALWAYS_EAGER = False; in tests, tailrace.jobs.testing.run_owed()",
            id="tailrace_jobs.W028",
        )


def _error(id: str, text: str, line: str) -> CheckMessage:
    return Error(text, hint=line, id=f"tailrace_jobs.{id}")
