"""Queues: pause and resume, and two limits; nothing else is written."""

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.admin.utils import quote
from django.test import Client

from jobs import operate
from jobs.models import Queue
from tests.jobs import operator_case as case

pytestmark = pytest.mark.django_db
QUEUES = "/admin/jobs/queue/"
VIEW, PAUSE = "jobs.view_queue", "jobs.pause_queue"
PAGE = f"{QUEUES}{quote(case.Trim.name)}/change/"


@pytest.fixture(autouse=True)
def _handlers() -> None:
    case.declare()


def _queue() -> Queue:
    return Queue.objects.get(name=case.Trim.name)


def test_the_list_shows_numbers_with_links_to_the_jobs() -> None:
    case.job("failed")
    case.job("pending")
    page = case.person("reader", VIEW).get(QUEUES).content.decode()
    assert f"?queue={case.Trim.name}&amp;state=failed" in page
    assert f"?queue={case.Trim.name}&amp;state=pending" in page


def test_pause_and_resume_are_posts_by_permission_and_audited() -> None:
    keeper = case.person("keeper", VIEW, PAUSE)
    pause, resume = (f"{QUEUES}{case.Trim.name}/{verb}/" for verb in ("pause", "resume"))
    assert Client().post(pause).status_code == 302
    assert case.person("reader", VIEW).post(pause).status_code == 403
    assert keeper.get(pause).status_code == 405
    assert not _queue().paused
    keeper.post(pause)
    assert (_queue().paused, _queue().paused_by) == (True, "keeper")
    keeper.post(resume)
    assert not _queue().paused
    logged = LogEntry.objects.order_by("pk").values_list("change_message", flat=True)
    assert list(logged) == ["paused", "resumed"]


def test_several_queues_are_paused_at_once_by_permission() -> None:
    form = {"action": "pause_queues", "_selected_action": [case.Trim.name], "index": 0}
    case.person("reader", VIEW).post(QUEUES, form)
    assert not _queue().paused
    case.person("keeper", PAUSE).post(QUEUES, form)
    assert _queue().paused


def test_limits_are_changed_by_permission_and_nothing_else_is_written() -> None:
    form = {"max_running": "2", "rate_limit": "0.5", "name": "stolen", "awake": ""}
    assert case.person("reader", VIEW).post(PAGE, form).status_code == 403
    keeper = case.person("keeper", PAUSE)
    Queue.objects.filter(name=case.Trim.name).update(awake=True, resends=7)
    assert keeper.post(PAGE, form).status_code == 302
    queue = _queue()
    assert (queue.max_running, queue.rate_limit, queue.resends) == (2, 0.5, 7)
    assert LogEntry.objects.count() == 1


@pytest.mark.parametrize("form", [{"rate_limit": "0"}, {"max_running": "0"}, {"rate_limit": "-1"}])
def test_a_limit_of_nothing_is_refused_with_the_way_out(form: dict[str, str]) -> None:
    response = case.person("keeper", PAUSE).post(PAGE, {"max_running": "", "rate_limit": ""} | form)
    assert "pause the queue to stop it" in response.content.decode()
    assert _queue().rate_limit is _queue().max_running is None


def test_a_queue_that_pauses_while_its_limits_are_saved_stays_paused() -> None:
    keeper = case.person("keeper", PAUSE)
    keeper.get(PAGE)
    operate.pause(case.Trim.name, "another")
    keeper.post(PAGE, {"max_running": "3", "rate_limit": ""})
    assert (_queue().paused, _queue().max_running) == (True, 3)


def test_queues_are_not_added_or_deleted_by_hand() -> None:
    client = case.person("eager", VIEW, PAUSE, "jobs.add_queue", "jobs.delete_queue")
    assert client.get(QUEUES + "add/").status_code == 403
    assert client.get(PAGE.replace("change", "delete")).status_code == 403
