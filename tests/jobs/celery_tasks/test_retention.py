"""The ids of tasks are deleted with their jobs, the ids of groups by their age."""

import pytest
from celery import group

from tailrace.jobs.engine.maintenance.pruning import history, prune
from tailrace.jobs.models import CeleryTask, Job
from tests.sandbox.durable import add, fail

pytestmark = pytest.mark.django_db(transaction=True)

DAY = 86_400


def test_ids_go_with_their_jobs_and_groups_by_age(run_jobs, clock, settings) -> None:
    settings.JOBS_RETENTION_DAYS, settings.JOBS_FAILED_RETENTION_DAYS = 3, 9
    add.delay(1, 1)
    failed, deferred = fail.delay(), add.apply_async((1, 1), countdown=20 * DAY)
    group(add.s(1, 1), add.s(2, 2)).delay().save()
    run_jobs()
    assert CeleryTask.objects.count() == 6
    for _day in range(5):
        clock.step(DAY)
        history.move()
        prune.prune()
    assert set(CeleryTask.objects.values_list("pk", flat=True)) == {failed.id, deferred.id}
    for _day in range(6):
        clock.step(DAY)
        history.move()
        prune.prune()
    assert list(CeleryTask.objects.values_list("pk", flat=True)) == [deferred.id]
    assert Job.objects.count() == 1
