"""The overview: who sees it, what its panels say, what it costs."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.db import connection
from django.test import Client
from django.utils.html import escape

from events import clock
from events.models import Event
from jobs import panels
from jobs.models import Pulse, Queue, Throughput
from jobs.overview_panels import sparkline
from tests.jobs import operator_case as case

pytestmark = pytest.mark.django_db
POLL = "/overview/panels"
RIGHTS = ["jobs.view_job", "jobs.view_queue", "events.view_event"]


@pytest.fixture(autouse=True)
def _handlers() -> None:
    case.declare()


@pytest.fixture
def keeper() -> Client:
    return case.person("keeper", *RIGHTS, "events.acknowledge_event")


@pytest.fixture
def panel() -> Iterator[type[panels.Panel]]:
    """A panel of an app, that breaks when it is told to."""

    class Broken(panels.Panel):
        title = "Weather"
        order = 1
        template = "jobs/panels/workers.html"

        def context(self) -> dict[str, Any]:
            with connection.cursor() as cursor:
                cursor.execute("SELECT rain FROM nowhere")
            return {}

    yield Broken
    Broken.template = ""


def _page(client: Client, address: str = "/") -> str:
    response = client.get(address)
    assert response.status_code == 200
    return response.content.decode()


@pytest.mark.parametrize("address", ["/", POLL])
def test_strangers_are_sent_to_the_login_and_others_are_turned_away(address: str) -> None:
    response = Client().get(address)
    assert response.status_code == 302
    assert response["Location"] == f"/admin/login/?next={address}"
    guest = case.person("guest", staff=False).get(address)
    if address == "/":
        assert (guest.status_code, guest["Location"]) == (302, "/me/subscriptions")
    else:
        assert guest.status_code == 403
    assert case.person("staff").get(address).status_code == 200


def test_a_poll_after_the_session_has_ended_loads_the_page_anew() -> None:
    response = Client().get(POLL, headers={"HX-Request": "true"})
    assert (response.status_code, response["HX-Refresh"]) == (401, "true")


def test_nothing_from_elsewhere_and_no_inline_script_is_on_the_page(keeper: Client) -> None:
    response = keeper.get("/")
    page = response.content.decode()
    assert "script-src 'self'" in response["Content-Security-Policy"]
    assert "unsafe" not in response["Content-Security-Policy"]
    assert "https://" not in page
    assert "style=" not in page
    assert page.count("<script") == page.count("<script src=")


def test_queues_are_shown_with_their_numbers_and_the_last_hour(keeper: Client) -> None:
    case.job("pending", due_at=clock.now() - timedelta(minutes=5))
    case.job("failed")
    Throughput.objects.create(
        queue=case.Trim.name, minute=clock.now().replace(second=0, microsecond=0), completed=42
    )
    page = _page(keeper)
    assert f"?queue={case.Trim.name}&amp;state=failed" in page
    assert "5 min" in page
    assert "42 completed in the last hour, at most 42 a minute" in page
    assert "<polyline" in page


def test_a_sparkline_reaches_from_edge_to_edge() -> None:
    assert sparkline([0, 10, 5], width=100, height=24) == "0.0,23.0 50.0,1.0 100.0,12.0"
    assert sparkline([0, 0]) == sparkline([]) == ""


def test_a_paused_queue_says_so(keeper: Client) -> None:
    Queue.objects.filter(name=case.Trim.name).update(paused_at=clock.now())
    assert "tr-paused" in _page(keeper)


def test_queues_that_are_due_and_not_served_are_named(keeper: Client) -> None:
    assert "Due and not served" not in _page(keeper)
    case.job("pending", due_at=clock.now() - timedelta(minutes=5))
    page = _page(keeper)
    assert f"celery -A config worker -Q {case.Trim.name}" in page


def test_beat_and_workers_that_are_silent_are_told_of(keeper: Client) -> None:
    page = _page(keeper)
    assert "Beat has never ticked" in page
    assert "No worker has been heard of" in page
    Pulse.objects.create(name="tick")
    Pulse.objects.create(name="worker:celery@one", queues=["a", "b"])
    page = _page(keeper)
    assert "stand still" not in page
    assert "celery@one" in page
    Pulse.objects.update(at=clock.now() - timedelta(minutes=3))
    page = _page(keeper)
    assert "Beat ticked 3 min ago" in page
    assert "No worker has been heard of" in page


def test_the_latest_failed_jobs_are_listed_and_counted_by_queue(keeper: Client) -> None:
    jobs = [case.job(error=f"oil {n} is out", finished_at=clock.now()) for n in range(12)]
    page = _page(keeper)
    assert f"{case.Trim.name} <strong>12</strong>" in page
    assert "oil 11 is out" in page
    assert "oil 3 is out" not in page
    assert f"/admin/jobs/job/{jobs[-1].pk}/change/" in page


def test_a_flagged_event_stays_until_it_is_acknowledged(keeper: Client) -> None:
    event = Event.objects.create(
        source="test", source_id="1", type="events.quarantined", problem="<no> such type"
    )
    address = f"/overview/events/{event.pk}/acknowledge"
    page = _page(keeper)
    assert escape("<no> such type") in page
    assert f'hx-post="{address}"' in page
    assert keeper.get(address).status_code == 405
    response = keeper.post(address, headers={"HX-Request": "true"})
    assert response.status_code == 200
    assert "such type" not in response.content.decode()
    assert LogEntry.objects.get().object_id == str(event.pk)
    assert keeper.post(address).status_code == 302


def test_acknowledging_takes_the_permission_and_the_token() -> None:
    event = Event.objects.create(source="t", source_id="1", type="x", problem="odd")
    address = f"/overview/events/{event.pk}/acknowledge"
    reader = case.person("reader", *RIGHTS)
    assert "Acknowledge" not in _page(reader)
    assert reader.post(address).status_code == 403
    careless = case.person("careless", *RIGHTS, "events.acknowledge_event")
    careless.handler.enforce_csrf_checks = True
    assert careless.post(address).status_code == 403
    assert Event.objects.flagged().count() == 1


def test_jobs_and_events_are_shown_to_those_who_may_see_them() -> None:
    case.job(error="the oil is out")
    Event.objects.create(source="t", source_id="1", type="x", problem="odd thing")
    page = _page(case.person("staff"))
    assert "the oil is out" not in page
    assert "odd thing" not in page
    assert "takes the permission jobs.view_job" in page
    assert "takes the permission events.view_event" in page


def test_a_panel_that_fails_says_so_and_the_others_stand(
    keeper: Client, panel: type[panels.Panel]
) -> None:
    page = _page(keeper, POLL)
    assert "panel failed: ProgrammingError" in page
    assert "Beat has never ticked" in page
    assert case.Trim.name in page


def test_a_poll_costs_few_statements_however_much_there_is(keeper: Client) -> None:
    def cost() -> int:
        asked = case.statements_of(keeper, POLL)
        return len([each for each in asked if not each.startswith(("SAVEPOINT", "RELEASE"))])

    keeper.get(POLL)
    before = cost()
    Queue.objects.bulk_create(Queue(name=f"operators.more{n}") for n in range(40))
    for n in range(40):
        case.job(error="out")
        case.job("pending")
        Event.objects.create(source="t", source_id=str(n), type="x", problem="odd")
    Pulse.objects.bulk_create(Pulse(name=f"worker:{n}") for n in range(20))
    assert cost() == before
    # Session, user and rights are four; the panels of other apps come on top of ours.
    assert before <= 12 + 2 * len([each for each in panels.everything() if not _core(each)])


def _core(panel: panels.Panel) -> bool:
    return type(panel).__module__ == "jobs.overview_panels"


@pytest.mark.parametrize("address", ["/", POLL])
def test_the_page_is_never_cached(keeper: Client, address: str) -> None:
    assert "no-store" in keeper.get(address)["Cache-Control"]
