"""An action on all jobs of a list shows first how many these are, and is one entry in the log."""

import re

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client
from django.urls import reverse

from tailrace.jobs.models import FailureGroup, Job, Replay
from tailrace.jobs.operations import batches
from tests.jobs import operators

pytestmark = pytest.mark.django_db
JOBS = "/admin/tailrace_jobs/job/"
VIEW, REPLAY = "tailrace_jobs.view_job", "tailrace_jobs.replay_job"
FILTER = f"?queue={operators.Trim.name}&state=failed"
ALL = f"{JOBS}all/replay/{FILTER}"


@pytest.fixture
def keeper() -> Client:
    operators.register_handlers()
    return operators.client("keeper", VIEW, REPLAY)


def words(client: Client, address: str) -> str:
    response = client.get(address)
    assert response.status_code == 200, response
    content = response.content.decode()
    return " ".join(re.sub(r"<[^>]+>", " ", content[content.index("content-main") :]).split())


def last_id(client: Client, address: str = ALL) -> str:
    field = re.search(r'name="last_id" value="(\d+)"', client.get(address).content.decode())
    assert field is not None
    return field[1]


def test_all_of_a_list_are_counted_before_anything_is_done(keeper: Client) -> None:
    jobs = [operators.job() for _ in range(3)]
    form = {"action": "replay_jobs", "_selected_action": [jobs[0].pk], "select_across": 1}
    response = keeper.post(JOBS + FILTER, form | {"index": 0})
    assert response["Location"] == ALL
    text = words(keeper, ALL)
    assert "Replay: 3 jobs" in text
    assert f"queue = {operators.Trim.name}, state = failed" in text
    assert f"{operators.Trim.name} 3" in text
    assert Job.objects.failed().count() == 3
    assert not LogEntry.objects.exists()


def test_what_was_counted_is_replayed_with_one_entry_and_can_be_undone(
    keeper: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "BATCH", 40)
    for _ in range(101):
        operators.job(error="e")
    other, last = operators.job("cancelled"), last_id(keeper)
    later = operators.job()
    response = keeper.post(ALL, {"last_id": last})
    replay = Replay.objects.get()
    assert response["Location"] == reverse("admin:tailrace_jobs_replay", args=[replay.pk])
    assert Job.objects.pending().count() == 101
    assert [Job.objects.get(pk=job.pk).state for job in (other, later)] == ["cancelled", "failed"]
    what = f"queue = {operators.Trim.name}, state = failed"
    assert LogEntry.objects.get().change_message == f"replayed 101 jobs: {what}"
    text = words(keeper, response["Location"])
    assert "Not started 101" in text
    assert "Undo 101 jobs" in text
    Job.objects.filter(pk=last).update(claim_no=1)
    keeper.post(response["Location"])
    text = words(keeper, response["Location"])
    assert "nothing is left" not in text
    assert "The replay was undone." in text
    assert Job.objects.failed().filter(error="e").count() == 100
    assert LogEntry.objects.count() == 2


def test_a_failure_is_named(keeper: Client) -> None:
    group = FailureGroup.objects.create(id=7, handler="shop.mail", error_class="OSError")
    operators.job(failure_group=group)
    text = words(keeper, ALL.partition("?")[0] + "?state=failed&failure=7")
    assert "failure = 7 (shop.mail: OSError), state = failed" in text


def test_more_than_one_click_changes_are_not_counted_further(
    keeper: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(5):
        operators.job()
    monkeypatch.setattr(batches, "MAX_JOBS", 3)
    monkeypatch.setattr("tailrace.jobs.operations.preview.MAX_JOBS", 3)
    assert "Replay: more than 3 jobs" in words(keeper, ALL)


@pytest.mark.parametrize("name", ["replay", "cancel", "retry"])
def test_all_jobs_need_a_filter_by_state(keeper: Client, name: str) -> None:
    operators.job()
    for query in ("", "?state=running&queue=x", "?state=completed"):
        if (name, query[:14]) != ("cancel", "?state=running"):
            response = keeper.get(f"{JOBS}all/{name}/{query}")
            assert response.status_code == 302
    assert "first filter by the state" in keeper.get(JOBS).content.decode()
    assert keeper.get(f"{JOBS}all/delete/").status_code == 404


def test_nothing_that_matches_is_nothing_to_do(keeper: Client) -> None:
    assert "No job matches. Nothing would be done." in words(keeper, ALL)
    assert keeper.post(ALL, {"last_id": "9"}).status_code == 302
    assert keeper.get(f"{JOBS}all/replay/?state=failed&payload__x=1").status_code == 400


def test_the_pages_need_both_permissions(keeper: Client) -> None:
    operators.job()
    keeper.post(ALL, {"last_id": last_id(keeper)})
    undo = reverse("admin:tailrace_jobs_replay", args=[Replay.objects.get().pk])
    for name, permissions in (("reader", [VIEW]), ("half", [REPLAY])):
        client = operators.client(name, *permissions)
        for method in ("get", "post"):
            for address in (ALL, undo):
                assert getattr(client, method)(address).status_code == 403, (name, address)
    assert Job.objects.pending().count() == 1
