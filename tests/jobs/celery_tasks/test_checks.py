"""What `manage.py check` says about tasks that run as jobs."""

import pytest

from tailrace.jobs.frameworks.celery_tasks.checks import check_celery_tasks
from tailrace.jobs.platform.checks.handlers import check_handlers
from tests.sandbox import durable


def messages() -> list[str]:
    return [f"{each.id}: {each.msg}" for each in check_celery_tasks(None)]


def test_the_settings_of_the_tests_are_right() -> None:
    assert messages() == []
    assert [each for each in check_handlers(None) if "sandbox.durable" in each.msg] == []


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"task_protocol": 1}, "E033: task_protocol of Celery is 1"),
        ({"worker_pool": "gevent"}, "W034: worker_pool of Celery is 'gevent': in it, calls"),
        ({"worker_deduplicate_successful_tasks": True}, "W035: worker_deduplicate_successful_task"),
    ],
)
def test_settings_that_are_not_supported_are_named(settings, message: str, configured) -> None:
    configured(**settings)
    [text] = messages()
    assert text.startswith(f"tailrace_jobs.{message}")


@pytest.mark.parametrize(
    ("attribute", "value", "message"),
    [
        ("serializer", "pickle", "E036: task 'tests.sandbox.durable.add' has the serializer 'pick"),
        ("rate_limit", "10/x", "E038: task 'tests.sandbox.durable.add' has the rate limit '10/x'"),
    ],
)
def test_tasks_that_are_not_supported_are_named(
    attribute: str, value: str, message: str, monkeypatch
) -> None:
    monkeypatch.setattr(type(durable.add._get_current_object()), attribute, value)
    [text] = messages()
    assert text.startswith(f"tailrace_jobs.{message}")
