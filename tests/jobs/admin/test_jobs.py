"""Retry, cancel and replay of jobs: by POST, with a permission, in the log."""

from datetime import timedelta

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client

from tailrace.events.models import Event
from tailrace.jobs.models import Attempt, Job
from tailrace.jobs.operations import batches
from tests.jobs import operators

pytestmark = pytest.mark.django_db
JOBS = "/admin/tailrace_jobs/job/"
VIEW, REPLAY = "tailrace_jobs.view_job", "tailrace_jobs.replay_job"


@pytest.fixture(autouse=True)
def _handlers() -> None:
    operators.register_handlers()


def _act(
    client: Client, action: str, ids: list[int], query: str = "", across: bool = False
) -> None:
    form = {"action": action, "_selected_action": ids, "select_across": int(across), "index": 0}
    form["confirmed"] = len(ids)
    response = client.post(JOBS + query, form)
    # Without the permission there is no such action, and the list is shown as it is.
    assert response.status_code in (200, 302)


def _state(job: Job) -> str:
    return Job.objects.get(pk=job.pk).state


def test_replay_puts_chosen_jobs_back_with_one_entry_in_the_log() -> None:
    first, second, other = operators.job(), operators.job(), operators.job()
    _act(operators.client("keeper", VIEW, REPLAY), "replay_jobs", [first.pk, second.pk])
    assert [_state(job) for job in (first, second, other)] == ["pending", "pending", "failed"]
    message = f"replayed 2 jobs: jobs {first.pk}, {second.pk}"
    assert LogEntry.objects.get().change_message == message


def test_an_action_needs_the_replay_permission() -> None:
    job = operators.job()
    _act(operators.client("reader", VIEW), "replay_jobs", [job.pk])
    assert _state(job) == "failed"
    assert not LogEntry.objects.exists()


def test_cancel_ends_queued_jobs_and_stops_running_ones() -> None:
    pending, running, done = (
        operators.job("pending"),
        operators.job("running"),
        operators.job("completed"),
    )
    client = operators.client("keeper", VIEW, REPLAY)
    _act(client, "cancel_jobs", [pending.pk, running.pk, done.pk])
    assert [_state(job) for job in (pending, running, done)] == [
        "cancelled",
        "running",
        "completed",
    ]
    assert Job.objects.get(pk=running.pk).cancel_requested
    page = client.get(JOBS).content.decode()
    assert "1 job cancelled. 1 job running: stop requested. 1 job not changed" in page


def test_one_click_changes_a_bounded_number_of_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "BATCH", 10)
    for _ in range(25):
        operators.job()
    keeper = operators.client("keeper", VIEW, REPLAY)
    user = type("Keeper", (), {"pk": keeper.session["_auth_user_id"], "get_username": str})()
    outcome = batches.apply(user, batches.JOB_ACTIONS["replay"], Job.objects.all(), limit=20)
    assert (outcome.changed, outcome.more) == (20, True)
    assert Job.objects.failed().count() == 5


@pytest.mark.parametrize(
    ("verb", "before", "after"),
    [
        ("replay", "failed", "pending"),
        ("cancel", "pending", "cancelled"),
        ("retry", "pending", "pending"),
    ],
)
def test_the_buttons_of_a_job_are_posts_by_permission(verb: str, before: str, after: str) -> None:
    job = operators.job(before)
    address = f"{JOBS}{job.pk}/{verb}/"
    keeper = operators.client("keeper", VIEW, REPLAY)
    assert Client().post(address).status_code == 302
    assert operators.client("reader", VIEW).post(address).status_code == 403
    assert keeper.get(address).status_code == 405
    assert _state(job) == before
    assert f'action="{address}"' in keeper.get(f"{JOBS}{job.pk}/change/").content.decode()
    assert keeper.post(address).status_code == 302
    assert _state(job) == after


def test_buttons_are_shown_only_with_permission() -> None:
    address = f"{JOBS}{operators.job().pk}/change/"
    assert "Replay" not in operators.client("reader", VIEW).get(address).content.decode()


def test_payload_and_result_need_their_own_permission() -> None:
    job = operators.job("completed", payload={"a": "treasure"}, result={"b": "gold"})
    address = f"{JOBS}{job.pk}/change/"
    without = operators.client("without", VIEW).get(address).content.decode()
    assert "treasure" not in without
    assert "gold" not in without
    with_it = (
        operators.client("with", VIEW, "tailrace_jobs.view_job_payload")
        .get(address)
        .content.decode()
    )
    assert "treasure" in with_it
    assert "gold" in with_it


def test_a_job_shows_its_attempts_and_what_waits_for_it() -> None:
    job = operators.job("pending")
    waiting = operators.job("waiting", after=job)
    Attempt.objects.create(
        job=job, claim_no=1, outcome="lost", error_class="Dark", message="x", traceback="line 3"
    )
    client = operators.client("reader", VIEW, "tailrace_jobs.view_job_payload")
    page = client.get(f"{JOBS}{job.pk}/change/").content.decode()
    assert "line 3" in page
    assert f"{JOBS}{waiting.pk}/change/" in page


def test_jobs_are_found_by_queue_state_lane_and_id() -> None:
    red = operators.job("failed", lane="red")
    blue = operators.job("completed", lane="blue")
    client = operators.client("reader", VIEW)

    def found(query: str) -> set[int]:
        return {row.pk for row in client.get(JOBS + query).context["cl"].result_list}

    assert found(f"?queue={operators.Trim.name}&state=failed") == {red.pk}
    assert found("?lane=blue") == {blue.pk}
    assert found(f"?q={red.pk}") == {red.pk}
    assert found("?q=red") == found("?queue=nothing") == set()


def test_jobs_are_found_by_their_age(clock) -> None:
    old = operators.job(created_at=clock.now() - timedelta(hours=3))
    new = operators.job(created_at=clock.now() - timedelta(minutes=3))
    client = operators.client("reader", VIEW)

    def found(query: str) -> set[int]:
        return {row.pk for row in client.get(JOBS + query).context["cl"].result_list}

    assert found("?created=5m") == found("?created=1h") == {new.pk}
    assert found("?created=1d&state=failed") == {old.pk, new.pk}
    assert found("?created=2000y") == set()


def test_the_list_shows_what_a_job_is_about_only_to_those_who_may_see_events() -> None:
    event = Event.objects.create(source="t", source_id="1", type="x", subject="home:alice/lamp")
    operators.job("completed", event=event)
    operators.job("completed", lane="red lane")
    reader = operators.client("reader", VIEW).get(JOBS).content.decode()
    assert "home:alice/lamp" not in reader
    assert "red lane" in reader
    rights = ("tailrace_events.view_event", "tailrace_events.view_hidden")
    page = operators.client("more", VIEW, *rights).get(JOBS).content.decode()
    assert "home:alice/lamp" in page


def test_choices_of_filters_are_links_above_the_list() -> None:
    page = operators.client("reader", VIEW).get(JOBS + "?state=failed").content.decode()
    links = page[page.index('aria-label="By state"') : page.index('aria-label="By created"')]
    assert '<a href="?state=completed">completed</a>' in links
    assert '<a href="?state=failed" aria-current="true">failed</a>' in links


def test_times_in_the_list_are_relative_with_the_time_on_hover(clock) -> None:
    at = clock.now() - timedelta(minutes=7)
    job = operators.job("completed", finished_at=at)
    client = operators.client("reader", VIEW)
    page = client.get(JOBS).content.decode()
    assert f'title="{at:%Y-%m-%d %H:%M:%S} UTC">7 min ago</time>' in page
    assert f"{at:%Y-%m-%d %H:%M:%S} UTC" in client.get(f"{JOBS}{job.pk}/change/").content.decode()


def test_nobody_adds_changes_or_deletes_jobs() -> None:
    job = operators.job()
    client = operators.client(
        "eager",
        VIEW,
        "tailrace_jobs.add_job",
        "tailrace_jobs.change_job",
        "tailrace_jobs.delete_job",
    )
    assert client.get(JOBS + "add/").status_code == 403
    assert client.get(f"{JOBS}{job.pk}/delete/").status_code == 403
    assert client.post(f"{JOBS}{job.pk}/change/", {"state": "completed"}).status_code == 403
    _act(client, "delete_selected", [job.pk])
    assert _state(job) == "failed"


def test_a_search_is_in_the_address_and_says_what_to_type() -> None:
    first, second = operators.job(lane="l"), operators.job("completed", lane="l")
    client = operators.client("reader", VIEW, REPLAY)

    def listed(query: str) -> list[int]:
        return [row.pk for row in client.get(JOBS + query).context["cl"].result_list]

    assert listed("?q=lane:l") == [second.pk, first.pk]
    assert listed("?q=lane:l+state:failed") == listed("?q=lane:l&state=failed") == [first.pk]
    assert listed("?q=lane:m") == listed("?q=since:soon") == []
    assert (
        "takes a time in UTC or a duration before now"
        in client.get(f"{JOBS}?q=since:soon").content.decode()
    )
    assert 'value="lane:l"' in client.get(f"{JOBS}?q=lane:l").content.decode()
    preview = client.get(f"{JOBS}all/replay/?q=lane:l+state:failed").content.decode()
    assert "Replay: 1 job" in preview
    assert "search = lane:l state:failed" in preview
