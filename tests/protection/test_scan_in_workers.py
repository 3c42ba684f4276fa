"""Scans in real workers: a worker that has to end, and one that is killed."""

import signal
from pathlib import Path

import pytest
from django.contrib.auth.models import User

from tailrace.domains.protection.models import Alert, Exposure
from tailrace.domains.protection.services.scanning.payload import SCAN
from tailrace.domains.protection.services.watchlist import items
from tailrace.jobs.enqueue import enqueue
from tailrace.jobs.models import Job
from tests.kit import wait_until, worker
from tests.protection.kit import customer
from tests.servers.hibp import KEY, HibpService, make_breach

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]
ITEMS = 12


@pytest.fixture
def env(process_env: dict[str, str], hibp: HibpService) -> dict[str, str]:
    """The environment of workers that ask the local service."""
    return process_env | {
        "PROTECTION_HIBP_URL": hibp.url,
        "PROTECTION_HIBP_KEY": KEY,
        "PROTECTION_HIBP_PER_MINUTE": "60000",
    }


@pytest.fixture
def ann(hibp: HibpService) -> User:
    """A customer whose values are all in a breach; each look-up takes a while."""
    user = customer("ann")
    for number in range(ITEMS):
        items.add(user.pk, "username", f"user{number}")
    hibp.add(make_breach("Adobe"), "*")
    hibp.delay = 0.2
    return user


def test_a_scan_goes_on_elsewhere_when_its_worker_ends(
    ann, hibp, env, run_jobs, tmp_path: Path
) -> None:
    job = Job.objects.get(pk=enqueue(SCAN, {"account": ann.pk}))
    with worker(env, [SCAN], log=tmp_path / "first") as first:
        wait_until(lambda: Exposure.objects.exists(), what="the first answer is stored")
        first.signal(signal.SIGTERM)
        first.process.wait(30)
    job.refresh_from_db()
    assert (job.state, job.attempt) == ("pending", 0), "handed back, and charged nothing"
    stored = Exposure.objects.count()
    assert 0 < stored < ITEMS
    hibp.delay = 0
    run_jobs(SCAN)
    job.refresh_from_db()
    assert job.state == "completed"
    assert Exposure.objects.count() == ITEMS
    assert Alert.objects.count() == 1
    assert sorted(hibp.asked()) == sorted(f"user{number}" for number in range(ITEMS)), "each once"
