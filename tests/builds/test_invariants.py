"""The domain's invariants find what is wrong, repair it, and then find nothing."""

import pytest

from tailrace.domains.builds.invariants import (
    ChangesOfMetadataAreRead,
    PollLeasesBelongToRunningJobs,
)
from tailrace.domains.builds.models import Poller, UnreadChange
from tailrace.domains.builds.sources.poll_lease import PollLease
from tailrace.events.publish import NewEvent, publish
from tailrace.jobs.engine.maintenance.sweeping.sweep import sweep
from tailrace.jobs.models import Job

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


@pytest.mark.django_db(transaction=True)
def test_a_change_whose_refresh_failed_for_good_is_read_nevertheless(settings, clock):
    settings.OBS_BACKENDS = {"main": "http://127.0.0.1:9"}
    place = {"project": "home:alice"}
    publish([NewEvent("builds.update_project", place, source="obs:main:1")])
    publish([NewEvent("builds.update_package", place | {"package": "a"}, source="obs:main:1")])
    publish([NewEvent("builds.update_package", place | {"package": "b"}, source="obs:gone:1")])
    assert UnreadChange.objects.count() == 2
    refreshes = Job.objects.filter(handler="builds.update_backend_infos")
    clock.step(ChangesOfMetadataAreRead.age + 1)
    assert ChangesOfMetadataAreRead().find() == [], "their jobs are going to read them"
    refreshes.filter(unique_key="main:home:alice/_project").update(state="failed")
    assert ChangesOfMetadataAreRead().find() == [("main", "home:alice", "")]
    (run,) = sweep([ChangesOfMetadataAreRead.name])
    assert (run.found, run.repaired, run.error) == (1, 1, "")
    (again,) = sweep([ChangesOfMetadataAreRead.name])
    assert again.found == 0
    keys = refreshes.filter(state="pending").values_list("unique_key", flat=True)
    assert set(keys) == {"main:home:alice/_project", "main:home:alice/a", "gone:home:alice/b"}
