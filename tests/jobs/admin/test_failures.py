"""The page of failures: groups by filters and sort in the address, assigned, silenced, noted."""

import re
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.test import Client

from tailrace.jobs.engine.failures.fingerprint import fingerprint
from tailrace.jobs.engine.failures.record import count
from tailrace.jobs.models import FailureGroup
from tailrace.jobs.platform.admin import failures
from tests.jobs import operators

pytestmark = pytest.mark.django_db
PAGE = "/admin/tailrace_jobs/failuregroup/"
VIEW = ("tailrace_jobs.view_failuregroup", "tailrace_jobs.view_job")
SEES = (*VIEW, "tailrace_jobs.view_job_payload")
Make = Callable[..., FailureGroup]


@pytest.fixture
def make(clock) -> Make:
    """Return `make(message, jobs)`: a group with so many failed jobs, later than the last one."""
    operators.register_handlers()

    def make(message: str, jobs: int = 1, handler: str = operators.Trim.name) -> FailureGroup:
        clock.step(60)
        group = fingerprint(handler, "builtins.ValueError", message, "shop/handlers.py in handle")
        count({group: jobs})
        for _ in range(jobs):
            operators.job(error=message, failure_group_id=group.id, finished_at=clock.now())
        return FailureGroup.objects.get(pk=group.id)

    return make


def listed(client: Client, query: str = "") -> list[str]:
    response = client.get(PAGE + query)
    assert response.status_code == 200
    return [row.message for row in response.context["cl"].result_list]


def text(client: Client, address: str) -> str:
    content = client.get(address).content.decode()
    return " ".join(re.sub(r"<[^>]+>", " ", content[content.index("content-main") :]).split())


def test_filters_sort_and_page_are_in_the_address(make: Make, monkeypatch) -> None:
    make("first", 3), make("second", 1), make("third", 2)
    client = operators.client("keeper", *SEES, "tailrace_events.view_hidden")
    assert listed(client) == ["third", "second", "first"]
    assert listed(client, "?o=3") == ["second", "third", "first"], "by attempts"
    assert listed(client, "?o=6") == ["first", "second", "third"], "by the first time"
    assert listed(client, "?q=SECO") == ["second"]
    assert listed(client, "?q=handlers.py") == ["third", "second", "first"]
    assert listed(client, "?queue=nobody") == []
    FailureGroup.objects.filter(message="first").update(assignee=User.objects.get())
    assert listed(client, "?assigned=me") == ["first"]
    assert listed(client, "?assigned=nobody&jobs=failed") == ["third", "second"]
    monkeypatch.setattr(failures.FailureAdmin, "list_per_page", 2)
    assert listed(client, "?p=2") == ["first"]
    monkeypatch.setattr(failures, "MOST", 1)
    assert client.get(PAGE).context["cl"].result_count == 1


def test_a_row_says_how_many_since_when_and_with_a_trend(make: Make) -> None:
    group = make("no order 7", 2)
    client = operators.client("keeper", *SEES)
    page = text(client, PAGE)
    assert "ValueError no order &lt;n&gt; shop/handlers.py in handle" in page
    assert "2 in 24 hours, at most 2 in an hour" in client.get(PAGE).content.decode()
    jobs = client.get(f"/admin/tailrace_jobs/job/?state=failed&failure={group.pk}")
    assert len(jobs.context["cl"].result_list) == 2
    page = text(client, f"{PAGE}{group.pk}/change/")
    assert "Failed now 2 Attempts that failed 2" in page
    assert "Show all" not in client.get(PAGE).content.decode(), "that is this page"
    assert "Show all" in client.get(f"{PAGE}?q=nothing").content.decode()
    assert "Replay these" not in page, "it needs the permission to replay"


def test_a_silenced_group_is_counted_apart(make: Make, clock) -> None:
    group = make("known")
    make("new")
    client = operators.client("keeper", *SEES, "tailrace_jobs.change_failuregroup")
    until = clock.now() + timedelta(hours=2)
    form = {"assignee": "", "silenced_until": f"{until:%Y-%m-%d %H:%M}", "note": "it is\nknown"}
    assert client.post(f"{PAGE}{group.pk}/change/", form).status_code == 302
    assert listed(client) == ["new"]
    assert listed(client, "?silenced=yes") == ["known"]
    assert listed(client, "?silenced=any") == ["new", "known"]
    assert LogEntry.objects.get().change_message == (
        f"silenced until {until:%Y-%m-%d %H:%M}:00 UTC; note changed"
    )
    clock.step(3 * 3600)
    assert listed(client) == ["new", "known"]


def test_assigning_is_for_staff_and_a_count_meanwhile_stays(make: Make) -> None:
    group, ann = make("x"), User.objects.create_user("ann", is_staff=True)
    guest = User.objects.create_user("guest")
    client = operators.client("keeper", *VIEW, "tailrace_jobs.change_failuregroup")
    page = f"{PAGE}{group.pk}/change/"
    assert client.post(page, {"assignee": guest.pk, "note": ""}).status_code == 200
    count({fingerprint(group.handler, group.error_class, "x", group.frame): 5})
    assert client.post(page, {"assignee": ann.pk, "note": ""}).status_code == 302
    group.refresh_from_db()
    assert (group.assignee, group.failures) == (ann, 6)
    assert LogEntry.objects.get().change_message == "assigned to ann"


@pytest.mark.parametrize("until", ["tomorrow", "2020-01-01 10:00", "2999-01-01 10:00", "1e9"])
def test_a_wrong_time_says_what_to_enter(make: Make, until: str) -> None:
    client = operators.client("keeper", *VIEW, "tailrace_jobs.change_failuregroup")
    page = f"{PAGE}{make('x').pk}/change/"
    response = client.post(page, {"silenced_until": until, "note": ""})
    assert response.status_code == 200
    assert "Enter a time" in response.content.decode()
    assert FailureGroup.objects.get().silenced_until is None


def test_viewing_is_not_changing(make: Make) -> None:
    page = f"{PAGE}{make('x').pk}/change/"
    client = operators.client("reader", *SEES)
    assert client.get(page).status_code == 200
    assert client.post(page, {"note": "n"}).status_code == 403
    assert operators.client("nobody", "tailrace_jobs.view_job").get(PAGE).status_code == 403
    assert FailureGroup.objects.get().note == ""
