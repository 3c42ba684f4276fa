"""The waker: it coalesces, outlives errors, is not inherited, and leaves nothing owed."""

import os
import subprocess
import sys
import threading
from collections.abc import Iterable

import pytest
from django.conf import LazySettings
from django.db import transaction

from events.publish import NewEvent, publish
from jobs import wake
from jobs.models import Queue
from jobs.waker import Waker
from tests.kit import ROOT, broker_length, empty_broker, wait_until
from tests.sandbox.event_types import Happened


class Recorder:
    """Stands where `wake` does; holds the thread until it is let go."""

    def __init__(self) -> None:
        self.calls: list[set[str]] = []
        self.go = threading.Event()

    def __call__(self, names: Iterable[str]) -> None:
        self.calls.append(set(names))
        assert self.go.wait(20)


def test_what_is_asked_while_it_is_at_work_becomes_one_call() -> None:
    recorder = Recorder()
    waker = Waker(recorder)
    waker.ask({"first"})
    wait_until(lambda: recorder.calls)
    for name in ("a", "b", "a", "c"):
        waker.ask({name})
    assert not waker.flush(seconds=0)
    recorder.go.set()
    assert waker.flush(seconds=20)
    assert recorder.calls == [{"first"}, {"a", "b", "c"}]


def test_an_error_does_not_end_it() -> None:
    heard: list[str] = []

    def fail(names: Iterable[str]) -> None:
        heard.extend(names)
        raise RuntimeError("as asked")

    waker = Waker(fail)
    for name in ("a", "b"):
        waker.ask({name})
        assert waker.flush(seconds=20)
    assert heard == ["a", "b"]


def test_a_thread_that_was_idle_ends_and_the_next_one_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("jobs.waker.IDLE_SECONDS", 0.01)
    heard: list[int] = []
    waker = Waker(lambda names: heard.append(threading.get_ident()))
    waker.ask({"a"})
    wait_until(lambda: heard)
    wait_until(lambda: heard[0] not in {thread.ident for thread in threading.enumerate()})
    waker.ask({"b"})
    assert waker.flush(seconds=20)
    assert len(heard) == 2


def test_where_no_thread_can_be_started_the_caller_does_it(monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[set[str]] = []
    waker = Waker(lambda names: heard.append(set(names)))

    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as limited:
        limited.setattr(threading.Thread, "start", refuse)
        waker.ask({"a"})
    assert heard == [{"a"}]
    waker.ask({"b"})
    assert waker.flush(seconds=20)
    assert heard == [{"a"}, {"b"}]


def test_a_forked_child_has_a_waker_of_its_own() -> None:
    """The parent's thread is at work, so its lock and its names are of no use to the child."""
    recorder = Recorder()
    waker = Waker(recorder)
    waker.ask({"parents"})
    wait_until(lambda: recorder.calls)
    waker.ask({"later"})
    ours, theirs = os.pipe()
    if (child := os.fork()) == 0:
        try:
            waker._wake = lambda names: os.write(theirs, ",".join(sorted(names)).encode())
            waker.ask({"childs"})
            waker.flush(seconds=20)
        finally:
            os._exit(0)
    recorder.go.set()
    os.close(theirs)
    assert os.read(ours, 100) == b"childs"
    os.close(ours)
    os.waitpid(child, 0)
    assert waker.flush(seconds=20)
    assert recorder.calls == [{"parents"}, {"later"}]


@pytest.mark.broker
@pytest.mark.django_db(transaction=True)
def test_a_publisher_leaves_the_wake_up_to_the_thread(
    settings: LazySettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    empty_broker()
    monkeypatch.setattr("jobs.waker.IDLE_SECONDS", 0.01)
    settings.JOBS_WAKE = "thread"
    with transaction.atomic():
        publish(NewEvent(Happened))
        assert wake.waker.flush(seconds=20)
        assert broker_length("test.log") == 0
    assert wake.waker.flush(seconds=20)
    assert broker_length("test.log") == 1
    assert Queue.objects.get(pk="test.log").awake
    wait_until(lambda: "waker" not in {thread.name for thread in threading.enumerate()})


@pytest.mark.broker
@pytest.mark.django_db(transaction=True)
def test_a_process_that_publishes_and_ends_has_woken_the_queue(process_env: dict[str, str]) -> None:
    empty_broker()
    code = (
        "import django; django.setup();"
        "from events.publish import NewEvent, publish;"
        "from tests.sandbox.event_types import Happened;"
        "publish(NewEvent(Happened))"
    )
    subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env=process_env | {"DJANGO_SETTINGS_MODULE": "tests.settings"},
        check=True,
        timeout=60,
    )
    assert broker_length("test.log") == 1
