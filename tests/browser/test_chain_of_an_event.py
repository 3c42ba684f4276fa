"""The page of an event shows its causes and effects; any of them is opened and replayed from it."""

from collections.abc import Callable

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Page, expect

from tailrace.events.models import Event
from tailrace.jobs.models import Job
from tests.browser.screens import look
from tests.jobs import operators

pytestmark = [pytest.mark.once, pytest.mark.slow, pytest.mark.django_db(transaction=True)]


def _event(number: int, cause: Event | None = None) -> Event:
    return Event.objects.create(
        source="test", source_id=str(number), type=operators.LampLit.name, cause=cause
    )


def test_from_an_effect_to_its_cause_and_a_replay_there(
    staff: Callable[..., User], visit: Callable[..., Page]
) -> None:
    operators.register_handlers()
    root = _event(1)
    middle = _event(2, root)
    leaf = _event(3, middle)
    failed = operators.job(event=middle, routing_key="a-long-key-" * 4, error="it went dark")
    operators.job("completed", event=leaf)
    rights = (
        "tailrace_jobs.view_job",
        "tailrace_jobs.view_job_payload",
        "tailrace_jobs.replay_job",
        "tailrace_events.view_event",
    )
    page = visit(staff("keeper", *rights), f"/admin/tailrace_events/event/{leaf.pk}/change/")
    look(page, "chain")
    expect(page.locator("article[aria-current]")).to_have_attribute("id", f"event-{leaf.pk}")
    expect(page.locator(f"#event-{middle.pk}")).to_contain_text("it went dark")
    page.get_by_role("button", name=f"Replay the failed jobs of event {middle.pk}").click()
    expect(page.locator(f"#event-{middle.pk} .tr-pending").first).to_be_visible()
    assert Job.objects.get(pk=failed.pk).state == "pending"
    page.locator(f"#event-{root.pk} h3 a").click()
    expect(page.locator("article[aria-current]")).to_have_attribute("id", f"event-{root.pk}")
    expect(page.locator(f"#event-{leaf.pk}")).to_be_visible()
