"""Buttons and texts of the verdict under attack: those who may not press or read them."""

import pytest
from django.contrib.admin.models import LogEntry
from django.db import connection
from django.test import Client

from tailrace.db import clock, locks
from tailrace.db.query import query
from tailrace.jobs.models import FailureGroup, Job
from tailrace.jobs.platform.inspection.storage import Snapshot, oldest_snapshot
from tailrace.jobs.platform.inspection.verdict.causes.engines import snapshot_held
from tailrace.jobs.runtime import thread_failures
from tests.jobs import operators
from tests.kit import at_once, held

pytestmark = pytest.mark.django_db(transaction=True)
END = "/overview/mend/snapshot_held"
SILENCE = "/overview/mend/jobs_failed"
SECRET = "the statement of somebody"
HOLD = f"UPDATE tailrace_jobs_queue SET paused_by = paused_by /* {SECRET} */"


@pytest.fixture(autouse=True)
def _harmful_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    operators.register_handlers()
    monkeypatch.setattr(snapshot_held, "HELD_SECONDS", 0)
    monkeypatch.setattr(snapshot_held, "LEAST_TRANSACTIONS", 0)


def snapshot() -> Snapshot:
    query("SELECT pg_current_xact_id()::text")
    held_now = oldest_snapshot()
    assert held_now is not None
    return held_now


def page(client: Client) -> str:
    return client.get("/").content.decode()


def is_open(pid: int | None) -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_stat_activity WHERE pid = %s", [pid])
        return bool(cursor.fetchone()[0])


def test_who_may_not_end_a_session_has_no_button_and_no_effect() -> None:
    staff = operators.client("staff", "tailrace_jobs.view_job", "tailrace_jobs.replay_job")
    pusher = operators.client("pusher", "tailrace_jobs.end_session")
    people = [staff, pusher, operators.client("user", staff=False), Client()]
    with held(HOLD):
        now = snapshot()
        assert "End this session" not in page(staff)
        assert "End this session" not in page(pusher), "it needs to be allowed to see the holder"
        for each in people:
            response = each.post(END, {"subject": now.session, "confirmed": "yes"})
            assert response.status_code in (302, 403)
            assert is_open(now.pid)
    assert not LogEntry.objects.exists()


def test_it_is_ended_only_after_a_confirmation_and_with_a_token_of_the_form() -> None:
    chief = operators.client("chief", "tailrace_jobs.view_job", "tailrace_jobs.end_session")
    with held(HOLD):
        now = snapshot()
        assert '<summary class="tr-button">End this session…</summary>' in page(chief)
        assert chief.post(END, {"subject": now.session}).status_code == 400
        assert chief.get(END, {"subject": now.session, "confirmed": "yes"}).status_code == 405
        chief.handler.enforce_csrf_checks = True
        form = {"subject": now.session, "confirmed": "yes"}
        assert chief.post(END, form).status_code == 403
        assert is_open(now.pid)


@pytest.mark.parametrize("subject", ["1", "1 2020-01-01", "0 x", "1; DROP TABLE a", "-1"])
def test_no_other_session_can_be_ended(subject: str) -> None:
    chief = operators.client("chief", "tailrace_jobs.view_job", "tailrace_jobs.end_session")
    with held(HOLD):
        now = snapshot()
        response = chief.post(END, {"subject": subject, "confirmed": "yes"})
        assert response.status_code == 302
        assert is_open(now.pid)
    assert not LogEntry.objects.exists()


def test_the_statement_is_read_by_those_who_may_see_payloads() -> None:
    viewer = operators.client("viewer", "tailrace_jobs.view_job")
    reader = operators.client("reader", "tailrace_jobs.view_job", "tailrace_jobs.view_job_payload")
    with held(HOLD):
        snapshot()
        assert SECRET not in page(viewer)
        assert SECRET in page(reader)


def test_messages_of_failed_threads_are_read_by_those_who_may_see_payloads() -> None:
    thread_failures._next_at.clear()
    thread_failures.record("lamp", LookupError(SECRET))
    viewer = operators.client("viewer", "tailrace_jobs.view_job")
    assert "The thread lamp" in page(viewer)
    assert SECRET not in page(viewer)
    assert SECRET in page(operators.client("reader", "tailrace_jobs.view_job_payload"))


def test_who_may_not_silence_or_replay_has_no_button_and_no_effect() -> None:
    group = FailureGroup.objects.create(id=7, handler=operators.Trim.name)
    operators.job(finished_at=clock.now(), failure_group=group)
    staff = operators.client("staff", "tailrace_jobs.view_job")
    assert "Silence for a day" not in page(staff)
    assert "Replay all of this kind" not in page(staff)
    for each in (staff, operators.client("user", staff=False), Client()):
        assert each.post(SILENCE, {"subject": "7"}).status_code in (302, 403)
    group.refresh_from_db()
    assert group.silenced_until is None
    half = operators.client("half", "tailrace_jobs.replay_job")
    assert "Replay all of this kind" not in page(half), "the page needs view_job, too"
    chief = operators.client(
        "chief", "tailrace_jobs.view_job", "tailrace_jobs.replay_job",
        "tailrace_jobs.change_failuregroup",
    )  # fmt: skip
    shown = page(chief)
    address = "/admin/tailrace_jobs/job/all/replay/?state=failed&amp;failure=7"
    assert f'href="{address}">Replay all of this kind…</a>' in shown
    asked = chief.get(address.replace("&amp;", "&"))
    assert asked.status_code == 200
    assert Job.objects.get().state == "failed", "it asks first"
    assert chief.post(SILENCE, {"subject": "7"}).status_code == 302
    group.refresh_from_db()
    assert group.silenced_until is not None
    assert LogEntry.objects.count() == 1


def test_a_button_says_who_holds_its_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "WAIT_SECONDS", 0.2)
    group = FailureGroup.objects.create(id=7, handler=operators.Trim.name)
    chief = operators.client("chief", "tailrace_jobs.change_failuregroup")
    with held("SELECT 1 FROM tailrace_jobs_failuregroup WHERE id = %s FOR UPDATE", group.pk) as pid:
        [response] = at_once(
            1, lambda _: chief.post(SILENCE, {"subject": str(group.pk)}), seconds=30
        )
    assert response.status_code == 302
    assert f"held by database session {pid} (psql)" in page(chief)
    group.refresh_from_db()
    assert group.silenced_until is None
    assert not LogEntry.objects.exists()
