"""Queues: pause and resume, and two limits; nothing else is written."""

from datetime import timedelta

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.admin.utils import quote
from django.test import Client

from tailrace.db import clock, locks
from tailrace.jobs.models import Job, Queue, QueueActivity
from tailrace.jobs.operations.pause import pause
from tests.jobs import operators
from tests.kit import at_once, held

pytestmark = pytest.mark.django_db
QUEUES = "/admin/tailrace_jobs/queue/"
VIEW, PAUSE = "tailrace_jobs.view_queue", "tailrace_jobs.pause_queue"
PAGE = f"{QUEUES}{quote(operators.Trim.name)}/change/"


@pytest.fixture(autouse=True)
def _handlers() -> None:
    operators.register_handlers()


def _queue() -> Queue:
    return Queue.objects.get(name=operators.Trim.name)


def test_the_list_shows_numbers_with_links_to_the_jobs() -> None:
    operators.job("failed")
    operators.job("pending")
    page = operators.client("reader", VIEW).get(QUEUES).content.decode()
    assert f"?queue={operators.Trim.name}&amp;state=failed" in page
    assert f"?queue={operators.Trim.name}&amp;state=pending" in page


def test_queues_that_need_somebody_come_first_and_idle_ones_last() -> None:
    names = sorted(Queue.objects.values_list("name", flat=True))
    waiting, running, failed, paused = names[-4:]
    for name, state in ((waiting, "pending"), (running, "running"), (failed, "failed")):
        Job.objects.create(handler=name, state=state)
    pause(paused, "bob")
    rows = operators.client("reader", VIEW).get(QUEUES).context["cl"].result_list
    assert [row.name for row in rows] == [paused, waiting, running, failed, *names[:-4]]
    assert [row.state for row in rows[:4]] == ["paused", "waiting", "running", "idle"]


def test_queues_are_found_by_their_state_and_a_part_of_their_name() -> None:
    names = sorted(Queue.objects.values_list("name", flat=True))
    waiting, failed, paused, gone = names[-4:]
    Job.objects.create(handler=waiting, state="pending")
    Job.objects.create(handler=failed, state="failed")
    pause(paused, "bob")
    Queue.objects.filter(name=gone).update(retired_at=clock.now())
    reader = operators.client("reader", VIEW)

    def found(**query: str) -> list[str]:
        return [row.name for row in reader.get(QUEUES, query).context["cl"].result_list]

    assert found(state="active") == [paused, waiting, gone]
    assert found(state="failed") == [failed]
    assert found(state="paused") == [paused]
    assert found(state="retired") == [gone]
    assert set(found(state="idle")) == {failed, *names[:-4]}
    assert found(state="x") == found(q="nothing") == []
    assert operators.Trim.name in found(q="rs.tri")


def test_pause_and_resume_are_posts_by_permission_and_audited() -> None:
    keeper = operators.client("keeper", VIEW, PAUSE)
    pause, resume = (f"{QUEUES}{operators.Trim.name}/{verb}/" for verb in ("pause", "resume"))
    assert Client().post(pause).status_code == 302
    assert operators.client("reader", VIEW).post(pause).status_code == 403
    assert keeper.get(pause).status_code == 405
    assert not _queue().paused
    keeper.post(pause)
    assert (_queue().paused, _queue().paused_by) == (True, "keeper")
    keeper.post(resume)
    assert not _queue().paused
    logged = LogEntry.objects.order_by("pk").values_list("change_message", flat=True)
    assert list(logged) == ["paused", "resumed"]


def test_a_pause_has_a_reason_and_an_end_which_pages_show() -> None:
    keeper = operators.client("keeper", VIEW, PAUSE)
    address = f"{QUEUES}{operators.Trim.name}/pause/"
    for wrong in ({"hours": "2"}, {"hours": "-1"}, {"reason": "x" * 201}, {"reason": "\0"}):
        assert keeper.post(address, wrong).status_code == 400
        assert not _queue().paused
    keeper.post(address, {"reason": " oil is <changed> ", "hours": "4"})
    queue = _queue()
    assert queue.paused_until is not None
    assert queue.paused_reason == "oil is <changed>"
    assert abs(queue.paused_until - clock.now() - timedelta(hours=4)) < timedelta(minutes=1)
    operators.due()
    overview = keeper.get("/").content.decode()
    for page in (keeper.get(PAGE).content.decode(), overview):
        assert "oil is &lt;changed&gt;" in page
    until = f"{queue.paused_until:%Y-%m-%d %H:%M:%S} UTC"
    assert f'title="{until}">in 4 h</time>' in overview
    keeper.post(f"{QUEUES}{operators.Trim.name}/resume/")
    assert (_queue().paused_reason, _queue().paused_until) == ("", None)


def test_several_queues_are_paused_at_once_by_permission() -> None:
    form = {"action": "pause_queues", "_selected_action": [operators.Trim.name], "index": 0}
    operators.client("reader", VIEW).post(QUEUES, form)
    assert not _queue().paused
    operators.client("keeper", PAUSE).post(QUEUES, form)
    assert _queue().paused


def test_saving_limits_writes_nothing_else() -> None:
    form = {"max_running": "2", "rate_limit": "0.5", "name": "stolen", "awake": ""}
    assert operators.client("reader", VIEW).post(PAGE, form).status_code == 403
    keeper = operators.client("keeper", PAUSE)
    QueueActivity.objects.filter(name=operators.Trim.name).update(awake=True, resends=7)
    assert keeper.post(PAGE, form).status_code == 302
    queue = _queue()
    assert (queue.max_running, queue.rate_limit) == (2, 0.5)
    activity = QueueActivity.objects.get(name=queue.name)
    assert (activity.awake, activity.resends) == (True, 7)
    assert LogEntry.objects.count() == 1


@pytest.mark.parametrize("form", [{"rate_limit": "0"}, {"max_running": "0"}, {"rate_limit": "-1"}])
def test_a_limit_of_zero_is_refused_with_advice(form: dict[str, str]) -> None:
    response = operators.client("keeper", PAUSE).post(
        PAGE, {"max_running": "", "rate_limit": ""} | form
    )
    assert "pause the queue to stop it" in response.content.decode()
    assert _queue().rate_limit is _queue().max_running is None


def test_saving_limits_keeps_a_concurrent_pause() -> None:
    keeper = operators.client("keeper", PAUSE)
    keeper.get(PAGE)
    pause(operators.Trim.name, "another")
    keeper.post(PAGE, {"max_running": "3", "rate_limit": ""})
    assert (_queue().paused, _queue().max_running) == (True, 3)


def test_queues_are_not_added_or_deleted_by_hand() -> None:
    client = operators.client(
        "eager", VIEW, PAUSE, "tailrace_jobs.add_queue", "tailrace_jobs.delete_queue"
    )
    assert client.get(QUEUES + "add/").status_code == 403
    assert client.get(PAGE.replace("change", "delete")).status_code == 403


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("change", ["pause", "limits"])
def test_a_page_says_who_holds_a_queue(change: str, monkeypatch) -> None:
    """A request waited until the other transaction ended."""
    monkeypatch.setattr(locks, "WAIT_SECONDS", 0.2)
    keeper = operators.client("keeper", PAUSE)
    address = PAGE if change == "limits" else f"{QUEUES}{operators.Trim.name}/pause/"
    form = {"max_running": "2", "rate_limit": ""}
    with held(
        "SELECT 1 FROM tailrace_jobs_queue WHERE name = %s FOR UPDATE", "operators.trim"
    ) as pid:
        [response] = at_once(1, lambda _: keeper.post(address, form), seconds=30)
    assert response.status_code == 302
    page = keeper.get(PAGE).content.decode()
    assert f"the row of queue operators.trim, held by database session {pid} (psql)" in page
    assert (_queue().paused, _queue().max_running) == (False, None)
    assert not LogEntry.objects.exists()
