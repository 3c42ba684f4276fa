"""Revoked tasks, without a worker."""

import pytest
from celery import chain, current_app, group
from celery.exceptions import TaskRevokedError
from celery.signals import task_revoked

from tailrace.db.query import query
from tailrace.jobs.frameworks.celery_tasks.calling import revoked
from tailrace.jobs.frameworks.celery_tasks.calling.limits import Limits
from tailrace.jobs.models import CeleryTask, Job
from tests.kit import claimed, wait_until
from tests.sandbox import durable
from tests.sandbox.durable import add

pytestmark = pytest.mark.django_db


def test_a_revoked_task_is_a_cancelled_job(run_jobs) -> None:
    result = add.delay(1, 1)
    result.revoke()
    job = Job.objects.get()
    assert (job.state, job.error) == ("cancelled", "revoked")
    assert run_jobs() == 0
    with pytest.raises(TaskRevokedError, match="revoked"):
        result.get(timeout=1)


def test_what_follows_a_revoked_task_does_not_run(run_jobs) -> None:
    result = chain(add.s(1, 1), add.s(1)).delay()
    result.parent.revoke()
    assert run_jobs() == 0
    assert {job.state for job in Job.objects.all()} == {"cancelled"}
    assert add.AsyncResult(result.id).state == "FAILURE"


def test_a_group_is_revoked_at_once(run_jobs) -> None:
    result = group(add.s(1, 1), add.s(2, 2)).delay()
    result.revoke()
    assert run_jobs() == 0
    assert [each.state for each in result] == ["REVOKED", "REVOKED"]


def test_a_running_task_that_is_revoked_is_not_tried_again(run_jobs) -> None:
    result = add.delay(1, 1)
    [job] = claimed("tests.sandbox.durable.add")
    current_app.control.revoke(result.id)
    stored = Job.objects.get()
    assert (stored.state, stored.cancel_requested) == ("running", True)
    assert (result.state, job.id) == ("PENDING", stored.pk)


def test_celerys_remote_command_revokes_a_job() -> None:
    """`celery control revoke` lets each worker store the state."""
    result = add.delay(1, 1)
    durable.add.backend.mark_as_revoked(result.id, reason="revoked", store_result=True)
    assert (Job.objects.get().state, result.state) == ("cancelled", "REVOKED")


STAMPED = {"stamped_headers": ["order"], "order": "7"}


def test_tasks_are_revoked_by_their_stamps_also_if_they_are_called_later(
    run_jobs, received
) -> None:
    revoked = received(task_revoked)
    before = add.apply_async((1, 1), **STAMPED)
    other = add.apply_async((2, 2), **STAMPED | {"order": "8"})
    current_app.control.revoke_by_stamped_headers({"order": ["6", "7"]})
    after = add.apply_async((3, 3), **STAMPED)
    run_jobs()
    assert [each.state for each in (before, other, after)] == ["REVOKED", "SUCCESS", "REVOKED"]
    assert {each["request"].id for _name, _sender, each in revoked} == {before.id, after.id}
    assert Job.objects.filter(error="revoked by its stamps").count() == 2


def test_a_running_task_is_terminated_by_its_stamps() -> None:
    mine = add.apply_async((1, 1), **STAMPED)
    other = add.apply_async((1, 1), **STAMPED | {"order": ["8", "9"]})
    assert len(claimed("tests.sandbox.durable.add", 2)) == 2

    def ending() -> set[str]:
        return set(CeleryTask.objects.filter(state="REVOKED").values_list("task_id", flat=True))

    current_app.control.revoke_by_stamped_headers(["order=7"], terminate=True)
    assert ending() == {mine.id, "stamp:order=7"}
    current_app.control.revoke_by_stamped_headers({"order": "9"}, terminate=True)
    assert ending() == {mine.id, other.id, "stamp:order=7", "stamp:order=9"}
    assert Job.objects.filter(cancel_requested=True).count() == 2


@pytest.mark.django_db(transaction=True)
def test_the_thread_that_looks_for_revoked_calls_keeps_no_connection(monkeypatch) -> None:
    def sessions() -> int:
        sql = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
        return int(query(sql)[0][0])

    monkeypatch.setattr(revoked, "LOOK_SECONDS", 0.01)
    monkeypatch.setattr(revoked, "IDLE_SECONDS", 0.05)
    before = sessions()
    with revoked._Watcher().watched(1, Limits(None, None, 60)):
        wait_until(lambda: sessions() > before)
    wait_until(lambda: sessions() <= before)
