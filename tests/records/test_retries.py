"""An index that is broken: its jobs are retried and fail, those of the others complete once."""

from collections.abc import Callable
from typing import Any

import pytest

from tailrace.domains.records.models import KeywordEntry
from tailrace.jobs.models import Attempt, Job
from tests.records.kit import deposit
from tests.records.test_chain import CHAIN

pytestmark = pytest.mark.django_db
WAITS = (60, 120, 240, 300)


def test_an_index_that_is_away_is_tried_again_by_its_schedule(
    run_jobs: Callable[..., int], clock: Any, settings: Any
) -> None:
    settings.RECORDS_MODEL = "/nowhere/a-model"
    deposit()
    run_jobs(*CHAIN)
    vector = Job.objects.get(routing_key="vector")
    for attempt, seconds in enumerate(WAITS, 1):
        assert (vector.state, vector.attempt) == ("pending", attempt)
        wait = (vector.due_at - clock.now()).total_seconds()
        assert 0.8 * seconds - 5 <= wait <= 1.2 * seconds + 0.5
        clock.step(1.2 * seconds + 1)
        run_jobs(*CHAIN)
        vector.refresh_from_db()
    assert (vector.state, vector.attempt) == ("failed", 5)
    assert "/nowhere/a-model" in vector.error
    assert Attempt.objects.filter(job=vector).count() == 5
    keyword = Job.objects.get(routing_key="keyword")
    assert (keyword.state, keyword.claim_no) == ("completed", 1)
    assert KeywordEntry.objects.count() == 1


def test_a_job_of_an_index_that_is_gone_fails_at_once(run_jobs: Callable[..., int]) -> None:
    deposit()
    run_jobs(*CHAIN[:3])
    Job.objects.filter(routing_key="vector").update(routing_key="former", lane="former")
    run_jobs(*CHAIN)
    job = Job.objects.get(routing_key="former")
    assert (job.state, job.attempt) == ("failed", 1)
    assert job.error == "there is no index 'former'; the indexes are keyword, vector"
    assert Job.objects.get(routing_key="keyword").state == "completed"
