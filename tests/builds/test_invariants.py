"""The domain's invariants find what is wrong, repair it, and then find nothing."""

import pytest

from domains.builds.invariants import PollersAreHeldByTheLiving
from domains.builds.models import Poller
from domains.builds.sources.turn import Turn
from jobs.models import Job
from jobs.sweep import sweep

NAME = PollersAreHeldByTheLiving.name


@pytest.mark.django_db(transaction=True)
def test_a_lease_that_a_dead_worker_left_is_given_back():
    job = Job.objects.create(handler="builds.poll", state="running", claim_no=3)
    Turn.take("living", f"{job.pk}.3")
    Turn.take("killed", f"{job.pk}.2")
    Turn.take("vanished", "999999.1")
    (run,) = sweep([NAME])
    assert (run.found, run.repaired, run.error) == (2, 2, "")
    assert set(Poller.objects.exclude(lease_holder="").values_list("name", flat=True)) == {"living"}
    (again,) = sweep([NAME])
    assert again.found == 0
