"""The verdict on the overview: one line, the worst cause first, with the button that mends it."""

import re
from datetime import timedelta

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client

from tailrace.db import clock
from tailrace.jobs.destinations import breaker
from tailrace.jobs.models import Breaker, Pulse, Queue
from tailrace.jobs.operations.pause import pause
from tailrace.jobs.platform.inspection import verdict
from tailrace.jobs.platform.inspection.verdict.cause import Cause, Check, Facts, Link
from tests.jobs import operators

pytestmark = pytest.mark.django_db
TRIM = operators.Trim.name
DOWN = f"{TRIM}:https://down.example.org/hook-of-a-customer"


@pytest.fixture(autouse=True)
def _system() -> None:
    operators.register_handlers()
    Pulse.objects.create(name="tick", at=clock.now(), by="w@test")
    operators.worker("w@test")


def page_of(client: Client) -> str:
    return client.get("/").content.decode()


def test_a_healthy_system() -> None:
    page = page_of(operators.client("ada"))
    assert '<h2 id="title-verdict">Healthy</h2>' in page
    assert "Workers: 1" in page


def test_the_worst_cause_is_the_headline_and_the_others_follow() -> None:
    pause(TRIM, "bob")
    operators.due()
    operators.job(finished_at=clock.now())
    page = page_of(operators.client("ada"))
    headline = page[page.index('id="title-verdict"') :].partition("</h2>")[0]
    assert f"{TRIM} was paused by bob at " in headline
    others = page.index('aria-label="Other causes"')
    assert page.index("failed permanently in the last hour") > others


def test_a_paused_queue_is_resumed_from_the_overview() -> None:
    pause(TRIM, "bob")
    operators.due()
    ada = operators.client("ada", "tailrace_jobs.pause_queue", "tailrace_jobs.view_queue")
    page = page_of(ada)
    assert 'action="/overview/mend/queue_paused"' in page
    assert (
        f'href="/admin/tailrace_jobs/queue/{TRIM.replace("_", "_5F")}/change/">Queue {TRIM}</a>'
        in page
    )
    response = ada.post("/overview/mend/queue_paused", {"subject": TRIM})
    assert (response.status_code, response["Location"]) == (302, "/")
    assert not Queue.objects.get(pk=TRIM).paused
    entry = LogEntry.objects.get()
    assert (entry.user.username, entry.object_id, entry.change_message) == ("ada", TRIM, "resumed")
    assert f"{TRIM}: resumed." in page_of(ada)


def test_without_permission_there_is_no_button_and_no_effect() -> None:
    pause(TRIM, "bob")
    operators.due()
    guest = operators.client("guest")
    page = page_of(guest)
    assert "was paused by bob" in page
    assert "/overview/mend/" not in page
    assert f">Queue {TRIM}</a>" not in page
    assert guest.post("/overview/mend/queue_paused", {"subject": TRIM}).status_code == 403
    assert Queue.objects.get(pk=TRIM).paused


def test_a_destination_is_named_to_those_alone_who_may_see_breakers() -> None:
    breaker.record_failure(DOWN, "refused", at_once=True)
    closer = operators.client("closer", "tailrace_jobs.close_breaker")
    assert "cannot be reached" in page_of(closer)
    assert "hook-of-a-customer" not in page_of(closer)
    assert closer.post("/overview/mend/breaker_open", {"subject": DOWN}).status_code == 403
    chief = operators.client("chief", "tailrace_jobs.close_breaker", "tailrace_jobs.view_breaker")
    assert "hook-of-a-customer" in page_of(chief)
    chief.post("/overview/mend/breaker_open", {"subject": DOWN})
    assert Breaker.objects.get().open_until is None


@pytest.mark.parametrize("subject", ["", "x" * 3000, "a\0b", "no.such"])
def test_odd_subjects_change_nothing(subject: str) -> None:
    pause(TRIM, "bob")
    ada = operators.client("ada", "tailrace_jobs.pause_queue")
    response = ada.post("/overview/mend/queue_paused", {"subject": subject})
    assert response.status_code == (302 if subject == "no.such" else 400)
    assert Queue.objects.get(pk=TRIM).paused
    assert not LogEntry.objects.exists()


@pytest.mark.parametrize("code", ["nothing", "pool_full"])
def test_a_cause_without_a_button_cannot_be_mended(code: str) -> None:
    ada = operators.client("ada", "tailrace_jobs.pause_queue")
    assert ada.post(f"/overview/mend/{code}", {"subject": TRIM}).status_code == 404


def test_mending_needs_a_token_of_the_form() -> None:
    ada = operators.client("ada", "tailrace_jobs.pause_queue")
    ada.handler.enforce_csrf_checks = True
    assert ada.post("/overview/mend/queue_paused", {"subject": TRIM}).status_code == 403


def test_a_cause_of_an_app_is_found_by_its_class() -> None:
    class Rain(Check):
        code = "rain"
        rank = 1

        def causes(self, facts: Facts) -> list[Cause]:
            return [Cause("It rains in.", link=Link("Roof", "tailrace:workers"))]

    verdict.checks.cache_clear()
    try:
        page = page_of(operators.client("ada"))
    finally:
        Rain.code = ""
        verdict.checks.cache_clear()
    assert '<h2 id="title-verdict">It rains in.</h2>' in page
    assert 'href="/overview/workers">Roof</a>' in page


def test_every_cause_leads_to_a_page(settings) -> None:
    settings.BROKER_URL = "redis://127.0.0.1:1/0"
    pause(TRIM, "bob")
    operators.due()
    operators.job(finished_at=clock.now())
    operators.runs(101, 90)
    breaker.record_failure(DOWN, "refused", at_once=True)
    Pulse.objects.filter(pk="tick").update(at=clock.now() - timedelta(minutes=9))
    rights = ("view_job", "view_queue", "view_breaker", "view_schedule")
    chief = operators.client("chief", *(f"tailrace_jobs.{right}" for right in rights))
    page = page_of(chief)
    addresses = re.findall(r'id="cause-\d+-link" class="tr-link" href="([^"]+)"', page)
    assert len(addresses) >= 3
    assert {chief.get(address).status_code for address in addresses} == {200}
