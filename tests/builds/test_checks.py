"""What `manage.py check` says of the domain's settings."""

import pytest
from django.core.checks import run_checks


def found(tag="builds"):
    return {message.id: str(message) for message in run_checks(tags=[tag])}


def test_the_defaults_are_fine():
    assert found() == {}


@pytest.mark.parametrize("name", ["obs:1", "a b", "x" * 101, "a/b"])
def test_a_name_that_would_break_the_source_is_refused(settings, name):
    settings.OBS_BACKENDS = {name: "http://127.0.0.1:1"}
    assert "OBS_BACKEND_URL" in found()["builds.E001"]


def test_a_bus_that_is_both_source_and_destination_is_refused(settings):
    settings.BUS_BACKENDS = {"rabbit": "amqp://me:x@bus.example.org/a?exchange=pubsub"}
    settings.BUS_SOURCE_URL = "amqp://you:y@bus.example.org:5672/a"
    assert "the same bus as BUS_BACKENDS' rabbit" in found()["builds.E002"]
    settings.BUS_SOURCE_URL = "amqp://you:y@bus.example.org:5672/b"
    assert found() == {}
