"""Celery's events of tasks that run as jobs, as Flower and `celery events` receive them."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from celery import Celery, current_app
from structlog.testing import capture_logs

from tailrace.jobs.frameworks.celery_tasks.calling import events
from tailrace.jobs.frameworks.celery_tasks.running import Call
from tailrace.jobs.handler import Interrupted, LeaseLost
from tests.kit import claimed, empty_broker, wait_until, worker
from tests.sandbox import durable
from tests.servers.web import closed_port

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow, pytest.mark.broker]


@pytest.fixture
def received() -> Iterator[dict[str, list[dict[str, Any]]]]:
    """The events of each task by its id, in order; those of others by an empty id."""
    empty_broker()
    seen: dict[str, list[dict[str, Any]]] = defaultdict(list)
    with current_app.connection_for_read() as connection:
        receiver = current_app.events.Receiver(
            connection, handlers={"*": lambda event: seen[event.get("uuid", "")].append(event)}
        )
        thread = Thread(target=receiver.capture, kwargs={"wakeup": False})
        thread.start()
        yield seen
        receiver.should_stop = True
        thread.join()


def types(events: list[dict[str, Any]]) -> list[str]:
    return [event["type"] for event in events]


def test_each_call_sends_events_under_its_own_name_and_id(
    received, process_env, tmp_path: Path
) -> None:
    with worker(process_env, ["celery"], log=tmp_path / "worker.log", options=["-E"]) as running:
        result, failing = durable.add.delay(1, b=2), durable.fail.delay("no paper")
        assert result.get(timeout=60) == 3
        wait_until(lambda: len(received[result.id]) >= 3 and len(received[failing.id]) >= 3)
    begun, started, done = received[result.id]
    assert types([begun, started, done]) == ["task-received", "task-started", "task-succeeded"]
    assert (begun["name"], begun["args"], begun["kwargs"]) == (
        "tests.sandbox.durable.add", "[1]", "{'b': 2}",
    )  # fmt: skip
    assert (done["result"], done["hostname"]) == ("3", running.node)
    assert done["runtime"] < 60
    failed = received[failing.id][-1]
    assert (failed["type"], failed["exception"]) == ("task-failed", "ValueError('no paper')")
    assert "ValueError: no paper" in failed["traceback"]


def test_events_are_switched_on_and_off_while_a_worker_runs(
    received, process_env, tmp_path: Path
) -> None:
    def told(command: str) -> Any:
        [reply] = current_app.control.broadcast(command, reply=True, destination=[running.node])
        return reply[running.node]

    log, options = tmp_path / "worker.log", ["worker.send_task_events=False"]
    with worker(process_env, ["celery"], log=log, options=options) as running:
        before = durable.add.delay(1, 1)
        assert before.get(timeout=60) == 2
        assert told("enable_events") == {"ok": "task events enabled"}
        on = durable.add.delay(1, 2)
        wait_until(lambda: types(received[on.id])[-1:] == ["task-succeeded"])
        assert told("disable_events") == {"ok": "task events disabled"}
        after = durable.add.delay(1, 3)
        assert after.get(timeout=60) == 4
        assert told("enable_events") == {"ok": "task events enabled"}
        last = durable.add.delay(1, 4)  # the events of earlier calls would come before its
        wait_until(lambda: types(received[last.id])[-1:] == ["task-succeeded"])
    assert (received[before.id], received[after.id]) == ([], [])


def test_without_a_broker_events_are_lost_with_a_line_in_the_log() -> None:
    away = Celery("away", broker=f"redis://127.0.0.1:{closed_port()}/0", set_as_current=False)
    away.conf.broker_transport_options = {"max_retries": 1}
    events._waiting.append((away, "worker@test", "task-started", {"uuid": "1"}))
    with capture_logs() as lines:
        events._send_waiting(Counter(["events"]))
    [line] = lines
    assert (line["event"], line["count"]) == ("celery_tasks.events_not_sent", 1)
    assert "refused" in line["error"]


def test_a_call_that_runs_again_elsewhere_sends_no_failure(monkeypatch) -> None:
    """A call that the end of its worker interrupts was shown as failed."""
    monkeypatch.setattr(events, "_on", bytearray(b"\1"))
    durable.add.delay(1, 1)
    [job] = claimed(durable.add.name)
    call = Call(durable.add, job, job.payload)
    for error in (Interrupted(), LeaseLost("another worker has it")):
        events.raised(call, {"hostname": "worker@test"}, error)
    assert not events._waiting
