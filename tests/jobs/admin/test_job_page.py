"""The page of a job: what comes first, its bars, what failed like it, and its due time."""

from datetime import timedelta

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client
from django.utils import timezone

from tailrace.jobs.engine.failures.fingerprint import fingerprint
from tailrace.jobs.models import Attempt, Job
from tailrace.jobs.platform.admin.base import EMPTY
from tailrace.jobs.platform.inspection.details.waterfall import Waterfall
from tests.jobs import operators

pytestmark = pytest.mark.django_db
JOBS = "/admin/tailrace_jobs/job/"
VIEW, REPLAY, PAYLOAD = (
    "tailrace_jobs.view_job",
    "tailrace_jobs.replay_job",
    "tailrace_jobs.view_job_payload",
)


@pytest.fixture(autouse=True)
def _handlers() -> None:
    operators.register_handlers()


def _page(client: Client, job: Job) -> str:
    return client.get(f"{JOBS}{job.pk}/change/").content.decode()


def _failed(error_class: str = "shop.NoSuchLamp") -> Job:
    job = operators.job(error="the wick is gone", claim_no=1, payload={"lamp": 7})
    job.failure_group_id = fingerprint(job.handler, error_class, job.error, "").id
    job.save()
    Attempt.objects.create(
        job=job, claim_no=1, outcome="failed", error_class=error_class, traceback="line 3"
    )
    return job


def test_a_sentence_comes_first_then_error_and_payload_then_times_and_attempts() -> None:
    page = _page(operators.client("reader", VIEW, PAYLOAD), _failed())
    rest = page[page.index("</p>", page.index('class="tr-sentence"')) :]
    places = [
        rest.index(words)
        for words in ("shop.NoSuchLamp", "the wick is gone", "&quot;lamp&quot;: 7", "Time spent",
                      "line 3", "Job</h2>")
    ]  # fmt: skip
    assert places == sorted(places)


def test_a_long_payload_is_folded() -> None:
    short, long = (operators.job("completed", payload={"n": [*range(n)]}) for n in (3, 100))
    reader = operators.client("reader", VIEW, PAYLOAD)
    assert "<summary>" not in _page(reader, short)
    page = _page(reader, long)
    assert "<summary>104 lines</summary>" in page
    assert "99\n" in page


def test_without_the_permission_the_class_alone_is_shown() -> None:
    page = _page(operators.client("reader", VIEW), _failed())
    assert "shop.NoSuchLamp" in page
    for secret in ("the wick is gone", "lamp&quot;", "line 3"):
        assert secret not in page


def test_a_page_is_no_form_and_has_no_empty_fields() -> None:
    job = operators.job("completed")
    response = operators.client("reader", VIEW).get(f"{JOBS}{job.pk}/change/")
    assert 'id="job_form"' not in response.content.decode()
    fields = {field.label: field.value for group in response.context["details"]
              for field in group.fields}  # fmt: skip
    assert fields["Handler"] == operators.Trim.name
    assert "Lane" not in fields
    assert "Lease until" not in fields
    assert not EMPTY & {str(value) for value in fields.values()}


def test_bars_end_at_now_while_a_job_runs() -> None:
    now = timezone.now()
    job = operators.job(
        "running", claim_no=1, created_at=now - timedelta(seconds=40),
        due_at=now - timedelta(seconds=40), started_at=now - timedelta(seconds=30),
    )  # fmt: skip
    waterfall = operators.client("reader", VIEW).get(f"{JOBS}{job.pk}/change/").context["waterfall"]
    assert [(bar.span.kind, round(bar.span.seconds, -1)) for bar in waterfall.bars] == [
        ("queued", 10),
        ("run", 30),
    ]
    assert [float(bar.left) for bar in waterfall.bars] == pytest.approx([0, 25], abs=2)
    assert waterfall.ticks == ["0 s", "10 s", "20 s", "30 s", "40 s"]


@pytest.mark.parametrize(
    ("seconds", "ticks"),
    [
        (0.2, ["0 s", "50 ms", "100 ms", "150 ms", "200 ms"]),
        (6, ["0 s", "1.5 s", "3 s", "4.5 s", "6 s"]),
        (90, ["0 s", "22 s", "45 s", "1 min 7 s", "1 min 30 s"]),
        (5400, ["0 s", "22 min 30 s", "45 min", "1 h 7 min", "1 h 30 min"]),
        (200_000, ["0 s", "13 h 53 min", "1 d 3 h", "1 d 17 h", "2 d 7 h"]),
    ],
)
def test_the_axis_of_the_bars_is_even(seconds: float, ticks: list[str]) -> None:
    now = timezone.now()
    assert Waterfall([], now, now + timedelta(seconds=seconds)).ticks == ticks


def test_a_live_job_without_a_log_has_no_empty_box() -> None:
    words = "No lines yet."
    reader = operators.client("reader", VIEW, PAYLOAD)
    job = operators.job("running", claim_no=1)
    assert words in _page(reader, job)
    assert words not in _page(reader, operators.job("completed"))


def test_names_keep_their_small_letters() -> None:
    job = operators.job("completed")
    title = _page(operators.client("reader", VIEW), job).partition("<h1")[2].partition("</h1>")[0]
    assert f">{operators.Trim.name} {job.pk}</a>" in title
    assert ">Jobs</a>" in title


def test_a_failed_job_leads_to_those_that_failed_alike() -> None:
    first, other, middle, last = (_failed(), _failed("Other"), _failed(), _failed())
    replayed = _failed()
    Job.objects.filter(pk=replayed.pk).update(state="completed")
    client = operators.client("reader", VIEW)
    page = _page(client, middle)
    assert f'href="{JOBS}{first.pk}/change/">previous' in page
    assert f'href="{JOBS}{last.pk}/change/">next' in page
    assert '/change/">next' not in _page(client, last), "a job that is not failed now"
    assert "No other job of the queue has this failure." in _page(client, other)


def test_due_time_and_priority_of_a_pending_job_are_changed_and_audited() -> None:
    job = operators.job("pending", due_at=timezone.now() + timedelta(hours=1))
    due_at = (timezone.now() + timedelta(hours=2)).replace(microsecond=0)
    form = {"due_at": due_at.strftime("%Y-%m-%dT%H:%M:%S"), "priority": "0"}
    address = f"{JOBS}{job.pk}/reschedule/"
    assert operators.client("reader", VIEW).post(address, form).status_code == 403
    keeper = operators.client("keeper", VIEW, REPLAY)
    assert address in _page(keeper, job)
    assert keeper.post(address, form).status_code == 302
    job.refresh_from_db()
    assert (job.due_at, job.priority) == (due_at, 0)
    [entry] = LogEntry.objects.all()
    assert entry.change_message == f"rescheduled: due {due_at:%Y-%m-%d %H:%M:%S} UTC, priority 0"


@pytest.mark.parametrize(
    ("state", "due_at", "words"),
    [
        ("running", "2026-10-01T12:00:00", "no longer queued"),
        ("pending", "1999-01-01T00:00:00", "is in the past"),
        ("pending", "soon", "Enter a valid"),
    ],
)
def test_what_cannot_be_rescheduled_stays(state: str, due_at: str, words: str) -> None:
    at = timezone.now() + timedelta(hours=1)
    if state == "running":
        due_at = at.strftime("%Y-%m-%dT%H:%M:%S")
    job = operators.job(state, due_at=at)
    keeper = operators.client("keeper", VIEW, REPLAY)
    form = {"due_at": due_at, "priority": "1"}
    response = keeper.post(f"{JOBS}{job.pk}/reschedule/", form, follow=True)
    assert words in response.content.decode()
    assert Job.objects.get(pk=job.pk).due_at == at
    assert not LogEntry.objects.exists()


def test_the_live_part_shows_progress_and_that_the_page_is_old() -> None:
    job = operators.job("running", progress_done=3, progress_total=4, progress_note="wick")
    client = operators.client("reader", VIEW, PAYLOAD)
    live = f"{JOBS}{job.pk}/live/"
    part = client.get(live, {"shown": "running"}).content.decode()
    assert "3 of 4 (75 %) wick" in part
    assert "out of date" not in part
    Job.objects.filter(pk=job.pk).update(state="completed")
    part = client.get(live, {"shown": "running"}).content.decode()
    assert "out of date" in part
    assert "hx-get" not in part
    assert "wick" not in operators.client("other", VIEW).get(live).content.decode()
    assert operators.client("nobody").get(live).status_code == 403
    assert client.get(f"{JOBS}{job.pk + 1}/live/").status_code == 404
