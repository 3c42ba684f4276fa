"""What `manage.py check` says about TASKS."""

import pytest

from tailrace.django_tasks import Backend
from tailrace.jobs.frameworks.django_tasks import registration
from tailrace.jobs.frameworks.django_tasks.framework import task_backends
from tailrace.jobs.platform.checks.handlers import check_handlers
from tests.sandbox import tasks


def problems(**options) -> list[str]:
    return [error.msg for error in Backend("default", {"OPTIONS": options}).check()]


def test_the_settings_of_the_tests_are_right() -> None:
    assert task_backends["default"].check() == []
    assert [each for each in check_handlers(None) if "sandbox.tasks" in each.msg] == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_attempt": 3}, "contains 'max_attempt', which is no option of tasks; did you mean"),
        (
            {"tasks": {"tests.sandbox.tasks.ad": {}}},
            "options for 'tests.sandbox.tasks.ad'; there is no such task; did you mean"
            " 'tests.sandbox.tasks.add'?",
        ),
        ({"tasks": {"tests.sandbox.tasks.add": {"rate": 3}}}, "contains 'rate' for 'tests.sand"),
        ({"tasks": {"tests.sandbox.tasks.foreign": {}}}, "no such task"),
    ],
)
def test_wrong_options_are_named(options, message: str) -> None:
    [problem] = problems(**options)
    assert problem.startswith("TASKS['default']['OPTIONS'] ")
    assert message in problem


def test_a_lane_is_an_argument_of_the_function(monkeypatch) -> None:
    path = "tests.sandbox.tasks.remind"
    handler = registration.handler_of(path)
    monkeypatch.setattr(handler, "lane_argument", "userr")
    [problem] = problems(tasks={path: {}})
    assert "has the lane 'userr' for 'tests.sandbox.tasks.remind'" in problem
    assert problem.endswith("one of the function's arguments: user, text")


def test_wrong_values_are_named_as_of_any_handler(monkeypatch) -> None:
    handler = registration.handler_of("tests.sandbox.tasks.add")
    for name, value in registration._fields({"max_attempts": 0, "backoff": 30}).items():
        monkeypatch.setattr(handler, name, value)
    messages = [error.msg for error in check_handlers(None) if "tasks.add" in error.msg]
    assert len(messages) == 2
    assert "max_attempts is 0; it must be above 0" in messages[1]
    assert "backoff is 30; write Backoff(60, 300)" in messages[0]


def test_the_apps_must_be_installed(settings) -> None:
    settings.INSTALLED_APPS = ["tests.sandbox"]
    [error] = task_backends["default"].check()
    assert "needs the apps tailrace.events and tailrace.jobs" in error.msg


def test_the_module_of_a_task_is_where_it_was_defined() -> None:
    handler = registration.handler_of(tasks.add.module_path)
    assert (handler.__module__, handler.__qualname__) == ("tests.sandbox.tasks", "add")
