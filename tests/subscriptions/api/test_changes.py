"""The change feed: nothing is skipped and nothing comes twice, whoever commits when."""

import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain
from queue import Queue
from typing import Any

import pytest
from django.db import connection, transaction
from django.db.models import Max

from events.models import Event
from subscriptions.api import changes, events
from subscriptions.lineage import name_of
from subscriptions.roles import Receivers
from tests.kit import at_once, wait_until
from tests.subscriptions.api.kit import Program, problem, program
from tests.subscriptions.stage import Gala, Play, Premiere, Rehearsal, happen

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def ann() -> Program:
    return program("ann", "events:read", may=("events.view_event",))


@pytest.fixture(autouse=True)
def _no_limit(settings) -> None:
    settings.API_RATE = settings.API_BURST = 1_000_000


class Reader:
    """Follows the feed as a program does: it keeps `next` and goes on from there."""

    def __init__(self, ann: Program, **query: Any) -> None:
        self.ann, self.query = ann, query
        self.seen: list[int] = []

    def page(self) -> dict[str, Any]:
        answer = self.ann.get("/events", **self.query)
        assert answer.status_code == 200, answer.content
        found: dict[str, Any] = answer.json()
        self.query["after"] = found["next"]
        self.seen += [event["id"] for event in found["events"]]
        return found

    def to_the_end(self) -> list[int]:
        while self.page()["more"]:
            pass
        return self.seen


@contextmanager
def open_transaction() -> Iterator[Callable[[Callable[[], Any]], Any]]:
    """Yield `within(work)`, which does the work in another connection's open transaction.

    It commits when the block ends.
    """
    works: Queue[Any] = Queue()
    answers: Queue[Any] = Queue()

    def run() -> None:
        with transaction.atomic():
            while (work := works.get(timeout=30)) is not None:
                answers.put(work())
        connection.close()

    def within(work: Callable[[], Any]) -> Any:
        works.put(work)
        return answers.get(timeout=30)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield within
    finally:
        works.put(None)
        thread.join(30)


def all_visible() -> None:
    """Wait until no transaction that was running when our events were made runs any more.

    Those of all databases of the server count, such as those of tests that run beside this one.
    """
    newest = Event.objects.aggregate(newest=Max("xact"))["newest"] or 0

    def passed() -> bool:
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT {changes._OLDEST_RUNNING}")
            return bool(cursor.fetchone()[0] > newest)

    wait_until(passed, 60, "the transactions that ran beside these events have ended")


def test_one_reads_on_from_where_one_was(ann: Program) -> None:
    made = [happen(payload={"title": str(n)}).id for n in range(5)]
    all_visible()
    reader = Reader(ann, limit=2)
    first = reader.page()
    assert [event["id"] for event in first["events"]] == made[:2]
    assert first["events"][0]["subject"] == "0"
    assert first["events"][0]["payload"] is None
    assert first["more"] is True
    assert reader.to_the_end() == made
    assert reader.page() == {"events": [], "next": reader.query["after"], "more": False}
    made.append(happen().id)
    all_visible()
    assert reader.to_the_end() == made


def test_a_transaction_with_the_lower_id_that_commits_late_is_not_skipped(ann: Program) -> None:
    reader = Reader(ann)
    before = happen().id
    all_visible()
    with open_transaction() as within:
        late = within(lambda: happen().id)
        early = happen().id
        assert late < early
        assert reader.to_the_end() == [before], "what came later waits for it"
    all_visible()
    assert reader.to_the_end() == [before, late, early]
    assert reader.to_the_end() == [before, late, early], "and none comes twice"


def test_a_transaction_that_began_earlier_and_takes_the_higher_id_is_not_skipped(
    ann: Program,
) -> None:
    reader = Reader(ann)
    with open_transaction() as within:
        first = within(lambda: happen().id)
        between = happen().id
        assert reader.to_the_end() == []
        last = within(lambda: happen().id)
    all_visible()
    assert first < between < last
    assert reader.to_the_end() == [first, last, between], "in the order of the transactions"


def test_a_transaction_that_is_rolled_back_holds_nobody_up_for_ever(ann: Program) -> None:
    reader = Reader(ann)
    with transaction.atomic():
        happen()
        transaction.set_rollback(True)
    kept = happen().id
    all_visible()
    assert reader.to_the_end() == [kept]


def test_transactions_that_only_read_hold_nobody_up(ann: Program) -> None:
    with open_transaction() as within:
        within(Event.objects.count)
        made = happen().id
        all_visible()
        assert Reader(ann).to_the_end() == [made]


@pytest.mark.parametrize("limit", [1, 7, 200])
def test_while_many_publish_a_reader_misses_nothing_and_sees_nothing_twice(
    ann: Program, limit: int
) -> None:
    writers, rounds = 4, 25
    ended: list[int] = []

    def write(number: int) -> list[int]:
        dice = random.Random(number)
        made: list[int] = []
        for _ in range(rounds):
            with transaction.atomic():
                these = [happen().id for _ in range(dice.randint(1, 3))]
                if dice.random() < 0.2:
                    transaction.set_rollback(True)
                else:
                    made += these
        ended.append(number)
        return made

    def work(number: int) -> Any:
        if number < writers:
            return write(number)
        reader = Reader(ann, limit=limit)
        while len(ended) < writers:
            reader.page()
        all_visible()
        return reader.to_the_end()

    *made, seen = at_once(writers + 1, work)
    assert sorted(seen) == sorted(chain.from_iterable(made))
    order = Event.objects.filter(pk__in=seen).order_by("xact", "id")
    assert seen == list(order.values_list("pk", flat=True))


def test_events_from_before_transactions_were_kept_come_first(ann: Program) -> None:
    made = [happen().id for _ in range(6)]
    all_visible()
    Event.objects.filter(pk__in=made[:3]).update(xact=None)
    assert Reader(ann, limit=2).to_the_end() == made
    assert Reader(ann, limit=4).to_the_end() == made
    assert Reader(ann, limit=3).to_the_end() == made
    Event.objects.update(xact=None)
    reader = Reader(ann, limit=4)
    assert reader.to_the_end() == made
    made.append(happen().id)
    all_visible()
    assert reader.to_the_end() == made


def test_from_now_on(ann: Program) -> None:
    happen()
    all_visible()
    reader = Reader(ann, after="now")
    assert reader.to_the_end() == []
    made = happen().id
    all_visible()
    assert reader.to_the_end() == [made]


def test_from_now_on_has_what_is_not_yet_committed(ann: Program) -> None:
    with open_transaction() as within:
        late = within(lambda: happen().id)
        reader = Reader(ann, after="now")
        reader.page()
    all_visible()
    assert reader.to_the_end() == [late]


def test_only_some_types_or_families(ann: Program) -> None:
    kinds = [Premiere, Rehearsal, Gala, Rehearsal, Premiere]
    made = [happen(kind).id for kind in kinds]
    all_visible()
    assert Reader(ann, types="stage.gala, stage.rehearsal").to_the_end() == made[1:4]
    assert Reader(ann, types="stage.premiere").to_the_end() == [made[0], made[2], made[4]], (
        "a type stands for those that are made of it, as in subscriptions"
    )
    assert Reader(ann, types=["stage.gala", "stage.rehearsal"], limit=1).to_the_end() == made[1:4]
    assert Reader(ann, types=name_of(Play)).to_the_end() == made
    assert Reader(ann, types="*").to_the_end() == made
    found = problem(ann.get("/events", types="stage.galla"), 422, "invalid")
    assert "did you mean 'stage.gala'?" in found["detail"]
    assert found["errors"][0]["parameter"] == "types"


def test_rare_types_are_looked_for_a_bounded_way_at_a_time(ann: Program, monkeypatch) -> None:
    monkeypatch.setattr(changes, "SCANNED", 4)
    for _ in range(10):
        happen(Rehearsal)
    rare = happen(Gala).id
    all_visible()
    reader = Reader(ann, types="stage.gala", limit=2)
    first = reader.page()
    assert (first["events"], first["more"]) == ([], True), "nothing yet, and on it goes"
    assert reader.to_the_end() == [rare]
    Event.objects.exclude(pk=rare).update(xact=None)
    assert Reader(ann, types="stage.gala", limit=2).to_the_end() == [rare]


def test_hidden_ones_are_passed_over(ann: Program, monkeypatch) -> None:
    monkeypatch.setattr(
        Premiere,
        "readers",
        classmethod(lambda cls, event: Receivers() if event.subject == "hidden" else None),
    )
    for title in ("hidden", "hidden", "a", "hidden", "b"):
        happen(payload={"title": title})
    all_visible()
    reader = Reader(ann, limit=1)
    reader.to_the_end()
    subjects = Event.objects.filter(pk__in=reader.seen).values_list("subject", flat=True)
    assert sorted(subjects) == ["a", "b"]


def test_a_reader_may_wait_for_news(ann: Program, monkeypatch) -> None:
    monkeypatch.setattr(events, "LOOK_EVERY", 0.02)
    started = threading.Event()

    def work(number: int) -> Any:
        if number == 0:
            started.set()
            return Reader(ann, wait=20).page()["events"]
        started.wait(20)
        wait_until(lambda: events._waiting._value < LIMIT, 10, "the reader waits")
        return happen().id

    LIMIT = events._waiting._value
    found, made = at_once(2, work)
    assert [event["id"] for event in found] == [made]
    assert events._waiting._value == LIMIT, "its place is free again"


def test_who_finds_no_place_to_wait_is_answered_at_once(ann: Program) -> None:
    places = events._waiting._value
    for _ in range(places):
        events._waiting.acquire()
    try:
        assert Reader(ann, wait=20).page()["events"] == []
    finally:
        events._waiting.release(places)
    problem(ann.get("/events", wait=21), 422, "invalid")


@pytest.mark.parametrize("after", ["", "x", "W10", "WzFd", "WyJhIiwxXQ", "WzEsMi41XQ", "NOW"])
def test_a_place_of_ones_own_making_is_refused(ann: Program, after: str) -> None:
    (fault,) = problem(ann.get("/events", after=after), 422, "invalid")["errors"]
    assert fault["parameter"] == "after"


def test_it_needs_the_permission() -> None:
    problem(program("bob", "events:read").get("/events"), 403, "permission-missing")


def test_a_page_costs_what_it_shows(ann: Program) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            """INSERT INTO events_event (source, source_id, type, schema_version, subject, payload,
                 actor, trace_parent, problem, xact)
               SELECT 'x', n, 'stage.premiere', 1, '', '{}', '', '', '',
                      CASE WHEN n > 10000 THEN n / 10 END
               FROM generate_series(1, 20000) AS n"""
        )
        cursor.execute("ANALYZE events_event")
        for where in (changes._OLD, changes._NEW):
            cursor.execute(
                "EXPLAIN " + changes._READ.format(where=where),
                {"xact": 1500, "id": 5000, "window": 50, "limit": 50, "types": None},
            )
            plan = "\n".join(row[0] for row in cursor.fetchall())
            assert "Index Scan using event_committed" in plan or (
                "Index Only Scan using event_committed" in plan
            ), plan
            assert "Seq Scan on events_event" not in plan
