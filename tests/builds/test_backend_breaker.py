"""A backend that hangs: one breaker for all that is sent to it, and no worker that waits long."""

import time

import pytest

from tailrace.domains.builds.backends.client import BackendClient, NotTried, breaker_name
from tailrace.domains.builds.backends.metadata import MetadataClient
from tailrace.domains.builds.models import Binary
from tailrace.domains.builds.sources.log_client import LogClient
from tailrace.events.models import Event
from tailrace.events.publish import NewEvent, publish
from tailrace.jobs.destinations import breaker
from tailrace.jobs.enqueue import enqueue
from tailrace.jobs.models import Breaker, Job
from tailrace.jobs.runtime.states import State
from tests.kit import wait_until
from tests.servers import backend as servers
from tests.servers.raw import hanging

pytestmark = pytest.mark.django_db(transaction=True)

HANDLERS = ("builds.update_backend_infos", "builds.update_released_binaries", "builds.poll")
DUE = 5
"""Seconds after which what was owed since `clock.stop()` is due, on a slow machine, too."""
COMMIT = {"project": "home:alice", "package": "hello", "user": "u"}


@pytest.fixture
def given_up():
    """What the hanging backend adds an item to for each connection that is closed."""
    return []


@pytest.fixture
def hangs(settings, monkeypatch, given_up):
    """A backend that accepts connections and never answers."""
    with hanging(lambda: given_up.append(1)) as port:
        settings.OBS_BACKENDS = {"main": f"http://127.0.0.1:{port}"}
        settings.OBS_TIMEOUT_SECONDS = 30
        monkeypatch.setattr(BackendClient, "short_seconds", 1.0)
        yield


def owe_one_of_each():
    """A refresh, a release and a read of the log."""
    source = "obs:main:1"
    publish(NewEvent("builds.commit", COMMIT, source=source))
    release = {"project": "home:alice", "repo": "standard", "payload": "k"}
    publish(NewEvent("builds.packtrack", release, source=source))
    enqueue("builds.poll", routing_key="main")


def jobs():
    return list(Job.objects.filter(handler__in=HANDLERS).order_by("id"))


def test_one_hanging_call_holds_back_all_others(hangs, given_up, run_jobs, clock):
    clock.stop()
    owe_one_of_each()
    clock.step(DUE)
    started = time.monotonic()
    for name in HANDLERS:
        run_jobs(name)
    assert time.monotonic() - started < 60
    wait_until(lambda: given_up)
    assert given_up == [1]
    refresh, release, read = jobs()
    assert "sent nothing for 1 s" in refresh.error
    for job in (release, read):
        assert (job.state, job.attempt) == (State.PENDING, 0)
        assert "the circuit breaker builds.backend:main is open" in job.error
    # The next one is the probe, and ends as soon: the log, too, is asked for something short.
    clock.step(10)
    assert run_jobs("builds.poll")
    wait_until(lambda: len(given_up) == 2)
    assert time.monotonic() - started < 120
    assert Breaker.objects.get(name=breaker_name("main")).opened == 2


def test_a_backend_that_is_back_closes_the_breaker(settings, run_jobs, clock):
    clock.stop()
    with servers.running() as running:
        settings.OBS_BACKENDS = {"main": running.url}
        settings.OBS_START = "oldest"
        running.store([])
        owe_one_of_each()
        clock.step(DUE)
        breaker.record_failure(breaker_name("main"), "away", at_once=True)
        run_jobs(*HANDLERS)
        assert running.requests == []
        assert {job.state for job in jobs()} == {State.PENDING}
        clock.step(20)
        run_jobs(*HANDLERS)
    assert {job.state for job in jobs()} <= {State.COMPLETED, State.SKIPPED}
    assert Breaker.objects.get(name=breaker_name("main")).open_until is None
    assert not Binary.objects.exists()


def test_errors_open_it_after_some_in_a_row_and_other_answers_close_it(settings):
    with servers.running() as running:
        settings.OBS_BACKENDS = {"main": running.url}
        with LogClient("main", running.url) as client:
            for _ in range(4):
                running.faults.append(servers.says(500))
                with pytest.raises(Exception, match="answered 500"):
                    client.end()
            assert client.end() == 1
            for _ in range(5):
                running.faults.append(servers.says(503))
                with pytest.raises(Exception, match="answered 503"):
                    client.end()
            with pytest.raises(NotTried):
                client.end()
    with MetadataClient("main") as metadata, pytest.raises(NotTried):
        metadata.project_meta("home:alice")


def test_a_long_poll_without_news_is_no_failure(backend, poll, settings, monkeypatch):
    monkeypatch.setattr("tailrace.domains.builds.sources.log_client.BLOCK_SECONDS", 0.2)
    settings.OBS_LONG_POLL = True
    backend.add(1)
    poll()
    poll()
    assert not Breaker.objects.filter(failures__gt=0).exists()
    assert Event.objects.count() == 1


def test_a_probe_of_a_slow_log_is_a_short_request(
    backend, poll, poller, settings, monkeypatch, clock
):
    monkeypatch.setattr(BackendClient, "short_seconds", 1.0)
    backend.add(2)
    poll()
    breaker.record_failure(breaker_name("main"), "away", at_once=True)
    clock.step(10)
    before = len(backend.reads)
    poll()
    probe, read = backend.reads[before:]
    assert "start" not in probe
    assert read["start"] == "2"
    assert poller().error == ""
    assert Breaker.objects.get().open_until is None
