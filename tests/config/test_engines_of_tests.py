"""The tests' own engines: each test process has its own databases."""

import os

import pytest
from django.conf import settings
from django.db import connection
from kombu import Connection

from tests.addresses import key_space


@pytest.mark.parametrize(
    ("url", "own"),
    [
        ("redis+socket:///tmp/x/valkey.sock?virtual_host=0", "redis+socket:///tmp/x/valkey.sock?virtual_host=2"),
        ("redis://:word@host:6380/8", "redis://:word@host:6380/10"),
        ("redis://host", "redis://host/2"),
        ("amqp://me:word@host:5672/services", "amqp://me:word@host:5672/services_gw1"),
    ],
)  # fmt: skip
def test_a_test_process_has_a_key_space_or_vhost_of_its_own(url: str, own: str) -> None:
    assert key_space(url, "gw1") == own


@pytest.mark.django_db
def test_this_process_uses_its_own_database_and_key_space() -> None:
    worker = os.environ.get("PYTEST_XDIST_WORKER", "")
    assert connection.settings_dict["NAME"].startswith("test_")
    assert connection.settings_dict["NAME"].endswith(worker)
    with Connection(settings.BROKER_URL) as broker:
        channel = broker.default_channel
        if hasattr(channel, "client") and worker:
            number = channel.client.connection_pool.connection_kwargs["db"]
            assert number % 8 == int(worker.removeprefix("gw")) + 1
        else:
            assert broker.connected
