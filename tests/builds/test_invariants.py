"""The domain's invariants find what is wrong, repair it, and then find nothing."""

import pytest

from domains.builds.invariants import PollLeasesBelongToRunningJobs
from domains.builds.models import Poller
from domains.builds.sources.poll_lease import PollLease
from jobs.maintenance.sweep import sweep
from jobs.models import Job

NAME = PollLeasesBelongToRunningJobs.name


@pytest.mark.django_db(transaction=True)
def test_the_lease_of_a_dead_worker_is_released():
    job = Job.objects.create(handler="builds.poll", state="running", claim_no=3)
    PollLease.acquire("living", f"{job.pk}.3")
    PollLease.acquire("killed", f"{job.pk}.2")
    PollLease.acquire("vanished", "999999.1")
    (run,) = sweep([NAME])
    assert (run.found, run.repaired, run.error) == (2, 2, "")
    assert set(Poller.objects.exclude(lease_holder="").values_list("name", flat=True)) == {"living"}
    (again,) = sweep([NAME])
    assert again.found == 0
