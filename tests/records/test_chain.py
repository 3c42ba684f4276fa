"""From a deposition to its record: validation, curation, publication, indexing."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tailrace.domains.records.depositions.submit import submit
from tailrace.domains.records.models import Deposition, Record
from tailrace.domains.records.search.indexing.backends import backends
from tailrace.events.models import Event
from tailrace.jobs.engine.drain import drain
from tailrace.jobs.models import Job
from tests.records.kit import LONG_AGO, deposit, draft, harvested, metadata, source

pytestmark = pytest.mark.django_db
CHAIN = [
    "records.validate_deposition",
    "records.auto_approve_curation",
    "records.publish_record",
    "records.index_record",
]


def test_each_step_causes_the_next_one(run_jobs: Callable[..., int]) -> None:
    row = deposit(user=User.objects.create_user("ana"))
    run_jobs(*CHAIN)
    row.refresh_from_db()
    record = Record.objects.get()
    assert (row.state, record.title, record.version) == ("published", "Snow depth at Vogel", 1)
    assert (record.creators, record.language, record.owner) == (
        ["Novak, Ana"],
        "en",
        row.submitted_by,
    )
    events = list(Event.objects.filter(type__startswith="records.").order_by("id"))
    assert [event.type for event in events] == [
        "records.deposition_submitted",
        "records.validation_completed",
        "records.deposition_approved",
        "records.record_published",
    ]
    assert [event.cause_id for event in events] == [None, *(event.pk for event in events[:3])]
    jobs = Job.objects.filter(handler__in=CHAIN).order_by("id")
    assert [job.handler for job in jobs] == CHAIN[:3] + [CHAIN[3]] * len(backends())
    assert {job.routing_key for job in jobs[3:]} == set(backends())
    assert {job.state for job in jobs} == {"completed"}


def test_an_invalid_deposition_names_its_problems_by_field(run_jobs: Callable[..., int]) -> None:
    wrong = {"title": " ", "language": "xx", "creators": [7], "colour": "blue"}
    row = deposit(metadata=wrong)
    no_title = deposit(metadata={"title": "?!", "creators": [], "language": "english"})
    run_jobs(*CHAIN)
    row.refresh_from_db()
    no_title.refresh_from_db()
    assert row.state == no_title.state == "invalid"
    assert {problem["field"] for problem in row.problems} == {"creators.0", "colour"}
    assert {problem["field"] for problem in no_title.problems} == {"title", "creators", "language"}
    assert not Record.objects.exists()
    assert not Job.objects.filter(handler="records.auto_approve_curation").exists()


def test_depositors_are_notified_and_what_is_harvested_makes_no_jobs_for_it(
    run_jobs: Callable[..., int],
) -> None:
    submit(harvested(2, source()))
    run_jobs(*CHAIN)
    assert not Job.objects.filter(handler="subscriptions.notify").exists()
    deposit(user=User.objects.create_user("ana"), metadata={})
    deposit(user=User.objects.create_user("bor"))
    run_jobs(*CHAIN)
    jobs = Job.objects.filter(handler="subscriptions.notify").order_by("pk")
    types = jobs.values_list("event__type", flat=True)
    assert list(types) == ["records.validation_completed", "records.record_published"]


def test_a_valid_deposition_waits_for_a_curator_if_it_should(
    run_jobs: Callable[..., int], settings
) -> None:
    settings.RECORDS_AUTO_APPROVE = False
    row = deposit()
    [harvested_id] = submit(harvested(1, source()))
    run_jobs(*CHAIN)
    row.refresh_from_db()
    assert row.state == "valid"
    assert Deposition.objects.get(pk=harvested_id).state == "published"
    job = Job.objects.get(handler="records.auto_approve_curation", state="skipped")
    assert job.error == "the deposition waits for a curator"


@pytest.mark.parametrize("together", [True, False])
def test_the_latest_version_is_the_record_in_whatever_order(
    run_jobs: Callable[..., int], together: bool
) -> None:
    versions = [
        draft(title, identifier="a", datestamp=LONG_AGO + timedelta(days=day))
        for title, day in (("second", 2), ("third", 3), ("first", 1))
    ]
    for batch in [versions] if together else [[version] for version in versions]:
        submit(batch)
        run_jobs(*CHAIN)
    record = Record.objects.get()
    assert record.title == "third"
    states = dict(Deposition.objects.values_list("metadata__title", "state"))
    assert states["first"] == "superseded"
    assert states["third"] == "published"


def test_a_withdrawal_leaves_the_title_and_takes_the_record_out_of_the_indexes(
    run_jobs: Callable[..., int],
) -> None:
    ana = User.objects.create_user("ana")
    first = deposit("Snow", ana, metadata=metadata("Snow", description="Deep.", access="closed"))
    run_jobs(*CHAIN)
    deposit(identifier=first.identifier, metadata={}, is_deleted=True)
    run_jobs(*CHAIN)
    record = Record.objects.get()
    assert (record.is_deleted, record.version, record.title) == (True, 2, "Snow")
    assert (record.description, record.creators) == ("", [])
    assert (record.owner, record.access) == (ana, "closed")


def test_a_record_that_was_deleted_before_it_was_known_does_not_come_back(
    run_jobs: Callable[..., int],
) -> None:
    submit([draft(identifier="a", datestamp=LONG_AGO + timedelta(days=1), is_deleted=True)])
    run_jobs(*CHAIN)
    submit([draft("late", identifier="a", datestamp=LONG_AGO)])
    run_jobs(*CHAIN)
    assert not Record.objects.current().exists()


@pytest.mark.parametrize("step", CHAIN[:3])
def test_a_batch_costs_few_statements(step: str, run_jobs: Callable[..., int]) -> None:
    submit(harvested(100, source()))
    for earlier in CHAIN[: CHAIN.index(step)]:
        run_jobs(earlier)
    with CaptureQueriesContext(connection) as statements:
        assert drain(step) == 100
    own = [each["sql"] for each in statements if "records_" in (each["sql"] or "")]
    assert 1 <= len(own) <= 4, own


def test_a_step_that_is_repeated_changes_nothing(run_jobs: Callable[..., int]) -> None:
    deposit()
    run_jobs(*CHAIN)
    before = Event.objects.count()
    Job.objects.filter(handler__in=CHAIN[:3]).update(
        state="pending", finished_at=None, done_on=None
    )
    run_jobs(*CHAIN)
    assert Event.objects.count() == before
    errors = Job.objects.filter(handler__in=CHAIN[:3]).values_list("error", flat=True)
    assert set(errors) == {"the deposition is already published"}
