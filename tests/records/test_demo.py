"""What `make run` shows a newcomer: a sample repository is harvested, and later has changed."""

import pytest

from tailrace.domains.records.models import Record, Source
from tailrace.domains.records.sources.requests import request_pull
from tailrace.samples.processes import repository_variables
from tailrace.samples.records.library import WITHDRAWN, sample_library
from tailrace.samples.records.seed import seed_records
from tests.servers.web import serving

pytestmark = pytest.mark.django_db(transaction=True)


def test_the_sample_repository_is_harvested_and_its_changes_follow(run_jobs, settings) -> None:
    seed_records()
    seed_records()
    source = Source.objects.get()
    with serving(sample_library().respond) as server:
        settings.RECORDS_LOCAL_SOURCES = [server.url]
        Source.objects.update(url=f"{server.url}/oai")
        run_jobs()
        source.refresh_from_db()
        assert source.last_error == ""
        assert Record.objects.current().count() == 50
        assert len(set(Record.objects.values_list("language", flat=True))) == 12
        request_pull(source.pk)
        run_jobs()
    withdrawn = Record.objects.filter(is_deleted=True).values_list("identifier", flat=True)
    assert set(withdrawn) == {f"sample-library:{identifier}" for identifier in WITHDRAWN}
    assert Record.objects.filter(title__contains="popravljeno", version=2).count() == 1


def test_the_sample_repository_is_on_this_machine_alone() -> None:
    assert repository_variables()["RECORDS_LOCAL_SOURCES"].startswith("http://127.0.0.1:")
