"""Lists of big tables: nothing is counted, each page goes by an index."""

import pytest
from django.test import Client

from tailrace.events.models import Event
from tailrace.jobs.models import Job
from tailrace.jobs.platform.admin.lists import filters, pagination
from tests.jobs import operators

pytestmark = pytest.mark.django_db
EVENTS = "/admin/tailrace_events/event/"
JOBS = "/admin/tailrace_jobs/job/"


@pytest.fixture(scope="module")
def big_tables(django_db_setup: None, django_db_blocker: pytest.FixtureRequest) -> object:
    """60,000 events and 51,000 jobs, for all tests of this module."""
    with django_db_blocker.unblock():
        operators.fill_tables(60_000)
        yield
        Job.objects.all()._raw_delete("default")
        Event.objects.all()._raw_delete("default")


@pytest.fixture
def reader(big_tables: object) -> Client:
    operators.register_handlers()
    return operators.client(
        "reader",
        "tailrace_events.view_event",
        "tailrace_jobs.view_job",
        "tailrace_jobs.view_queue",
        "tailrace_jobs.view_job_payload",
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "address",
    [
        EVENTS,
        EVENTS + "?p=30000",
        EVENTS + "?p=-30000",
        EVENTS + "?type=events.quarantined",
        EVENTS + "?state=none",
        EVENTS + "?state=progress",
        EVENTS + "?state=settled",
        EVENTS + "?state=settled&p=30000",
        EVENTS + "?state=failures",
        EVENTS + "?problem=flagged",
        EVENTS + "?problem=acknowledged",
        EVENTS + "?recorded=1h",
        EVENTS + "?recorded=1h&state=none",
        EVENTS + "?recorded=7d&type=events.quarantined",
        EVENTS + "?q=home:user12",
        EVENTS + "?q=nobody",
        EVENTS + "?q=30000",
        JOBS,
        JOBS + "?p=30000",
        JOBS + "?p=-30000",
        JOBS + "?queue=operators.trim",
        JOBS + "?queue=operators.trim&state=failed",
        JOBS + "?state=failed",
        JOBS + "?state=pending",
        JOBS + "?state=skipped",
        JOBS + "?lane=lane7",
        JOBS + "?lane=nobody",
        JOBS + "?lane=lane7&state=completed&p=30000",
        JOBS + "?q=30000",
        JOBS + "?event=1000",
        JOBS + "?q=operators.trim+state:failed",
        JOBS + "?q=home:user12",
        JOBS + "?q=subject:home:user12",
        JOBS + "?q=lane:lane7",
        JOBS + "?q=key:1&p=30000",
        JOBS + "?q=lane:nobody+since:1h",
        JOBS + "?q=event:1000",
        JOBS + "?q=error:nothing",
        "/overview/panels",
    ],
)
def test_no_list_reads_a_table_from_end_to_end(reader: Client, address: str) -> None:
    statements = operators.statements(reader, address)
    counts = [sql for sql in statements if "COUNT(*)" in sql]
    # An estimate counts a table that its statistics call small; these are big.
    assert counts == []
    assert (
        operators.sequential_scans(statements, "tailrace_events_event", "tailrace_jobs_job") == []
    )


@pytest.mark.slow
def test_an_event_of_a_big_table_is_shown_by_indexes(reader: Client) -> None:
    id = Event.objects.order_by("-id").values_list("id", flat=True)[1000]
    statements = operators.statements(reader, f"{EVENTS}{id}/change/")
    assert (
        operators.sequential_scans(
            statements, "tailrace_events_event", "tailrace_jobs_job", "tailrace_jobs_attempt"
        )
        == []
    )


@pytest.mark.slow
def test_the_newest_page_shows_an_estimate(reader: Client) -> None:
    assert "about 60,000 in all" in reader.get(EVENTS).content.decode()


@pytest.mark.slow
def test_the_binary_search_for_a_time_finds_its_event(big_tables: object) -> None:
    late = Event.objects.order_by("-id").values_list("id", "recorded_at")[5000]
    first_id = filters.first_event_since(late[1])
    assert late[0] - 601 <= first_id <= late[0]


@pytest.mark.slow
def test_a_filter_without_an_index_reads_one_window(reader: Client) -> None:
    response = reader.get(JOBS + "?lane=nobody")
    changes = response.context["cl"]
    assert changes.result_list == []
    assert changes.looked_at == pagination.WINDOW
    beyond = Job.objects.order_by("-id").values_list("id", flat=True)[pagination.WINDOW - 1]
    assert changes.older_url == f"?lane=nobody&p={beyond}"
