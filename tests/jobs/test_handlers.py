"""Errors of handlers and event types are reported at start-up, by their names."""

import functools
import gc
import re
from collections.abc import AsyncIterator, Iterator
from importlib import import_module

import pytest
from pydantic import BaseModel

from tailrace.events import types
from tailrace.events.errors import UnknownEventType
from tailrace.events.types import EventType
from tailrace.jobs.engine import registry
from tailrace.jobs.handler import Cron, Handler
from tailrace.jobs.handler import __all__ as handler_names
from tailrace.jobs.platform.checks import handlers as checks
from tailrace.jobs.runtime.settings import JobsSettings
from tests.kit import ROOT
from tests.sandbox.event_types import Happened, HappenedAgain, Whispered
from tests.sandbox.handlers import Working


@pytest.fixture
def declared(monkeypatch) -> list[type[Handler]]:
    """The handlers that the checks look at in this test."""
    classes: list[type[Handler]] = []
    monkeypatch.setattr(registry, "handler_classes", lambda: classes)
    return classes


def handler(**fields: object) -> type[Handler]:
    """Declare a handler that no registry finds once the test is over."""
    base = {"name": "test.declared", "handle": lambda self, job: None}
    return type("Declared", (Handler,), base | fields)


def problems(declared: list[type[Handler]], *classes: type[Handler]) -> list[str]:
    declared[:] = classes
    return [f"{message.id} {message.msg}" for message in checks.check_handlers(None)]


def test_the_handlers_of_project_and_sandbox_are_valid() -> None:
    messages = [
        message for message in checks.check_handlers(None) if "test.declared" not in str(message)
    ]
    assert messages == []


def test_two_handlers_of_one_queue_are_named(declared) -> None:
    (message,) = problems(declared, handler(), handler())
    assert message.startswith("tailrace_jobs.E001 queue 'test.declared' has 2 handlers")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"handle": Handler.handle}, "either handle(job) or handle_batch(jobs)"),
        ({"handle_batch": lambda self, jobs: None}, "either handle(job) or handle_batch(jobs)"),
        ({"batch_size": 0}, "batch_size is 0"),
        ({"max_attempts": -1}, "max_attempts is -1"),
        ({"claim_timeout": 0}, "claim_timeout is 0"),
        ({"max_running": 0}, "max_running is 0"),
        ({"time_limit": 0}, "time_limit is 0"),
        ({"priority": 4}, "priority is 4"),
        ({"batch_sizes": lambda self: {"a": 1}}, "needs `fair = True` and handle_batch"),
        (
            {
                "fair": True,
                "handle": Handler.handle,
                "handle_batch": lambda self, jobs: None,
                "batch_sizes": lambda self: {"ana/a": 1},
            },
            "a key is the end of lanes: write 'a'",
        ),
        ({"on": [7]}, "must contain event types or their names"),
        ({"on": ["events.quarantine"]}, "no event type has this name; did you mean 'events.quar"),
        ({"on": ["shop.paid"]}, "whose app is not installed: the handler gets none of these"),
        ({"on": "test.happened"}, "must be a list of event types: on = ['test.happened']"),
        ({"on": Happened}, "it must be a list of event types: on = [Happened]"),
        ({"backoff": 60}, "backoff is 60; write Backoff(60, 300)"),
        ({"schedule": "0 8 * * *"}, "schedule is '0 8 * * *'; write Cron('0 8 * * *')"),
        ({"max_attempts": "3"}, "max_attempts is '3'; it must be a number"),
        ({"batch_size": None}, "batch_size is None; it must be a number"),
        ({"Payload": {"order": int}}, "it must be a pydantic model"),
        ({"handle": lambda self: None}, "write def handle(self, job): "),
        ({"schedule": Cron("nonsense")}, "its schedule"),
        ({"schedule": Cron("0 0 30 2 *")}, "its schedule"),
        ({"schedule": Cron("0 8 * * *", tz="No/Where")}, "its schedule"),
    ],
    ids=lambda value: value[:40] if isinstance(value, str) else next(iter(value)),
)
def test_a_wrong_declaration_is_named(declared, fields: dict, message: str) -> None:
    (problem,) = problems(declared, handler(**fields))
    assert message in problem


def test_an_error_names_the_line(declared) -> None:
    declared[:] = [type("Declared", (Working,), {"name": "test.work", "max_attempts": 0})]
    (error,) = checks.check_handlers(None)
    assert error.hint == "in tests.jobs.test_handlers"  # made by a call, so it stands in no file
    declared[:] = [handler(handle=_without_job)]
    (error,) = checks.check_handlers(None)
    line = _without_job.__code__.co_firstlineno
    assert error.msg.endswith(f"write def handle(self, job): {__file__}:{line}")


def _without_job(self: Handler) -> None: ...


def test_a_handler_without_a_name_is_an_error() -> None:
    fields = {"__module__": "shop.handlers", "handle": lambda self, job: None}
    cls = type("SendReceipt", (Handler,), fields)
    (error,) = [message for message in checks.check_handlers(None) if message.obj is cls]
    assert error.msg.startswith("shop.handlers.SendReceipt has no name, so it is not registered")
    base = type("Send", (Handler,), fields)
    named = type("SendInvoice", (base,), fields | {"name": "shop.send_invoice"})
    assert not [message for message in checks.check_handlers(None) if message.obj is base]
    del error, cls, base, named
    gc.collect()


async def coroutine(self: Handler, jobs: object) -> None: ...


async def async_generator(self: Handler, jobs: object) -> AsyncIterator[int]:
    yield 1


def generator(self: Handler, jobs: object) -> Iterator[int]:
    yield 1


CALLS = [
    (name, call)
    for name in ("handle", "handle_batch")
    for call in (coroutine, async_generator, generator)
    if (name, call) != ("handle", coroutine)
]


@pytest.mark.parametrize(("name", "call"), CALLS, ids=lambda c: getattr(c, "__name__", c))
def test_a_call_that_would_run_nothing_is_an_error(declared, name: str, call: object) -> None:
    fields = {"handle": Handler.handle, name: call}
    (problem,) = problems(declared, handler(**fields))
    assert f"its {name} " in problem
    assert ("async def" in problem) == (call is not generator)
    assert ".Declared" in problem
    assert f"{__file__}:{call.__code__.co_firstlineno}" in problem


def test_a_handler_may_be_async(declared) -> None:
    fields = {"handle": coroutine, "concurrency": 100, "per_destination": 4}
    assert problems(declared, handler(**fields)) == []


@pytest.mark.parametrize("field", ["concurrency", "per_destination"])
def test_fields_of_async_handlers_are_above_zero(declared, field: str) -> None:
    (problem,) = problems(declared, handler(handle=coroutine, **{field: 0}))
    assert f"{field} is 0; it must be above 0" in problem


@pytest.mark.parametrize("field", ["concurrency", "per_destination"])
def test_fields_of_async_handlers_are_no_others(declared, field: str) -> None:
    (problem,) = problems(declared, handler(**{field: 5}))
    assert "'test.declared'" in problem
    assert f"{field} has an effect only for handlers with `async def handle`" in problem


def test_an_async_function_behind_a_plain_one_is_an_error(declared) -> None:
    @functools.wraps(coroutine)
    def wrapped(self: Handler, job: object) -> object:
        return coroutine(self, job)

    (problem,) = problems(declared, handler(handle=wrapped))
    assert "async def" in problem


def test_a_wrong_setting_is_named_with_its_bounds(monkeypatch) -> None:
    monkeypatch.setenv("JOBS_DRAIN_SECONDS", "600")
    _settings, (problem,) = JobsSettings.load()
    assert problem.name == "JOBS_DRAIN_SECONDS"
    assert "'600' is not a whole number, 1 to 60" in str(problem)


def test_an_unknown_error_reporter_is_named(settings) -> None:
    settings.JOBS_ERROR_REPORTERS = ["tailrace.jobs.runtime.report.to_nowhere"]
    (error,) = checks.check_settings(None)
    assert "tailrace.jobs.runtime.report.to_nowhere" in error.msg


def test_the_pages_import_each_name_of_handlers_that_they_use() -> None:
    names = "reference/handlers", "how-to/enqueue", "how-to/schedules", "how-to/destinations"
    text = "\n".join((ROOT / f"docs/{name}.md").read_text() for name in names)
    imports = re.findall(r"^from (tailrace\.jobs\.[\w.]+) import \(?([\w, \n]+?)\)?$", text, re.M)
    imported = {name.strip() for _module, names in imports for name in names.split(",")} - {""}
    for module, names in imports:
        for name in filter(None, map(str.strip, names.split(","))):
            assert hasattr(import_module(module), name), (module, name)
    used = {*handler_names} | {"enqueue", "enqueue_many", "DestinationHandler"}
    called = {name for name in used if re.search(rf"\b{name}[(\[]|\({name}\b", text)}
    assert {"Every", "Cron", "Retry", "enqueue"} <= called
    assert called <= imported


def test_a_handler_is_found_by_its_name_or_suggested() -> None:
    assert isinstance(registry.get("test.work"), Working)
    assert registry.find("test.wrok") is None
    with pytest.raises(registry.UnknownHandler, match=r"did you mean 'test\.work'"):
        registry.get("test.wrok")


def test_event_types_are_found_by_name() -> None:
    assert types.get_type("test.happened_again") is HappenedAgain
    assert {Happened, Whispered} <= set(types.all_types())
    assert Whispered.description().startswith("Only handlers of the whole family")
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


def test_an_event_type_is_named_by_its_name_too() -> None:
    assert handler(on=[Happened.name]).event_types() == (Happened,)
    assert handler(on=["shop.paid"]).event_types() == ()
