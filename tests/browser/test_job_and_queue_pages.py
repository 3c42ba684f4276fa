"""The pages of a job and a queue: they fit, and move while a job runs."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.contrib.admin.utils import quote
from django.contrib.auth.models import User
from django.utils import timezone
from playwright.sync_api import Locator, Page, expect

from tailrace.db.query import query
from tailrace.jobs.engine import registry
from tailrace.jobs.handler import ClaimedJob
from tailrace.jobs.models import Attempt, Job, QueuePeriod
from tailrace.jobs.runtime import job_log
from tests.browser.screens import look
from tests.jobs import operators

pytestmark = [pytest.mark.once, pytest.mark.slow, pytest.mark.django_db(transaction=True)]


def _running_job() -> Job:
    now = timezone.now()
    job = operators.job(
        "running", claim_no=2, attempt=2, worker="worker@host:1", payload={"lamp": "x" * 300},
        created_at=now - timedelta(minutes=9), due_at=now - timedelta(minutes=3),
        started_at=now - timedelta(minutes=2), call_after=40, progress_done=1, progress_total=4,
    )  # fmt: skip
    Attempt.objects.create(
        job=job, claim_no=1, outcome="retried", error_class="shop.NoSuchLamp", message="dark " * 40,
        traceback="File lamp.py, line 3\n" * 30, worker="worker@host:1",
        started_at=now - timedelta(minutes=7), call_after=20, call_took=60,
        finished_at=now - timedelta(minutes=5),
    )  # fmt: skip
    return job


def test_a_running_job_moves_without_a_reload(
    staff: Callable[..., User], visit: Callable[..., Page]
) -> None:
    operators.register_handlers()
    job = _running_job()
    mine = ClaimedJob(job.pk, registry.get(job.handler), "", None, "", 2, 2, job.worker, None)
    mine.log("the first lamp burns " * 20)
    job_log.flush()
    keeper = staff(
        "keeper",
        "tailrace_jobs.view_job",
        "tailrace_jobs.view_job_payload",
        "tailrace_jobs.replay_job",
    )
    page = visit(keeper, f"/admin/tailrace_jobs/job/{job.pk}/change/")
    expect(page.get_by_text("1 of 4 (25 %)")).to_be_visible()
    expect(page.locator("form#job_form")).to_have_count(0)
    expect(page.locator("input:disabled, textarea:disabled")).to_have_count(0)
    for part in ("claim 1 → call", "call → end", "end → settle", "claim 2 → call", "call → now"):
        expect(page.get_by_role("rowheader", name=part)).to_be_visible()
    look(page, "job")
    state = page.locator("#live .tr-state").bounding_box()
    assert state is not None
    assert state["width"] < 100  # on a phone as well
    expect(page.get_by_text("File lamp.py").first).to_be_hidden()
    page.locator("summary", has_text="Traceback").click()
    expect(page.get_by_text("File lamp.py").first).to_be_visible()
    mine.log("the second lamp burns")
    job_log.flush()
    expect(page.get_by_text("the second lamp burns")).to_be_visible()
    Job.objects.filter(pk=job.pk).update(progress_done=3, progress_note="nearly")
    expect(page.get_by_text("3 of 4 (75 %) nearly")).to_be_visible()
    expect(page.get_by_text("File lamp.py").first).to_be_visible()  # nothing else was replaced
    Job.objects.filter(pk=job.pk).update(state="completed", finished_at=timezone.now())
    page.get_by_role("link", name="Reload").click()
    expect(page.locator(".tr-state.tr-completed").first).to_be_visible()
    expect(page.get_by_text("Cancel…")).to_have_count(0)


def test_the_page_of_a_queue_moves_and_changes_it_in_place(
    staff: Callable[..., User], visit: Callable[..., Page]
) -> None:
    operators.register_handlers()
    running = _running_job()
    operators.job("failed", error="the wick is gone " * 9, finished_at=timezone.now())
    at = timezone.now().replace(second=0, microsecond=0)
    for minute in range(2, 50):
        times = {str(10 + minute % 7): 20, str(24 + minute % 5): 9}
        QueuePeriod.objects.create(
            queue=operators.Trim.name, seconds=60, at=at - timedelta(minutes=minute),
            completed=20 + minute % 9, retried=minute % 4, failed=minute % 3, busy_ms=20_000,
            wait=times, run=times,
        )  # fmt: skip
    keeper = staff(
        "keeper",
        "tailrace_jobs.view_queue",
        "tailrace_jobs.view_job",
        "tailrace_jobs.view_job_payload",
        "tailrace_jobs.pause_queue",
    )
    page = visit(keeper, f"/admin/tailrace_jobs/queue/{quote(operators.Trim.name)}/change/")
    look(page, "queue")
    expect(page.get_by_role("img", name="Per minute, the last hour")).to_be_visible()
    page.get_by_text("Figures", exact=True).first.click()
    expect(page.get_by_role("table", name="Per minute, the last hour")).to_be_visible()
    bar = page.get_by_label(f"Progress of job {running.pk}")
    expect(bar).to_have_attribute("value", "25")
    Job.objects.filter(pk=running.pk).update(progress_done=3)
    expect(bar).to_have_attribute("value", "75")
    expect(page.get_by_role("table", name="Per minute, the last hour")).to_be_visible()
    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_role("button", name="Resume")).to_be_visible()
    page.get_by_role("link", name="7d").click()
    expect(page.get_by_role("img", name="Per minute, the last 7 days")).to_be_visible()


def test_a_list_of_jobs_fits_with_its_last_column(
    staff: Callable[..., User], visit: Callable[..., Page]
) -> None:
    operators.register_handlers()
    query("SELECT setval('tailrace_jobs_job_id_seq', 12345678)")
    for state in ("failed", "pending"):
        operators.job(state, routing_key=state * 9, error="it is not known " * 20)
    ada = staff("ada", "tailrace_jobs.view_job", "tailrace_jobs.view_job_payload")
    page = visit(ada, "/admin/tailrace_jobs/job/", width=1240)
    list_of_jobs = page.locator("#result_list")
    assert "it is not known" in list_of_jobs.inner_text()
    wrapper = list_of_jobs.locator("xpath=..")
    assert wrapper.evaluate("(it) => it.scrollWidth - it.clientWidth") <= 0
    right = list_of_jobs.evaluate("(it) => it.getBoundingClientRect().right")
    assert right <= 1240


def test_on_a_phone_the_running_jobs_fit_and_a_list_of_queues_begins_with_what_is_due(
    staff: Callable[..., User], visit: Callable[..., Page]
) -> None:
    operators.register_handlers()
    name = operators.Trim.name
    operators.due()
    query("SELECT setval('tailrace_jobs_job_id_seq', 12345678)")
    _running_job()
    keeper = staff(
        "keeper", "tailrace_jobs.view_queue", "tailrace_jobs.view_job", "tailrace_jobs.pause_queue"
    )
    page = visit(keeper, f"/admin/tailrace_jobs/queue/{quote(name)}/change/", width=375)
    table = page.get_by_role("region", name="Running jobs")
    expect(table).to_contain_text("1 of 4")
    assert table.evaluate("(it) => it.scrollWidth - it.clientWidth") <= 0
    page.goto("/admin/tailrace_jobs/queue/")
    rows = page.locator("#result_list tbody tr")
    assert _shown(rows.first) == ["name", "state", "queued", "due", "running", "oldest due"]
    expect(rows.first).to_contain_text(name)
    assert _shown(rows.last) == ["name", "state"]


def _shown(row: Locator) -> list[str]:
    """Return the names of the values of a row that are seen."""
    cells = row.locator("th:visible, td:visible")
    labels: list[str] = cells.evaluate_all("(cells) => cells.map((cell) => cell.dataset.label)")
    return [label for label in labels if label != "Select record"]
