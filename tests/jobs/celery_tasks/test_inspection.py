"""`celery inspect` shows the calls that a worker holds by the names and ids of their tasks."""

from pathlib import Path
from typing import Any

import pytest
from celery import current_app

from tailrace.jobs.models import Job
from tests.kit import empty_broker, wait_until, worker
from tests.sandbox import durable

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow, pytest.mark.broker]


@pytest.mark.parametrize("pool", ["prefork", "threads"])
def test_inspect_shows_the_calls_that_a_worker_holds(
    pool: str, process_env, tmp_path: Path
) -> None:
    empty_broker()
    log, elsewhere = tmp_path / "worker.log", tmp_path / "other.log"

    def inspected(command: str, *arguments: Any) -> Any:
        reply = getattr(current_app.control.inspect([running.node], timeout=20), command)(
            *arguments
        )
        return reply[running.node]

    def found(command: str) -> list[dict[str, Any]]:
        return [info for info in inspected(command) if info["name"] == durable.nap.name]

    with (
        worker(process_env, ["celery"], log=log, pool=pool) as running,
        worker(process_env, ["media"], log=elsewhere) as other,
    ):
        result = durable.nap.delay(600)
        wait_until(lambda: bool(found("active")))
        [info] = found("active")
        assert (info["id"], info["args"], info["kwargs"]) == (result.id, [600], {})
        assert (info["hostname"], info["acknowledged"]) == (running.node, True)
        assert (info["delivery_info"]["routing_key"], found("reserved")) == ("celery", [])
        assert inspected("query_task", result.id, "unknown") == {result.id: ["active", info]}
        theirs = current_app.control.inspect([other.node], timeout=20)
        assert theirs.active() == {other.node: []}
        Job.objects.filter(payload__id=result.id).update(begun=False)
        assert (found("active"), [each["id"] for each in found("reserved")]) == ([], [result.id])


def test_a_call_shows_its_arguments_as_the_caller_lets_it(process_env, tmp_path: Path) -> None:
    empty_broker()
    with worker(process_env, ["celery"], log=tmp_path / "worker.log") as running:
        durable.nap.apply_async((600,), argsrepr="(hidden)", kwargsrepr="{}")
        inspect = current_app.control.inspect([running.node], timeout=20)
        wait_until(
            lambda: any(i["name"] == durable.nap.name for i in inspect.active()[running.node])
        )
        [info] = [i for i in inspect.active()[running.node] if i["name"] == durable.nap.name]
    assert (info["args"], info["kwargs"]) == ("(hidden)", "{}")
