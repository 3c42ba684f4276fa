"""All pages of the site, found by its URLs: each as the first of a few people who may open it."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.contrib import admin
from django.contrib.auth.models import Group, User
from django.db import transaction
from django.http import HttpResponse
from django.test import Client
from django_celery_beat.models import (
    ClockedSchedule,
    CrontabSchedule,
    IntervalSchedule,
    PeriodicTask,
    SolarSchedule,
)

from tailrace.db import clock
from tailrace.jobs.models import FailureGroup, Queue, Slot, SweepRun
from tailrace.subscriptions.models import EventSubscription, FeedItem, GroupAddress
from tests.builds.rows import one_of_each
from tests.web.test_permissions import PATTERNS, ROWS, World, row_of

PEOPLE = ("owner", "admin", "anonymous")
ALIKE = re.compile(r"^/admin/\w+/\w+/(?:<path:object_id>/)?(add|history|delete)/$")
"""Addresses of pages of the admin whose templates are the same for all models."""
ENOUGH = 4
"""Of such pages, for the short form."""
URLS = "tests.security.test_csp"
"""What tests that use AllPages have as their URLs: the site's, and two that fail."""


@dataclass(frozen=True)
class ShownPage:
    """A page as somebody got it."""

    who: str
    name: str
    """Its method and its pattern: `GET /me/why/<int:id>`."""
    path: str
    answer: HttpResponse


class AllPages:
    """Makes what the tests of permissions make, and a row for each list of the admin."""

    def __init__(self) -> None:
        self._world = World()
        _fill_lists(self._world.people["owner"])
        for model in admin.site._registry:
            row = model._default_manager.first()
            assert row is not None, f"make a row of {model._meta.label}, so that its page is seen"
            self._world.values.setdefault(str(model._meta.model_name), row.pk)
        self._clients = {who: self._world.client(who) for who in PEOPLE}

    def pages(self, every: bool) -> Iterator[ShownPage]:
        """Yield each page, each form with its errors, the page before an action on several rows,
        and the pages of errors. Unless `every`, those pages of the admin that are the same for each
        model but for its name and fields are those of a few models."""
        seen: Counter[str] = Counter()
        for pattern in PATTERNS:
            if pattern.startswith("/api/") and not pattern.startswith("/api/docs"):
                continue
            alike = ALIKE.search(pattern)
            kind = alike[1] if alike else pattern
            if not every and seen[kind] >= ENOUGH:
                continue
            path = self._world.path(pattern)
            for method, words in (("GET", ("ok", "away")), ("POST", ("wrong",))):
                key = row_of(method, pattern)
                for who in PEOPLE:
                    if (
                        key
                        and ROWS[key][who] in words
                        and is_page(answer := self.ask(who, path, method))
                    ):
                        seen[kind] += 1
                        yield ShownPage(who, f"{method} {pattern}", path, answer)
                        break
        yield self._several()
        yield from self._errors()

    def ask(
        self, who: str, path: str, method: str = "GET", form: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Return the answer, to a form if one is sent; what it changed is undone."""
        client = self._clients[who]
        cookies = client.cookies.copy()
        with transaction.atomic():
            answer = client.post(path, form) if form else client.generic(method, path)
            transaction.set_rollback(True)
        client.cookies = cookies
        return answer

    def _several(self) -> ShownPage:
        path = "/admin/tailrace_jobs/queue/"
        rows = list(Queue.objects.values_list("pk", flat=True)[:30])  # more than the page names
        form = {"action": "pause_queues", "_selected_action": rows}
        answer = self.ask("admin", path, form=form)
        assert is_page(answer), answer.status_code
        return ShownPage("admin", f"POST {path} several rows", path, answer)

    def _errors(self) -> Iterator[ShownPage]:
        strict = Client(enforce_csrf_checks=True, raise_request_exception=False)
        answers = {
            "400": strict.get("/me/", headers={"Host": "evil.example"}),
            "403": self.ask("owner", "/overview/workers"),
            "403 csrf": strict.post("/accounts/login/", {"username": "x", "password": "y"}),
            "404": self.ask("anonymous", "/nothing"),
            "404 admin": self.ask("admin", "/admin/nothing"),
            "405": strict.get("/accounts/logout/", headers={"Accept": "text/html"}),
            "500": self.ask("admin", "/broken"),
            "503": self.ask("admin", "/busy"),
        }
        for name, answer in answers.items():
            assert is_page(answer), name
            assert str(answer.status_code) == name.split()[0], name
            yield ShownPage("anonymous", name, f"/{name.replace(' ', '/')}", answer)


def is_page(answer: HttpResponse) -> bool:
    """Whether it is a whole document: no part of one, and no redirect."""
    return not answer.streaming and answer.content[:100].lstrip().lower().startswith(b"<!doctype")


def _fill_lists(owner: User) -> None:
    """Make a row of each kind that World makes none of."""
    some = EventSubscription.objects.order_by("pk").values("pk")[:20]
    EventSubscription.objects.filter(user=None, group=None).exclude(pk__in=some).delete()
    one_of_each()
    SweepRun.objects.create(invariant="jobs.lease_ended", outcome="error", error="refused")
    Slot.objects.create(schedule_id=7, at=clock.now(), outcome="missed")
    FailureGroup.objects.create(pk=7, handler="test.requested", message="no space")
    GroupAddress.objects.create(group=Group.objects.get(), email="crew@example.org")
    FeedItem.objects.create(user=owner, event_id=1, role="reader")
    hourly, _ = CrontabSchedule.objects.get_or_create(minute="7")
    SolarSchedule.objects.create(event="sunset", latitude=52, longitude=13)
    ClockedSchedule.objects.create(clocked_time=clock.now())
    IntervalSchedule.objects.get_or_create(every=7, period=IntervalSchedule.HOURS)
    PeriodicTask.objects.create(name="sample", task="jobs.tick", crontab=hourly)
