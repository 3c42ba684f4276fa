"""A job whose batch failed as a whole says why it is called alone, or with a few others."""

from collections.abc import Sequence

import pytest

from tailrace.jobs.engine.drain import drain
from tailrace.jobs.enqueue import enqueue_many
from tailrace.jobs.handler import ClaimedJob
from tailrace.jobs.models import Job
from tests.jobs import operators
from tests.jobs.inspection.explained import codes, words
from tests.kit import claimed
from tests.sandbox.handlers import Batch

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("running_worker")]
WHY = (
    "A batch with this job failed as a whole. To find the job that makes the batch fail, this job "
)


@pytest.fixture
def ids(scripted, settings) -> list[int]:
    """Eight jobs of one batch, of which the first is bad."""
    settings.JOBS_DRAIN_SECONDS = 0  # one call per drain
    enqueue_many(Batch, [{}] * 8)
    ids = list(Job.objects.order_by("id").values_list("id", flat=True))

    def work(jobs: Sequence[ClaimedJob]) -> None:
        if ids[0] in [job.id for job in jobs]:
            raise ValueError("poison")

    scripted("test.batch", work)
    return ids


def test_the_others_of_its_group_are_counted(ids) -> None:
    assert "suspect" not in codes(ids[0])
    drain("test.batch")
    for id in ids:
        assert words(id, "suspect") == f"{WHY}is called together with 1 job of the batch."
    claimed("test.batch")
    assert words(ids[0], "suspect") == f"{WHY}was called together with 1 job of the batch."


def test_a_job_that_failed_alone_is_called_alone(ids) -> None:
    for _ in range(7):
        drain("test.batch")
    assert words(ids[0], "suspect") == f"{WHY}is called on its own."
    assert Job.objects.filter(pk__in=ids[1:], state="completed").count() == 7
    assert "suspect" not in codes(ids[1])


def test_its_page_in_the_admin_shows_the_mark(ids) -> None:
    client = operators.client("viewer", "tailrace_jobs.view_job")
    page = f"/admin/tailrace_jobs/job/{ids[0]}/change/"
    mark = "called separately, after its batch failed"
    assert mark not in client.get(page).content.decode()
    drain("test.batch")
    content = client.get(page).content.decode()
    assert mark in content
    assert "is called together with 1 job of the batch" in content
