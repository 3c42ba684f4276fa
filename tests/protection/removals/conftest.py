from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from django.contrib.auth.models import User

from tests.protection.kit import subscribed
from tests.protection.removals.kit import (
    QUEUES,
    form_entry,
    mail_entry,
    manual_entry,
    write_brokers,
)
from tests.servers.broker import DataBroker, data_broker
from tests.subscriptions.sample_domain import person


@pytest.fixture
def broker(settings, tmp_path: Path) -> Iterator[DataBroker]:
    """A broker that lists Ann, and the file that names it in three ways."""
    settings.PROTECTION_BROKERS_FILE = str(tmp_path / "brokers.yaml")
    settings.PROTECTION_LOCAL_BROKERS = True
    with data_broker() as running:
        running.people.add("Ann Example")
        entries = (form_entry(running), mail_entry(running), manual_entry(running))
        write_brokers(tmp_path / "brokers.yaml", *entries)
        yield running


@pytest.fixture
def rewrite(settings) -> Callable[..., None]:
    """Return `rewrite(*entries)`: other brokers, from now on."""
    return lambda *entries: write_brokers(Path(settings.PROTECTION_BROKERS_FILE), *entries)


@pytest.fixture
def ann() -> User:
    return subscribed(person("ann"))


@pytest.fixture
def run_removals(run_jobs: Callable[..., int]) -> Callable[[], int]:
    """Return a worker of the queues of removals alone."""
    return lambda: run_jobs(*QUEUES)
