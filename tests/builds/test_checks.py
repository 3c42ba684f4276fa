"""The system checks of builds."""

import pytest
from django.core.checks import run_checks


def errors(tag="builds"):
    return {message.id: str(message) for message in run_checks(tags=[tag])}


def test_the_defaults_are_fine():
    assert errors() == {}


@pytest.mark.parametrize("name", ["obs:1", "a b", "x" * 101, "a/b"])
def test_a_name_that_would_break_the_source_is_refused(settings, name):
    settings.OBS_BACKENDS = {name: "http://127.0.0.1:1"}
    assert "OBS_BACKEND_URL" in errors()["tailrace_builds.E001"]


def test_a_bus_cannot_be_both_source_and_destination(settings):
    settings.BUS_BACKENDS = {"rabbit": "amqp://me:x@bus.example.org/a?exchange=pubsub"}
    settings.BUS_SOURCE_URL = "amqp://you:y@bus.example.org:5672/a"
    assert "the same bus as BUS_BACKENDS' rabbit" in errors()["tailrace_builds.E002"]
    settings.BUS_SOURCE_URL = "amqp://you:y@bus.example.org:5672/b"
    assert errors() == {}


@pytest.mark.parametrize(
    ("url", "text"),
    [
        ("redis://127.0.0.1/", "unknown scheme redis://"),
        ("https://hooks.example.org/", "BUS_WEBHOOK_SECRET or BUS_SECRET_HOOK"),
        ("http://hooks.example.org/", "not encrypted"),
        ("file://", "does not name a file"),
    ],
)
def test_a_bus_that_cannot_work_is_reported_at_start(settings, url: str, text: str) -> None:
    settings.BUS_BACKENDS = {"hook": url}
    messages = [str(message.msg) for message in run_checks(tags=["builds"])]
    assert any(message.startswith("BUS_BACKENDS: hook") and text in message for message in messages)


def test_buses_that_can_work_pass(settings) -> None:
    settings.BUS_BACKENDS = {"file": "file:///tmp/x", "rabbit": "amqps://u:p@bus.example.org/%2F"}
    assert [m for m in run_checks(tags=["builds"]) if m.id == "tailrace_builds.E010"] == []


def test_a_bus_for_hidden_events_has_to_exist(settings) -> None:
    settings.BUS_BACKENDS = {"inside": "file:///tmp/x"}
    settings.BUS_TAKES_HIDDEN = ["insde"]
    assert "did you mean 'inside'?" in errors()["tailrace_builds.E005"]
    settings.BUS_TAKES_HIDDEN = ["inside"]
    assert errors() == {}


def test_a_bus_as_the_only_source_has_no_metadata(settings) -> None:
    settings.BUS_SOURCE_URL = "amqp://you:y@bus.example.org/b"
    settings.OBS_BACKENDS, settings.OBS_UNKNOWN_PROJECTS = {}, "hidden"
    ids = [message.id for message in run_checks(tags=["builds"])]
    assert "tailrace_builds.W004" in ids
    settings.OBS_UNKNOWN_PROJECTS = "public"
    assert "tailrace_builds.W004" not in [message.id for message in run_checks(tags=["builds"])]
