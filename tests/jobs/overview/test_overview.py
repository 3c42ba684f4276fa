"""The overview: permissions, panels and cost."""

import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.db import connection
from django.test import Client
from django.utils.html import escape

from tailrace.db import clock
from tailrace.events.models import Event
from tailrace.jobs.models import FailureGroup, Job, Pulse, Queue, Throughput
from tailrace.jobs.platform.pages.charts import sparkline
from tailrace.jobs.platform.pages.panel import Panel, all_panels
from tailrace.jobs.platform.panels import MAX_ROWS
from tests.jobs import operators

pytestmark = pytest.mark.django_db
POLL = "/overview/panels"
RIGHTS = ["tailrace_jobs.view_job", "tailrace_jobs.view_queue", "tailrace_events.view_event"]


@pytest.fixture(autouse=True)
def _handlers() -> None:
    operators.register_handlers()


@pytest.fixture
def operator() -> Client:
    reads = (
        "tailrace_jobs.view_job_payload",
        "tailrace_events.view_payload",
        "tailrace_events.view_hidden",
    )
    return operators.client("operator", *RIGHTS, *reads, "tailrace_events.acknowledge_event")


@pytest.fixture
def panel() -> Iterator[type[Panel]]:
    """A panel of an app that raises an error."""

    class Broken(Panel):
        title = "Weather"
        order = 1
        template = "tailrace/jobs/panels/workers.html"

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
def test_only_staff_see_the_overview(address: str) -> None:
    response = Client().get(address)
    assert response.status_code == 302
    assert response["Location"] == f"/accounts/login/?next={address}"
    guest = operators.client("guest", staff=False).get(address)
    if address == "/":
        assert (guest.status_code, guest["Location"]) == (302, "/me/subscriptions")
    else:
        assert guest.status_code == 403
    assert operators.client("staff").get(address).status_code == 200


def test_a_poll_after_logout_reloads_the_page() -> None:
    response = Client().get(POLL, headers={"HX-Request": "true"})
    assert (response.status_code, response["HX-Refresh"]) == (401, "true")


def test_the_page_has_no_foreign_or_inline_script(operator: Client) -> None:
    response = operator.get("/")
    page = response.content.decode()
    assert "script-src 'self'" in response["Content-Security-Policy"]
    assert "unsafe" not in response["Content-Security-Policy"]
    assert "https://" not in page
    assert "style=" not in page
    assert page.count("<script") == page.count("<script src=")


def test_queues_are_shown_with_their_numbers_and_the_last_hour(operator: Client) -> None:
    operators.job("pending", due_at=clock.now() - timedelta(minutes=5))
    operators.job("failed")
    Throughput.objects.create(
        queue=operators.Trim.name, minute=clock.now().replace(second=0, microsecond=0), completed=42
    )
    page = _page(operator)
    assert f"?queue={operators.Trim.name}&amp;state=failed" in page
    assert "5 min" in page
    assert "42 completed in the last hour, at most 42 per minute" in page
    assert "<polyline" in page


def test_a_sparkline_reaches_from_edge_to_edge() -> None:
    assert sparkline([0, 10, 5]) == "0,23 60,1 120,12"
    assert sparkline([0, 0]) == sparkline([]) == ""


def test_a_paused_queue_is_shown_as_paused(operator: Client) -> None:
    Queue.objects.filter(name=operators.Trim.name).update(paused_at=clock.now())
    assert "tr-paused" in _page(operator)


def test_missing_workers_and_the_last_tick_are_shown(operator: Client) -> None:
    page = _page(operator)
    assert "The tick has never run" in page
    assert "No worker was seen" in page
    Pulse.objects.create(name="tick", by="celery@one (host:12)")
    operators.worker("celery@one")
    page = _page(operator)
    assert "No worker was seen" not in page
    assert "by celery@one (host:12)" in page
    assert '>celery@one <span class="tr-quiet">host:1</span>' in page
    assert "0 of 1" in page


def test_quiet_queues_are_folded(operator: Client) -> None:
    page = _page(operator)
    assert 'id="quiet-queues"' in page
    assert page.index('id="quiet-queues"') < page.index(f'id="queue-{operators.Trim.name}"')
    operators.due(1)
    page = _page(operator)
    assert page.index('id="quiet-queues"') > page.index(f'id="queue-{operators.Trim.name}"')


def test_busy_queues_come_first_and_only_so_many_have_a_row(operator: Client) -> None:
    for n in range(40):
        name = f"operators.more{n:02}"
        Queue.objects.create(name=name)
        Job.objects.bulk_create(Job(handler=name, state="failed") for _ in range(2))
        if n >= 35:
            minute = clock.now().replace(second=0, microsecond=0)
            Throughput.objects.create(queue=name, minute=minute, completed=n)
    page = _page(operator)
    rows = re.findall(r'id="row-(operators.more\d+)"', page)
    assert len(rows) == MAX_ROWS
    assert rows[:6] == [f"operators.more{n:02}" for n in (39, 38, 37, 36, 35, 0)]
    rest = page[page.index('id="quiet-queues"') :]
    assert "operators.more34" in rest
    assert '<span class="tr-bad">2 failed</span>' in rest
    assert "all idle" not in page


def test_alerts_stand_above_the_queues(operator: Client) -> None:
    page = _page(operator)
    assert page.index("title-queues") < page.index("title-failed-jobs")
    operators.job(finished_at=clock.now())
    page = _page(operator)
    assert page.index("title-verdict") < page.index("title-failed-jobs")
    assert page.index("title-failed-jobs") < page.index("title-queues")


def test_the_latest_failed_jobs_are_listed_and_counted_by_queue(operator: Client) -> None:
    jobs = [operators.job(error=f"oil {n} is out", finished_at=clock.now()) for n in range(12)]
    page = _page(operator)
    assert f"{operators.Trim.name} <strong>12</strong>" in page
    assert "oil 11 is out" in page
    assert "oil 3 is out" not in page
    assert f"/admin/tailrace_jobs/job/{jobs[-1].pk}/change/" in page


def test_kinds_of_failures_are_replayed_from_the_overview() -> None:
    """Only those with failed jobs; the message is masked as on the page of failures."""
    old, new = (
        FailureGroup.objects.create(
            id=n, handler=operators.Trim.name, error_class="oil.Out", message=f"barrel <{n}>",
            last_seen_at=clock.now() - timedelta(hours=9 - n),
        )
        for n in (1, 2)
    )  # fmt: skip
    jobs = [operators.job(failure_group_id=new.pk) for _ in range(30)]
    replay = f"/admin/tailrace_jobs/job/all/replay/?state=failed&amp;failure={new.pk}"
    rights = ("tailrace_jobs.view_job", "tailrace_jobs.view_failuregroup")
    reader = _page(operators.client("reader", *rights))
    assert 'id="kind-2"' in reader
    assert 'id="kind-1"' not in reader, "none of its jobs is failed now"
    assert "barrel" not in reader
    assert replay not in reader
    rights = (*rights, "tailrace_jobs.view_job_payload", "tailrace_events.view_hidden")
    keeper = operators.client("keeper", *rights, "tailrace_jobs.replay_job")
    page = _page(keeper)
    assert "barrel &lt;2&gt;" in page
    assert replay in page
    assert "Replay 30…" in page
    Job.objects.filter(pk__in=[job.pk for job in jobs]).delete()
    operators.job(failure_group_id=old.pk)
    assert 'id="kind-1"' in _page(keeper)
    assert 'id="kind-' not in _page(operators.client("stranger", "tailrace_jobs.view_job"))


def test_a_flagged_event_stays_until_it_is_acknowledged(operator: Client) -> None:
    event = Event.objects.create(
        source="test", source_id="1", type="events.quarantined", problem="<no> such type"
    )
    address = f"/overview/events/{event.pk}/acknowledge"
    page = _page(operator)
    assert escape("<no> such type") in page
    assert f'hx-post="{address}"' in page
    assert operator.get(address).status_code == 405
    response = operator.post(address, headers={"HX-Request": "true"})
    assert response.status_code == 200
    assert "such type" not in response.content.decode()
    assert LogEntry.objects.get().object_id == str(event.pk)
    assert operator.post(address).status_code == 302


def test_acknowledging_needs_permission_and_token() -> None:
    event = Event.objects.create(source="t", source_id="1", type="x", problem="odd")
    address = f"/overview/events/{event.pk}/acknowledge"
    reader = operators.client("reader", *RIGHTS)
    assert "Acknowledge" not in _page(reader)
    assert reader.post(address).status_code == 403
    careless = operators.client("careless", *RIGHTS, "tailrace_events.acknowledge_event")
    careless.handler.enforce_csrf_checks = True
    assert careless.post(address).status_code == 403
    assert Event.objects.flagged().count() == 1


def test_all_flagged_events_are_acknowledged_up_to_the_newest_that_was_shown(
    operator: Client,
) -> None:
    events = [
        Event.objects.create(source="t", source_id=str(n), type="x", problem="odd")
        for n in range(12)
    ]
    page = _page(operator)
    assert f'name="up_to" value="{events[-1].pk}"' in page
    assert "Acknowledge all 12" in page
    later = Event.objects.create(source="t", source_id="later", type="x", problem="new")
    address = "/overview/events/acknowledge"
    assert operator.get(address).status_code == 405
    assert operator.post(address, {"up_to": events[-1].pk}).status_code == 302
    assert list(Event.objects.flagged()) == [later]
    entry = LogEntry.objects.get()
    assert entry.change_message == f"acknowledged 12 events: all up to event {events[-1].pk}"
    assert "12 events acknowledged." in _page(operator)


@pytest.mark.parametrize("up_to", ["", "x", "-1", "9" * 30, "\0"])
def test_all_are_acknowledged_only_with_the_permission_and_a_valid_id(up_to: str) -> None:
    Event.objects.create(source="t", source_id="1", type="x", problem="odd")
    newest = Event.objects.create(source="t", source_id="2", type="x", problem="odd")
    address = "/overview/events/acknowledge"
    reader = operators.client("reader", *RIGHTS)
    assert "Acknowledge" not in _page(reader)
    assert reader.post(address, {"up_to": newest.pk}).status_code == 403
    careless = operators.client("careless", *RIGHTS, "tailrace_events.acknowledge_event")
    assert careless.post(address, {"up_to": up_to}).status_code in (400, 302)
    careless.handler.enforce_csrf_checks = True
    assert careless.post(address, {"up_to": newest.pk}).status_code == 403
    assert Event.objects.flagged().count() == 2


def test_panels_need_their_permissions() -> None:
    operators.job(error="the oil is out")
    Event.objects.create(source="t", source_id="1", type="x", problem="odd thing")
    page = _page(operators.client("staff"))
    assert "the oil is out" not in page
    assert "odd thing" not in page
    assert "need the permission tailrace_jobs.view_job to" in page
    assert "need the permission tailrace_events.view_event to" in page


def test_a_failing_panel_does_not_affect_others(operator: Client, panel: type[Panel]) -> None:
    page = _page(operator, POLL)
    assert "This panel failed: ProgrammingError" in page
    assert "The tick has never run" in page
    assert operators.Trim.name in page


def test_a_poll_costs_few_statements_however_much_there_is(operator: Client) -> None:
    def cost() -> int:
        statements = operators.statements(operator, POLL)
        return len([sql for sql in statements if not sql.startswith(("SAVEPOINT", "RELEASE"))])

    operator.get(POLL)
    before = cost()
    Queue.objects.bulk_create(Queue(name=f"operators.more{n}") for n in range(40))
    for n in range(40):
        operators.job(error="out")
        operators.job("pending")
        Event.objects.create(source="t", source_id=str(n), type="x", problem="odd")
    Pulse.objects.bulk_create(Pulse(name=f"worker:{n}") for n in range(20))
    assert cost() == before
    # Session, user and rights are four; the panels of other apps come on top of ours.
    assert before <= 30 + 2 * len([panel for panel in all_panels() if not _core(panel)])


def _core(panel: Panel) -> bool:
    return type(panel).__module__ == "tailrace.jobs.platform.panels"


@pytest.mark.parametrize("address", ["/", POLL])
def test_the_page_is_never_cached(operator: Client, address: str) -> None:
    assert "no-store" in operator.get(address)["Cache-Control"]
