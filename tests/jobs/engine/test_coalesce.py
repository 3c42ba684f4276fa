"""What is done after commits is combined, survives errors, is not inherited, and is finished."""

import os
import threading
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from django.conf import LazySettings
from django.db import transaction

from tailrace.events.publish import NewEvent, publish
from tailrace.jobs.engine.coalesce import Coalescer
from tailrace.jobs.engine.waking import wake
from tailrace.jobs.models import QueueActivity
from tests import forks
from tests.kit import PATIENCE, ROOT, broker_length, empty_broker, wait_until
from tests.sandbox.event_types import Happened


class Recorder:
    """Stands where `wake` does; holds the thread until it is let go."""

    def __init__(self) -> None:
        self.calls: list[set[str]] = []
        self.go = threading.Event()

    def __call__(self, names: Iterable[str]) -> None:
        self.calls.append(set(names))
        assert self.go.wait(PATIENCE)


def waker_of(wake: Callable[[Iterable[str]], Any]) -> Coalescer[str]:
    return Coalescer("waker", wake, pace=0.003)


def test_what_is_asked_while_it_is_at_work_becomes_one_call() -> None:
    recorder = Recorder()
    waker = waker_of(recorder)
    waker.request({"first"})
    wait_until(lambda: recorder.calls)
    for name in ("a", "b", "a", "c"):
        waker.request({name})
    assert not waker.flush(seconds=0)
    recorder.go.set()
    assert waker.flush(seconds=PATIENCE)
    assert recorder.calls == [{"first"}, {"a", "b", "c"}]


@pytest.mark.parametrize("error", [RuntimeError, SystemExit])
def test_an_error_does_not_end_it(error: type[BaseException]) -> None:
    calls: list[str] = []

    def fail(names: Iterable[str]) -> None:
        calls.extend(names)
        raise error("as asked")

    waker = waker_of(fail)
    for name in ("a", "b"):
        waker.request({name})
        assert waker.flush(seconds=PATIENCE)
    assert calls == ["a", "b"]


def test_a_thread_that_was_idle_ends_and_the_next_one_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tailrace.jobs.engine.coalesce.IDLE_SECONDS", 0.01)
    calls: list[int] = []
    waker = waker_of(lambda names: calls.append(threading.get_ident()))
    waker.request({"a"})
    wait_until(lambda: calls)
    wait_until(lambda: calls[0] not in {thread.ident for thread in threading.enumerate()})
    waker.request({"b"})
    assert waker.flush(seconds=PATIENCE)
    assert len(calls) == 2


def test_where_no_thread_can_be_started_the_caller_does_it(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[set[str]] = []
    waker = waker_of(lambda names: calls.append(set(names)))

    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as limited:
        limited.setattr(threading.Thread, "start", refuse)
        waker.request({"a"})
    assert calls == [{"a"}]
    waker.request({"b"})
    assert waker.flush(seconds=PATIENCE)
    assert calls == [{"a"}, {"b"}]


def test_a_forked_child_has_a_waker_of_its_own() -> None:
    """The parent's thread is at work, so its lock and its names are of no use to the child."""
    recorder = Recorder()
    waker = waker_of(recorder)
    waker.request({"parents"})
    wait_until(lambda: recorder.calls)
    waker.request({"later"})
    ours, theirs = os.pipe()
    if (child := os.fork()) == 0:
        try:
            waker._call = lambda names: os.write(theirs, ",".join(sorted(names)).encode())
            waker.request({"childs"})
            waker.flush(seconds=PATIENCE)
        finally:
            os._exit(0)
    recorder.go.set()
    os.close(theirs)
    assert os.read(ours, 100) == b"childs"
    os.close(ours)
    os.waitpid(child, 0)
    assert waker.flush(seconds=PATIENCE)
    assert recorder.calls == [{"parents"}, {"later"}]


@pytest.mark.django_db(transaction=True)
def test_a_publisher_leaves_the_wake_up_to_the_thread(
    settings: LazySettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    empty_broker()
    monkeypatch.setattr("tailrace.jobs.engine.coalesce.IDLE_SECONDS", 0.01)
    settings.JOBS_WAKE = "thread"
    with transaction.atomic():
        publish(NewEvent(Happened))
        assert wake.waker.flush(seconds=PATIENCE)
        assert broker_length("test.log") == 0
    assert wake.waker.flush(seconds=PATIENCE)
    assert broker_length("test.log") == 1
    assert QueueActivity.objects.get(name="test.log").awake
    wait_until(lambda: "waker" not in {thread.name for thread in threading.enumerate()})


@pytest.mark.django_db(transaction=True)
def test_a_process_that_publishes_and_ends_has_woken_the_queue(process_env: dict[str, str]) -> None:
    empty_broker()
    code = (
        "import django; django.setup();"
        "from tailrace.events.publish import NewEvent, publish;"
        "from tests.sandbox.event_types import Happened;"
        "publish(NewEvent(Happened))"
    )
    forks.run(
        ["-c", code],
        cwd=ROOT,
        env=process_env | {"DJANGO_SETTINGS_MODULE": "tests.settings"},
        check=True,
        timeout=300,
    )
    assert broker_length("test.log") == 1
