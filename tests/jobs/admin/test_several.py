"""Actions on several rows of a list: their number is shown before, and logged in one entry."""

from typing import Any

import pytest
from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.test import Client, RequestFactory

from tailrace.jobs.models import Queue
from tailrace.jobs.platform.admin.base import DELETE, ModelAdmin
from tailrace.jobs.platform.admin.lists import several
from tailrace.jobs.platform.admin.lists.several import counted_first
from tailrace.web.accounts.tokens import make, revoke
from tailrace.web.models import ApiToken
from tests.jobs import operators

pytestmark = pytest.mark.django_db
QUEUES = "/admin/tailrace_jobs/queue/"


@pytest.fixture
def keeper() -> Client:
    operators.register_handlers()
    return operators.client("keeper", "tailrace_jobs.view_queue", "tailrace_jobs.pause_queue")


def names(count: int) -> list[str]:
    return list(Queue.objects.order_by("name").values_list("name", flat=True)[:count])


def form(chosen: list[str], **more: Any) -> dict[str, Any]:
    return {"action": "pause_queues", "_selected_action": chosen, "index": 0, **more}


def paused() -> int:
    return Queue.objects.exclude(paused_at=None).count()


def test_several_are_shown_before_anything_is_done(keeper: Client) -> None:
    chosen = names(3)
    page = keeper.post(QUEUES, form(chosen))
    assert page.context["title"] == "Pause: 3 queues"
    assert [str(row) for row in page.context["rows"]] == chosen
    assert paused() == LogEntry.objects.count() == 0
    sent: dict[str, list[str]] = {}
    for name, value in [*page.context["fields"], page.context["confirmed"]]:
        sent.setdefault(name, []).append(value)
    assert keeper.post(QUEUES, sent).status_code == 302
    assert paused() == 3
    assert LogEntry.objects.get().change_message == f"paused 3 queues: {', '.join(chosen)}"


def test_the_entry_of_all_that_match_says_so(keeper: Client) -> None:
    count = Queue.objects.count()
    sent = form(names(1), select_across=1)
    page = keeper.post(QUEUES, sent)
    assert page.context["title"] == f"Pause: {count} queues"
    assert "All matching rows: all" in page.content.decode()
    keeper.post(QUEUES, sent | {"confirmed": count})
    assert paused() == count
    first = names(1)[0]
    text = LogEntry.objects.get().change_message
    assert text.startswith(f"paused {count} queues: all ({first}, ")


def test_the_entry_has_the_filter(keeper: Client) -> None:
    ann = User.objects.create_user("ann")
    for name in "abc":
        make(ann, name, ["jobs:read"])
    revoke(ApiToken.objects.get(name="c"))
    chief = operators.client(
        "chief", "tailrace_subscriptions.view_apitoken", "tailrace_subscriptions.change_apitoken"
    )
    address = "/admin/tailrace_subscriptions/apitoken/?q=ann&revoked_at__isempty=1&p=0"
    sent = {"action": "revoke", "_selected_action": [1], "select_across": 1, "confirmed": 2}
    assert chief.post(address, sent).status_code == 302
    assert not ApiToken.objects.filter(revoked_at=None).exists()
    text = LogEntry.objects.get().change_message
    assert text.startswith("revoked 2 api tokens: search = ann, revoked_at__isempty = 1 (")


@pytest.mark.parametrize("number", ["2", "4", "", "x", "\0"])
def test_another_number_than_was_shown_is_shown_first(keeper: Client, number: str) -> None:
    page = keeper.post(QUEUES, form(names(3), confirmed=number))
    assert page.context["title"] == "Pause: 3 queues"
    assert paused() == 0


def test_more_than_the_most_are_refused(keeper: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(several, "MOST", 2)
    sent = form(names(1), select_across=1, confirmed=Queue.objects.count())
    page = keeper.post(QUEUES, sent, follow=True)
    assert "more than 2 queues are selected; filter the list first" in page.content.decode()
    assert paused() == LogEntry.objects.count() == 0
    keeper.post(QUEUES, form(names(2), confirmed=2))
    assert paused() == 2


def test_one_needs_no_page(keeper: Client) -> None:
    assert keeper.post(QUEUES, form(names(1))).status_code == 302
    assert paused() == 1


def test_what_is_sent_along_comes_back_as_text(keeper: Client) -> None:
    page = keeper.post(QUEUES, form(names(2), extra='"><script>alert(1)</script>'))
    assert "<script>alert(1)" not in page.content.decode()


def test_without_the_permission_there_is_no_page() -> None:
    operators.register_handlers()
    page = operators.client("reader", "tailrace_jobs.view_queue").post(QUEUES, form(names(2)))
    assert "Pause: 2" not in page.content.decode()
    assert paused() == 0


def test_each_action_of_each_list_counts_first() -> None:
    request = RequestFactory().get("/")
    request.user = User.objects.create_superuser("chief")
    seen = 0
    for model, model_admin in admin.site._registry.items():
        assert isinstance(model_admin, ModelAdmin), model
        for name, (function, *_) in model_admin.get_actions(request).items():
            if name != DELETE:
                assert function.__code__ is counted_first(id, "").__code__, (model, name)
                seen += 1
    assert seen > 10
