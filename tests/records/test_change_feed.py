"""The feed of changes: events of one timestamp, by pages, while others are written."""

import random
from typing import Any

import pytest
from django.db import transaction

from domains.records.depositions.submit import submit
from events.models import Event
from tests.kit import at_once, wait_for_older_transactions
from tests.records.kit import draft, harvested, source
from tests.web.program import program

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]
COUNT, PAGE, WRITERS, ROUNDS = 1000, 50, 3, 15


def test_a_thousand_events_of_one_time_are_read_once_while_others_are_written(
    settings: Any,
) -> None:
    settings.API_RATE = settings.API_BURST = settings.USER_RATE = settings.USER_BURST = 1_000_000
    ana = program("ana", "events:read", may=("events.view_event", "records.view_deposition"))
    submit(harvested(COUNT, source()))
    assert Event.objects.values("recorded_at").distinct().count() == 1
    ended: list[int] = []

    def write(number: int) -> None:
        dice = random.Random(number)
        for _ in range(ROUNDS):
            with transaction.atomic():
                submit([draft(f"of writer {number}") for _ in range(dice.randint(1, 5))])
                transaction.set_rollback(dice.random() < 0.3)
        ended.append(number)

    def read() -> list[int]:
        seen: list[int] = []
        query: dict[str, Any] = {"limit": PAGE}
        while True:
            has_ended = len(ended) == WRITERS
            if has_ended:
                wait_for_older_transactions()
            page = ana.get("/events", **query).json()
            assert len(page["events"]) <= PAGE
            seen += [event["id"] for event in page["events"]]
            query["after"] = page["next"]
            if has_ended and not page["more"]:
                return seen

    *_nothing, seen = at_once(WRITERS + 1, lambda n: write(n) if n < WRITERS else read())
    assert len(seen) > COUNT
    assert sorted(seen) == list(Event.objects.order_by("id").values_list("id", flat=True))
