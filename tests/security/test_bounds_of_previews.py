"""What a preview of a subscription may cost."""

import time

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tailrace.subscriptions.models import EventSubscription
from tailrace.subscriptions.notifications.audience import preview
from tests.kit import held
from tests.subscriptions.sample_domain import (
    FIRST,
    assign_role,
    person,
    publish_event,
    subscribe,
)
from tests.web.program import program

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_preview_got_a_thread_for_as_long_as_a_lock_was_held() -> None:
    ann = program("ann")
    assign_role(FIRST, ann.user)
    publish_event()
    row = subscribe(user=ann.user)
    wanted = {"event_type": row.event_type, "role": FIRST, "channel": row.channel}
    count = EventSubscription.objects.count()
    started = time.monotonic()
    with held("LOCK TABLE tailrace_subscriptions_block"):
        saved = ann.get(f"/subscriptions/{row.pk}/preview")
        unsaved = ann.post("/subscriptions/preview", wanted | {"subject_pattern": "x*"})
    assert time.monotonic() - started < 30
    for answer in (saved, unsaved):
        assert answer.status_code == 200, answer.content
        assert (answer.json()["whole"], answer.json()["count"]) == (False, 0)
    row.refresh_from_db()
    assert (row.subject_pattern, EventSubscription.objects.count()) == ("", count)
    assert ann.get(f"/subscriptions/{row.pk}/preview").json()["count"] == 1


def test_a_preview_got_all_other_receivers_looked_up() -> None:
    ann = program("ann")
    assign_role(FIRST, ann.user, *(person(f"visitor-{number}") for number in range(5)))
    publish_event()
    row = subscribe(user=ann.user)
    with CaptureQueriesContext(connection) as queries:
        result = preview.preview(row, 7, ann.user)
    assert result.count == 1
    assert not [each["sql"] for each in queries if "visitor-" in each["sql"]]
