"""Following events by the API: none is skipped and none comes twice."""

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

from tailrace.events.catalog.topics import topic_name
from tailrace.events.models import Event
from tailrace.events.readers import NOBODY, UNDECIDED
from tailrace.subscriptions.api import changes, events
from tailrace.web.api.requests.waiting import waiting
from tests.kit import PATIENCE, at_once, wait_until
from tests.subscriptions.sample_domain import (
    Gala,
    Play,
    Premiere,
    Rehearsal,
    publish_event,
    readers,
)
from tests.web.program import Program, problem, program

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def ann() -> Program:
    return program("ann", "events:read", may=("tailrace_events.view_event",))


@pytest.fixture(autouse=True)
def _no_limit(settings) -> None:
    settings.API_RATE = settings.API_BURST = 1_000_000
    settings.USER_RATE = settings.USER_BURST = 1_000_000


class Reader:
    """Follows the feed as a program does: it stores `next` and continues from there."""

    def __init__(self, ann: Program, **query: Any) -> None:
        self.ann, self.query = ann, query
        self.seen: list[int] = []

    def page(self) -> dict[str, Any]:
        answer = self.ann.get("/events", **self.query)
        assert answer.status_code == 200, answer.content
        result: dict[str, Any] = answer.json()
        self.query["after"] = result["next"]
        self.seen += [event["id"] for event in result["events"]]
        return result

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
            while (work := works.get(timeout=PATIENCE)) is not None:
                answers.put(work())
        connection.close()

    def within(work: Callable[[], Any]) -> Any:
        works.put(work)
        return answers.get(timeout=PATIENCE)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield within
    finally:
        works.put(None)
        thread.join(PATIENCE)


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


def test_a_reader_continues_where_it_stopped(ann: Program) -> None:
    created = [publish_event(payload={"title": str(n)}).id for n in range(5)]
    all_visible()
    reader = Reader(ann, limit=2)
    first = reader.page()
    assert [event["id"] for event in first["events"]] == created[:2]
    assert first["events"][0]["subject"] == "0"
    assert first["events"][0]["payload"] is None
    assert first["more"] is True
    assert reader.to_the_end() == created
    assert reader.page() == {"events": [], "next": reader.query["after"], "more": False}
    created.append(publish_event().id)
    all_visible()
    assert reader.to_the_end() == created


def test_a_lower_id_that_commits_late_is_not_skipped(ann: Program) -> None:
    reader = Reader(ann)
    before = publish_event().id
    all_visible()
    with open_transaction() as within:
        late = within(lambda: publish_event().id)
        early = publish_event().id
        assert late < early
        assert reader.to_the_end() == [before], "what came later waits for it"
    all_visible()
    assert reader.to_the_end() == [before, late, early]
    assert reader.to_the_end() == [before, late, early], "and none comes twice"


def test_an_older_transaction_with_a_higher_id_is_read(
    ann: Program,
) -> None:
    reader = Reader(ann)
    with open_transaction() as within:
        first = within(lambda: publish_event().id)
        between = publish_event().id
        assert reader.to_the_end() == []
        last = within(lambda: publish_event().id)
    all_visible()
    assert first < between < last
    assert reader.to_the_end() == [first, last, between], "in the order of the transactions"


def test_a_rolled_back_transaction_delays_only_once(ann: Program) -> None:
    reader = Reader(ann)
    with transaction.atomic():
        publish_event()
        transaction.set_rollback(True)
    kept = publish_event().id
    all_visible()
    assert reader.to_the_end() == [kept]


def test_read_only_transactions_delay_nobody(ann: Program) -> None:
    with open_transaction() as within:
        within(Event.objects.count)
        created = publish_event().id
        all_visible()
        assert Reader(ann).to_the_end() == [created]


@pytest.mark.parametrize("limit", [1, 7, 200])
def test_a_reader_gets_each_event_once_among_writers(ann: Program, limit: int) -> None:
    writers, rounds = 4, 25
    ended: list[int] = []

    def write(number: int) -> list[int]:
        dice = random.Random(number)
        created: list[int] = []
        for _ in range(rounds):
            with transaction.atomic():
                these = [publish_event().id for _ in range(dice.randint(1, 3))]
                if dice.random() < 0.2:
                    transaction.set_rollback(True)
                else:
                    created += these
        ended.append(number)
        return created

    def work(number: int) -> Any:
        if number < writers:
            return write(number)
        reader = Reader(ann, limit=limit)
        while len(ended) < writers:
            reader.page()
        all_visible()
        return reader.to_the_end()

    *created, seen = at_once(writers + 1, work)
    assert sorted(seen) == sorted(chain.from_iterable(created))
    order = Event.objects.filter(pk__in=seen).order_by("xact", "id")
    assert seen == list(order.values_list("pk", flat=True))


def test_events_without_a_transaction_come_first(ann: Program) -> None:
    created = [publish_event().id for _ in range(6)]
    all_visible()
    Event.objects.filter(pk__in=created[:3]).update(xact=None)
    assert Reader(ann, limit=2).to_the_end() == created
    assert Reader(ann, limit=4).to_the_end() == created
    assert Reader(ann, limit=3).to_the_end() == created
    Event.objects.update(xact=None)
    reader = Reader(ann, limit=4)
    assert reader.to_the_end() == created
    created.append(publish_event().id)
    all_visible()
    assert reader.to_the_end() == created


def test_now_returns_only_new_events(ann: Program) -> None:
    publish_event()
    all_visible()
    reader = Reader(ann, after="now")
    assert reader.to_the_end() == []
    created = publish_event().id
    all_visible()
    assert reader.to_the_end() == [created]


def test_now_includes_uncommitted_events(ann: Program) -> None:
    with open_transaction() as within:
        late = within(lambda: publish_event().id)
        reader = Reader(ann, after="now")
        reader.page()
    all_visible()
    assert reader.to_the_end() == [late]


def test_events_are_filtered_by_type_and_family(ann: Program) -> None:
    kinds = [Premiere, Rehearsal, Gala, Rehearsal, Premiere]
    created = [publish_event(kind).id for kind in kinds]
    all_visible()
    assert Reader(ann, types="stage.gala, stage.rehearsal").to_the_end() == created[1:4]
    premieres = [created[0], created[2], created[4]]
    assert Reader(ann, types="stage.premiere").to_the_end() == premieres, (
        "a type stands for those that are made of it, as in subscriptions"
    )
    both = ["stage.gala", "stage.rehearsal"]
    assert Reader(ann, types=both, limit=1).to_the_end() == created[1:4]
    assert Reader(ann, types=topic_name(Play)).to_the_end() == created
    assert Reader(ann, types="*").to_the_end() == created
    result = problem(ann.get("/events", types="stage.galla"), 422, "invalid")
    assert "did you mean 'stage.gala'?" in result["detail"]
    assert result["errors"][0]["parameter"] == "types"


def test_rare_types_are_read_in_limited_windows(ann: Program, monkeypatch) -> None:
    monkeypatch.setattr(changes, "MAX_EXAMINED", 4)
    for _ in range(10):
        publish_event(Rehearsal)
    rare = publish_event(Gala).id
    all_visible()
    reader = Reader(ann, types="stage.gala", limit=2)
    first = reader.page()
    assert (first["events"], first["more"]) == ([], True), "nothing yet, and on it goes"
    assert reader.to_the_end() == [rare]
    Event.objects.exclude(pk=rare).update(xact=None)
    assert Reader(ann, types="stage.gala", limit=2).to_the_end() == [rare]


def test_unreadable_events_are_left_out(ann: Program, monkeypatch) -> None:
    monkeypatch.setattr(
        Premiere,
        "readers",
        classmethod(
            lambda cls, events: {
                event.id: NOBODY if event.subject == "hidden" else None for event in events
            }
        ),
    )
    for title in ("hidden", "hidden", "a", "hidden", "b"):
        publish_event(payload={"title": title})
    all_visible()
    reader = Reader(ann, limit=1)
    reader.to_the_end()
    subjects = Event.objects.filter(pk__in=reader.seen).values_list("subject", flat=True)
    assert sorted(subjects) == ["a", "b"]


def test_a_reader_may_wait_for_events(ann: Program, monkeypatch) -> None:
    monkeypatch.setattr(events, "POLL_SECONDS", 0.02)
    started = threading.Event()

    def work(number: int) -> Any:
        if number == 0:
            started.set()
            return Reader(ann, wait=20).page()["events"]
        started.wait(PATIENCE)
        wait_until(lambda: waiting.taken, 10, "the reader waits")
        return publish_event().id

    result, created = at_once(2, work)
    assert [event["id"] for event in result] == [created]
    assert waiting.taken == 0, "its place is free again"


def test_waiting_readers_are_limited(ann: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "places", 0)
    assert Reader(ann, wait=20).page()["events"] == []
    problem(ann.get("/events", wait=21), 422, "invalid")


@pytest.mark.parametrize("after", ["", "x", "W10", "WzFd", "WyJhIiwxXQ", "WzEsMi41XQ", "NOW"])
def test_an_invalid_position_is_refused(ann: Program, after: str) -> None:
    (fault,) = problem(ann.get("/events", after=after), 422, "invalid")["errors"]
    assert fault["parameter"] == "after"


def test_it_needs_the_permission() -> None:
    problem(program("bob", "events:read").get("/events"), 403, "permission-missing")


def test_a_page_of_events_reads_only_its_rows(ann: Program) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            """INSERT INTO tailrace_events_event (source, source_id, type, schema_version, subject,
                 payload, actor, trace_parent, problem, xact)
               SELECT 'x', n, 'stage.premiere', 1, '', '{}', '', '', '',
                      CASE WHEN n > 10000 THEN n / 10 END
               FROM generate_series(1, 20000) AS n"""
        )
        cursor.execute("ANALYZE tailrace_events_event")
        for where in (changes._OLD, changes._NEW):
            cursor.execute(
                "EXPLAIN " + changes._READ.format(where=where),
                {"xact": 1500, "id": 5000, "window": 50, "limit": 50, "types": None},
            )
            plan = "\n".join(row[0] for row in cursor.fetchall())
            assert "Index Scan using tailrace_event_committed" in plan or (
                "Index Only Scan using tailrace_event_committed" in plan
            ), plan
            assert "Seq Scan on tailrace_events_event" not in plan


def test_an_event_that_may_be_read_later_is_not_skipped(
    ann: Program, clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock.stop()
    monkeypatch.setitem(readers, "unknown", UNDECIDED)
    titles = ("a", "unknown", "b", "unknown", "c")
    created = [publish_event(payload={"title": title}).id for title in titles]
    all_visible()
    reader, slow = Reader(ann), Reader(ann, limit=1)
    assert reader.to_the_end() == slow.to_the_end() == created[:1]
    assert reader.page()["events"] == [], "it waits"
    readers["unknown"] = NOBODY
    assert slow.to_the_end() == [created[0], created[2], created[4]]
    readers["unknown"] = UNDECIDED
    clock.step(changes.HOLD_SECONDS + 1)
    assert Reader(ann).to_the_end() == [created[0], created[2], created[4]], "it waited long enough"
    del readers["unknown"]
    assert reader.to_the_end() == created
