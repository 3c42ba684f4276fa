"""Handlers and event types: what is declared wrongly is said at start-up, by its name."""

import pytest
from pydantic import BaseModel

from events import types
from events.errors import UnknownEventType
from events.types import EventType
from jobs import checks, registry
from jobs.handler import Cron, Handler
from tests.sandbox.event_types import Happened, HappenedAgain, Whispered
from tests.sandbox.handlers import Working


@pytest.fixture
def declared(monkeypatch) -> list[type[Handler]]:
    """The handlers that the checks look at in this test."""
    classes: list[type[Handler]] = []
    monkeypatch.setattr(registry, "classes", lambda: classes)
    return classes


def handler(**fields: object) -> type[Handler]:
    """Declare a handler that no registry finds once the test is over."""
    base = {"name": "test.declared", "handle": lambda self, job: None}
    return type("Declared", (Handler,), base | fields)


def problems(declared: list[type[Handler]], *classes: type[Handler]) -> list[str]:
    declared[:] = classes
    return [f"{message.id} {message.msg}" for message in checks.check_handlers(None)]


def test_the_handlers_of_the_project_and_of_the_sandbox_are_sound() -> None:
    found = [
        message for message in checks.check_handlers(None) if "test.declared" not in str(message)
    ]
    assert found == []


def test_two_handlers_of_one_queue_are_named(declared) -> None:
    (said,) = problems(declared, handler(), handler())
    assert said.startswith("jobs.E001 the queue 'test.declared' has 2 handlers")


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"name": "jobs.tick"}, "jobs.E002"),
        ({"handle": Handler.handle}, "either handle(job) or handle_batch(jobs)"),
        ({"handle_batch": lambda self, jobs: None}, "either handle(job) or handle_batch(jobs)"),
        ({"batch_size": 0}, "batch_size is 0"),
        ({"max_attempts": -1}, "max_attempts is -1"),
        ({"claim_timeout": 0}, "claim_timeout is 0"),
        ({"max_running": 0}, "max_running is 0"),
        ({"time_limit": 0}, "time_limit is 0"),
        ({"priority": 4}, "priority is 4"),
        ({"on": ["test.happened"]}, "takes event types"),
        ({"schedule": Cron("nonsense")}, "its schedule"),
        ({"schedule": Cron("0 0 30 2 *")}, "its schedule"),
        ({"schedule": Cron("0 8 * * *", tz="No/Where")}, "its schedule"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_wrong_declaration_is_named(declared, fields: dict, said: str) -> None:
    (found,) = problems(declared, handler(**fields))
    assert said in found


def test_a_wrong_setting_is_named_with_its_bounds(settings) -> None:
    settings.JOBS_DRAIN_SECONDS = 600
    settings.JOBS_ERROR_REPORTERS = ["jobs.report.to_nowhere"]
    first, second = checks.check_settings(None)
    assert "JOBS_DRAIN_SECONDS is 600" in first.msg
    assert "0.1 to 60" in str(first.hint)
    assert "jobs.report.to_nowhere" in second.msg


def test_a_handler_is_found_by_its_name_or_suggested() -> None:
    assert isinstance(registry.get("test.work"), Working)
    assert registry.find("test.wrok") is None
    with pytest.raises(registry.UnknownHandler, match=r"did you mean 'test\.work'"):
        registry.get("test.wrok")


def test_event_types_are_found_by_name() -> None:
    assert types.get_type("test.happened_again") is HappenedAgain
    assert {Happened, Whispered} <= set(types.all_types())
    assert Whispered.description().startswith("Heard by nobody")
    with pytest.raises(UnknownEventType, match="event_catalog"):
        types.get_type("nothing.like.it")


def test_a_family_is_no_event_type_of_its_own() -> None:
    assert "SandboxEvent" not in {cls.__name__ for cls in types.all_types()}


def test_an_event_type_without_a_name_is_refused() -> None:
    with pytest.raises(TypeError, match="has no name"):
        type("Nameless", (EventType,), {})


def test_a_subclass_does_not_inherit_the_name() -> None:
    with pytest.raises(TypeError, match="has no name"):
        type("HappenedToo", (Happened,), {"Payload": BaseModel})


def test_two_event_types_of_one_name_are_refused() -> None:
    with pytest.raises(TypeError, match=r"both named 'test\.happened'"):
        type("Other", (EventType,), {"name": "test.happened"})
    assert types.get_type("test.happened") is Happened
