"""A worker that is killed between the broker's answer and its record."""

import signal
from pathlib import Path

import pytest
from django.db.models.functions import Now

from tailrace.domains.protection.services.removals.moves import QUEUE
from tailrace.jobs.models import Job
from tests.kit import wait_until, worker
from tests.protection.removals.kit import history, now, started
from tests.timeline.kit import rescued

pytestmark = [pytest.mark.slow, pytest.mark.once, pytest.mark.django_db(transaction=True)]


def test_a_form_that_was_sent_is_repeated_with_the_same_key(
    broker, ann, process_env, settings, tmp_path: Path, run_removals
) -> None:
    env = process_env | {
        "PROTECTION_BROKERS_FILE": settings.PROTECTION_BROKERS_FILE,
        "PROTECTION_LOCAL_BROKERS": "true",
    }
    with worker(env, [QUEUE], log=tmp_path / "worker") as running:

        def kill(request) -> None:
            if request.method == "POST":
                running.signal(signal.SIGKILL)

        broker.before_answer = kill
        row = started(ann)
        wait_until(lambda: broker.sent, what="the form is sent")
        running.process.wait(60)
    assert now(row).state == "pending"
    broker.before_answer = lambda request: None
    rescued()
    Job.objects.filter(handler=QUEUE, state="pending").update(due_at=Now())
    run_removals()
    assert history(row) == ["pending", "submitted", "awaiting_confirmation"]
    keys = {request.headers["idempotency-key"] for request in broker.sent}
    assert (len(broker.sent), keys) == (2, {f"removal_{row.pk}_1"})
    assert len(broker.taken) == 1, "the broker knows it again"
