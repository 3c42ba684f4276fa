"""What the suite's conftest.py is given: the app of the project, its worker, a limit for each test,
the tests that cannot apply, and the figures at the end."""

import os
import signal
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import django
import pytest
from celery.result import AsyncResult
from django.db import connection

from tests.celery_suite.project import celery_app as current

django.setup()
current.loader.import_default_modules()  # as `celery worker` does

from tests.celery_suite.reasons import not_applicable  # noqa: E402
from tests.celery_suite.worker import IDLE_SECONDS, POLL_SECONDS, Worker, discard  # noqa: E402

IS_DURABLE = os.environ["CELERY_SUITE_TASK"].startswith("tailrace")
LIMIT_SECONDS = float(os.environ["CELERY_SUITE_SECONDS"])
AGAIN_SECONDS = 5.0
"""A test that goes on after its limit, since it has caught that error, is stopped again."""
worker = Worker()
outcomes: dict[str, str] = {}
"""By test: passed, failed, expected to fail, skipped: reason, or listed: reason."""


@pytest.fixture(scope="session")
def celery_session_app() -> Any:
    return current


@pytest.fixture
def celery_app() -> Iterator[Any]:
    """The app; settings that a test changes are as before afterwards. What publishes reads some of
    them when it is made, which the suite expects of each test, since it makes an app for each."""
    before = dict(current.conf.changes)
    vars(current.amqp).pop("send_task_message", None)
    yield current
    current.conf.changes.clear()
    current.conf.changes.update(before)


@pytest.fixture(scope="session")
def celery_session_worker() -> None:
    """The worker is a process that runs already."""


@pytest.fixture
def manager(celery_app: Any) -> Any:
    """Celery's helper, without the end that waits for the worker: `settle` does it in time."""
    from celery.contrib.testing.manager import Manager

    return Manager(celery_app)


@pytest.fixture(autouse=True)
def ZZZZ_set_app_current(celery_app: Any) -> None:
    """Replaces the suite's fixture: our app is current already, and has our queues."""


def has_run(result: AsyncResult) -> bool:
    """Return whether the worker has run this task to its end."""
    if not IS_DURABLE:
        return worker.ask("has_run", id=result.id) is True
    from tailrace.jobs.models import CeleryTask, Job

    jobs = CeleryTask.objects.filter(pk=result.id).values("job_id")
    return Job.objects.filter(pk__in=jobs, state="completed").exists()


def clear_revoked_stamps() -> None:
    worker.ask("clear_revoked_stamps")


def pytest_sessionstart() -> None:
    discard()


def pytest_sessionfinish() -> None:
    worker.stop()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    reasons = not_applicable(durable=IS_DURABLE)
    for item in items:
        name = "::".join(item.nodeid.split("::")[1:])
        test, group = name.partition("[")[0], name.partition("::")[0]
        for key in (name, test, group):
            if reason := reasons.get(key):
                item.add_marker(pytest.mark.skip(reason=f"listed: {reason}"))
                break


@contextmanager
def limit(seconds: float) -> Iterator[None]:
    def stop(number: int, frame: Any) -> None:
        pytest.fail(f"took longer than {seconds:g} s")

    signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds, AGAIN_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    worker.ensure()
    with limit(LIMIT_SECONDS):
        return (yield)


def pytest_runtest_logreport(report: Any) -> None:
    if report.failed:
        outcomes[report.nodeid] = "failed"
    elif outcomes.get(report.nodeid) == "failed":
        return
    elif report.skipped and hasattr(report, "wasxfail"):
        outcomes[report.nodeid] = "expected to fail"
    elif report.skipped:
        outcomes[report.nodeid] = "skipped: " + report.longrepr[2].removeprefix("Skipped: ")
    elif report.when == "call":
        outcomes[report.nodeid] = "passed"


def pytest_runtest_logfinish(nodeid: str) -> None:
    """Leave nothing to the next test. After a failure it has a new worker."""
    outcome = outcomes.get(nodeid, "")
    if outcome.startswith("skipped"):
        return
    if outcome == "failed" or not settled():
        worker.stop()
        current.control.purge()
        if IS_DURABLE:
            with connection.cursor() as cursor:
                cursor.execute("DELETE FROM tailrace_jobs_live")


def settled() -> bool:
    """Discard what waits; return whether the worker is idle in time."""
    current.control.purge()
    until = time.monotonic() + IDLE_SECONDS
    while time.monotonic() < until:
        if not (_live_jobs() if IS_DURABLE else worker.ask("active")):
            return True
        time.sleep(POLL_SECONDS)
    return False


def _live_jobs() -> list[int]:
    from tailrace.jobs.models import Job
    from tailrace.jobs.operations.cancel import cancel
    from tailrace.jobs.runtime.states import LIVE

    live = Job.objects.filter(state__in=LIVE, cancel_requested=False)
    cancel(list(live.values_list("id", flat=True)), by="the suite", reason="the test has ended")
    return list(Job.objects.filter(state__in=LIVE).values_list("id", flat=True))


def pytest_terminal_summary(terminalreporter: Any) -> None:
    write = terminalreporter.write_line
    counts = Counter(outcome.partition(":")[0] for outcome in outcomes.values())
    reasons = Counter(each for each in outcomes.values() if each.startswith("skipped"))
    write("")
    for reason, number in reasons.most_common():
        words = reason.removeprefix("skipped: ")
        own = words.startswith("listed: ")
        write(f"{number:4} {words if own else f'skipped by the suite: {words}'}")
    if counts["expected to fail"]:
        write(f"{counts['expected to fail']:4} fail as the suite expects")
    applicable = counts["passed"] + counts["failed"]
    write(f"{counts['passed']} of {applicable} tests that apply passed; {len(outcomes)} in all")
