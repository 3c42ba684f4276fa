"""Repositories are harvested as OAI-PMH says: periods, tokens, deletions, errors."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tailrace.domains.records.models import Deposition, Source
from tailrace.domains.records.sources import oai_pmh
from tailrace.jobs.models import Job
from tailrace.jobs.runtime.states import State
from tests.servers.oai_pmh import Repository
from tests.servers.web import Response

pytestmark = pytest.mark.django_db(transaction=True)
Pull = Callable[[Source], Job]
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def fill(repository: Repository, count: int, first: int = 0, **fields: Any) -> None:
    for number in range(first, first + count):
        elements = {"title": f"Series {number}", "creator": "Novak, Ana"} | fields
        repository.add(f"oai:{number:03}", **elements)


def titles() -> list[str]:
    return list(Deposition.objects.order_by("pk").values_list("metadata__title", flat=True))


def verbs(repository: Repository) -> list[str]:
    return [request["verb"] for request in repository.requests]


def test_all_pages_of_a_list_are_read_once(repository, oai_source, pull: Pull) -> None:
    fill(repository, 25)
    job = pull(oai_source)
    assert job.result == {"read": 25, "submitted": 25}
    assert titles() == [f"Series {number}" for number in range(25)]
    assert verbs(repository) == ["Identify", *3 * ["ListRecords"]]
    first, *others = repository.requests[1:]
    assert first["metadataPrefix"] == "oai_dc"
    assert "from" not in first
    assert all(request.keys() == {"verb", "resumptionToken"} for request in others), "exclusive"
    assert (oai_source.records_read, oai_source.records_total) == (25, 25)
    assert oai_source.completed_at
    assert oai_source.last_error == ""
    deposition = Deposition.objects.first()
    assert deposition.identifier == "sample:oai:000"
    assert deposition.source == oai_source
    assert (job.progress_done, job.progress_total) == (25, 25)


@pytest.mark.parametrize("granularity", ["YYYY-MM-DD", "YYYY-MM-DDThh:mm:ssZ"])
def test_only_what_has_changed_is_read_again_and_nothing_doubles(
    repository, oai_source, pull: Pull, granularity
) -> None:
    repository.granularity = granularity
    repository.clock = lambda: NOON
    for number in range(3):
        repository.add(
            f"oai:{number}",
            changed_at=NOON - timedelta(days=2 * number),
            title=f"Series {number}",
            creator="Novak, Ana",
        )
    pull(oai_source)
    repository.clock = lambda: NOON + timedelta(hours=1)
    repository.add("oai:0", title="Series 0, corrected", creator="Novak, Ana")
    repository.requests.clear()
    job = pull(oai_source)
    begins = repository.requests[1]["from"]
    assert begins == ("2026-03-01" if granularity == "YYYY-MM-DD" else "2026-03-01T11:55:00Z")
    assert repository.requests[1]["until"].startswith("2026-03-01")
    assert job.result["submitted"] == 1
    assert titles()[3:] == ["Series 0, corrected"]
    assert pull(oai_source).result["submitted"] == 0, "both ends are inclusive: it is listed again"
    assert Deposition.objects.count() == 4


def test_deleted_records_are_withdrawn_once(repository, oai_source, pull: Pull) -> None:
    fill(repository, 3)
    pull(oai_source)
    repository.delete("oai:001")
    repository.add("oai:900", title="Never read", creator="x")
    repository.delete("oai:900")
    assert pull(oai_source).result["submitted"] == 1
    withdrawal = Deposition.objects.get(is_deleted=True)
    assert withdrawal.identifier == "sample:oai:001"
    assert withdrawal.metadata == {}
    assert pull(oai_source).result["submitted"] == 0
    fill(repository, 1, first=1)
    assert pull(oai_source).result["submitted"] == 1, "it is back"


def test_an_empty_list_is_no_error(repository, oai_source, pull: Pull) -> None:
    assert pull(oai_source).result == {"read": 0, "submitted": 0}
    assert oai_source.last_error == ""
    assert oai_source.cursor["done_until"]


def test_a_set_is_read_with_its_parts(repository, oai_source, pull: Pull) -> None:
    repository.add("oai:1", sets=["snow:depth"], title="a", creator="x")
    repository.add("oai:2", sets=["rain"], title="b", creator="x")
    Source.objects.filter(pk=oai_source.pk).update(settings={"set": "snow"})
    pull(oai_source)
    assert titles() == ["a"]


def test_a_refused_token_begins_the_list_again_and_doubles_nothing(
    repository, oai_source, pull: Pull
) -> None:
    fill(repository, 25)

    def forget_once(request: Any) -> Response | None:
        if len(repository.requests) == 3:  # Identify, the first page, and now the second
            repository.forget_tokens()
        return None

    repository.before = forget_once
    assert pull(oai_source).state == State.COMPLETED
    assert sorted(titles()) == sorted(f"Series {number}" for number in range(25))
    assert len(repository.requests) == 6
    assert "resumptionToken" not in repository.requests[3]


def test_tokens_that_always_expire_end_the_pull_with_a_message(
    repository, oai_source, pull: Pull
) -> None:
    fill(repository, 25)
    repository.token_lifetime = timedelta(seconds=-1)
    job = pull(oai_source)
    assert "accepts no resumption token, after 3 restarts of the list" in oai_source.last_error
    assert len(repository.requests) == 1 + 2 * (oai_pmh.MAX_RESTARTS + 1)
    assert job.state == State.PENDING
    assert oai_source.cursor["token"] == "", "the next read begins anew"


@pytest.mark.parametrize("length", [1, 3])
def test_tokens_in_a_circle_end_the_pull(repository, oai_source, pull: Pull, length) -> None:
    def circle(request: Any) -> Response | None:
        number = len(repository.requests) - 2
        if number < 0:
            return None
        assert number < 50, "the circle was not noticed"
        return page(f"<resumptionToken>t{number % length}</resumptionToken>", number)

    repository.before = circle
    pull(oai_source)
    assert "a list of records that repeats itself: it sent the token 't" in oai_source.last_error


def test_pages_without_records_for_ever_end_the_pull(repository, oai_source, pull: Pull) -> None:
    repository.before = lambda request: (
        page(f"<resumptionToken>{len(repository.requests)}</resumptionToken>")
        if len(repository.requests) > 1
        else None
    )
    pull(oai_source)
    assert "pages in a row without records but with a resumption token" in oai_source.last_error
    assert len(repository.requests) < 30


def test_a_source_that_asks_to_come_back_later_is_left_alone(
    repository, oai_source, pull: Pull, clock
) -> None:
    fill(repository, 1)
    repository.before = lambda request: Response(503, b"busy", {"Retry-After": "600"})
    job = pull(oai_source)
    assert job.state == State.PENDING
    assert job.attempt == 0, "it charges no attempt"
    assert oai_source.last_error == "answered 503"
    assert 595 < (job.due_at - datetime.now(UTC)).total_seconds() <= 601
    pull(oai_source)
    assert len(repository.requests) == 1, "its breaker is open for as long"
    repository.before = lambda request: None
    clock.step(601)
    assert pull(oai_source).result == {"read": 1, "submitted": 1}
    assert oai_source.last_error == ""


@pytest.mark.parametrize(
    ("code", "values"),
    [("cannotDisseminateFormat", {"metadata_prefix": "marc21"}), ("noSetHierarchy", {"set": "x"})],
)
def test_an_error_of_the_protocol_fails_with_its_message(
    repository, oai_source, pull: Pull, code, values
) -> None:
    fill(repository, 1)
    Source.objects.filter(pk=oai_source.pk).update(settings=values)
    assert pull(oai_source).state == State.FAILED
    assert f"refuses the request: {code}" in oai_source.last_error


def page(content: str, number: int | None = None) -> Response:
    """Return a page of a list, with one record if it has a number."""
    record = (
        ""
        if number is None
        else f"<record><header><identifier>oai:{number}</identifier>"
        "<datestamp>2026-01-01</datestamp></header></record>"
    )
    return Response(
        200,
        b'<OAI-PMH xmlns="http://www.openarchives.org/OAI/2.0/">'
        b"<responseDate>2026-03-01T12:00:00Z</responseDate><ListRecords>"
        + (record + content).encode()
        + b"</ListRecords></OAI-PMH>",
    )
