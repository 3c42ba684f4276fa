"""Reports in the API."""

import pytest
from django.contrib.auth.models import User

from tailrace.domains.protection.models import Report
from tailrace.domains.protection.services.reports.requests import HANDLER
from tailrace.jobs.models import Job
from tests.kit import at_once
from tests.protection.kit import make_report
from tests.subscriptions.sample_domain import person
from tests.web.program import Program, problem

pytestmark = pytest.mark.django_db
PATH = "/protection/reports"
DAYS = {"first_day": "2026-10-01", "last_day": "2026-10-31"}


@pytest.fixture
def ann() -> User:
    return person("ann")


def test_a_report_is_requested_listed_and_downloaded(ann, run_jobs) -> None:
    api = Program(ann, "protection:read", "protection:write")
    answer = api.post(PATH, DAYS)
    assert answer.status_code == 202, answer.content
    assert answer.json() == DAYS | {"job": Job.objects.get(handler=HANDLER).pk}
    run_jobs(HANDLER)
    [row] = api.all(PATH)
    assert (row["first_day"], row["last_day"]) == ("2026-10-01", "2026-10-31")
    assert row["totals"]["alerts"]["alerts"] == 0
    assert api.get(f"{PATH}/{row['id']}").json() == row
    file = api.get(f"{PATH}/{row['id']}/file")
    content = file.getvalue()
    assert (content[:5], file["Content-Type"]) == (b"%PDF-", "application/pdf")
    assert len(content) == row["bytes"]
    assert "default-src 'none'; sandbox" in file["Content-Security-Policy"]
    made = api.post(PATH, {}).json()
    assert (Job.objects.get(pk=made["job"]).payload["last_day"]) == made["last_day"]


@pytest.mark.parametrize(
    ("change", "detail"),
    [
        ({"last_day": "2026-09-01"}, "first_day: the first day, 2026-10-01, is after the last day"),
        ({"last_day": "9999-12-31"}, "first_day: the period has"),
        ({"first_day": "0001-01-01", "last_day": "0001-01-02"}, "first_day: the first day, 0001"),
        ({"first_day": None, "last_day": "0001-01-02"}, "last_day: date value out of range"),
        ({"first_day": "yesterday"}, "first_day: Input should be a valid date"),
        ({"account": 1}, "account: Extra inputs are not permitted"),
    ],
)
def test_a_wrong_day_is_named(ann, change, detail) -> None:
    answer = Program(ann).post(PATH, DAYS | change)
    assert problem(answer, 422, "invalid")["detail"].startswith(detail)
    assert not Job.objects.filter(handler=HANDLER).exists()


def test_a_request_that_is_sent_again_counts_once(ann, settings, clock) -> None:
    settings.PROTECTION_REPORTS_PER_DAY = 1
    api = Program(ann)
    key = {"headers": {"Idempotency-Key": "october"}}
    first, again = (api.post(PATH, DAYS, **key) for _ in range(2))
    assert first.json() == again.json()
    problem(api.post(PATH, DAYS | {"first_day": "2026-10-02"}, **key), 422, "key-reused")
    too_many = api.post(PATH, DAYS, headers={"Idempotency-Key": "another"})
    problem(too_many, 429, "rate-limited")
    assert int(too_many["Retry-After"]) > 80_000
    clock.step(86_400)
    assert api.post(PATH, DAYS, headers={"Idempotency-Key": "another"}).status_code == 202, "free"
    assert Job.objects.filter(handler=HANDLER).count() == 1


@pytest.mark.django_db(transaction=True)
def test_the_same_key_ten_times_at_once_makes_one_job(ann, settings) -> None:
    settings.PROTECTION_REPORTS_PER_DAY = 1
    api = Program(ann)
    headers = {"Idempotency-Key": "october"}
    answers = at_once(10, lambda _: api.post(PATH, DAYS, headers=headers).status_code)
    assert set(answers) == {202}
    assert Job.objects.filter(handler=HANDLER).count() == 1


def test_another_users_report_was_read_or_a_reader_requested_one(ann) -> None:
    report = make_report(ann)
    eve = Program(person("eve"))
    for path in (f"{PATH}/{report.pk}", f"{PATH}/{report.pk}/file"):
        problem(eve.get(path), 404)
        problem(Program(ann, "protection:write").get(path), 403, "scope-missing")
    assert eve.all(PATH) == []
    problem(Program(ann, "protection:read").post(PATH, DAYS), 403, "scope-missing")
    assert Report.objects.count() == 1
