"""The process that reads a source is killed while it stores a page."""

import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tailrace.domains.records.models import Deposition, Source
from tailrace.domains.records.sources.requests import request_pull
from tailrace.events.models import Event
from tailrace.jobs.engine.maintenance.ticking import rescue
from tailrace.jobs.models import Job
from tailrace.net.sample_server import Request
from tests.kit import PATIENCE, empty_broker, held, sessions_that_wait, wait_until, worker
from tests.records.sources.conftest import PULL
from tests.servers.oai_pmh import Repository

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]
PAGES, SIZE = 6, 10


def test_no_record_is_lost_or_doubled(
    repository: Repository,
    oai_source: Source,
    process_env: dict[str, str],
    tmp_path: Path,
    run_jobs: Callable[..., int],
) -> None:
    for number in range(PAGES * SIZE):
        repository.add(f"oai:{number}", title=f"Series {number}", creator="x")
    waits, goes_on = threading.Event(), threading.Event()

    def before(request: Request) -> None:
        if "resumptionToken" in request.path and len(repository.requests) == 5:
            waits.set()
            goes_on.wait(PATIENCE)

    repository.before = before
    empty_broker()
    local = {"RECORDS_LOCAL_SOURCES": repository.url, "RECORDS_REQUESTS_PER_SECOND": "1000"}
    request_pull(oai_source.pk)
    with worker(process_env | local, [PULL], log=tmp_path / "killed.log") as killed:
        wait_until(waits.is_set)
        # The page's cursor and depositions are written, its events wait, nothing is committed.
        with held("LOCK TABLE tailrace_events_event IN SHARE MODE"):
            goes_on.set()
            wait_until(lambda: sessions_that_wait() > 0)
            killed.kill()
    wait_until(lambda: sessions_that_wait() == 0)
    oai_source.refresh_from_db()
    assert oai_source.records_read == Deposition.objects.count() == 3 * SIZE
    job = Job.objects.running().get(handler=PULL)
    Job.objects.filter(pk=job.pk).update(lease_until=job.created_at)
    rescue.rescue()
    Job.objects.filter(pk=job.pk).update(due_at=job.created_at)
    run_jobs(PULL)
    assert Job.objects.filter(handler=PULL, state="completed").exists()
    oai_source.refresh_from_db()
    assert oai_source.records_read == PAGES * SIZE
    identifiers = Counter(Deposition.objects.values_list("source_identifier", flat=True))
    assert identifiers == {f"oai:{number}": 1 for number in range(PAGES * SIZE)}
    submitted = Event.objects.filter(type="records.deposition_submitted")
    assert submitted.count() == PAGES * SIZE
