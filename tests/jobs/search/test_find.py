"""Jobs are found by what they are about, by their errors and by values of their payloads."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tailrace.events.models import Event
from tailrace.events.publish import NewEvent, publish
from tailrace.jobs.engine.failures import fill_in
from tailrace.jobs.engine.inserting import search_values
from tailrace.jobs.engine.maintenance.pruning import prune
from tailrace.jobs.enqueue import enqueue
from tailrace.jobs.models import Job, SearchValue
from tailrace.jobs.platform.inspection.search import find, lists
from tailrace.jobs.platform.inspection.search.terms import InvalidSearch
from tests.jobs import operators
from tests.sandbox.event_types import Bought, Happened
from tests.sandbox.handlers import Shipping, Working

pytestmark = pytest.mark.django_db
PAYLOADS = ("view_payload", "view_job_payload")
Search = Callable[..., list[int]]


def make_user(name: str, *codenames: str) -> User:
    user = User.objects.create_user(name, is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=codenames))
    return user


@pytest.fixture
def ids() -> Search:
    """Return `ids(text)`: the jobs that a user who may see payloads finds, oldest first."""
    operators.register_handlers()
    user = make_user("ann", *PAYLOADS)

    def search(text: str) -> list[int]:
        return sorted(find.search(user, text, Job.objects.all()).jobs.values_list("pk", flat=True))

    return search


def ordered(number: int, customer: str = "") -> int:
    (event,) = publish(NewEvent(Bought, {"order": number, "customer": customer}))
    return Job.objects.get(event=event.id, handler=Shipping.name).pk


def failed(error: str, **fields: Any) -> int:
    job = Job.objects.create(
        **{"handler": operators.Trim.name, "state": "failed", "error": error} | fields
    )
    fill_in.group([job.pk])
    return job.pk


def test_by_id_queue_state_key_and_lane(ids: Search) -> None:
    first = operators.job("completed", routing_key="k", lane="a b")
    second = operators.job("failed")
    assert ids(str(first.pk)) == ids(f"id:{first.pk}") == [first.pk]
    assert ids("state:failed") == [second.pk]
    assert ids(operators.Trim.name) == ids(f"queue:{operators.Trim.name}") == [first.pk, second.pk]
    assert ids("key:k") == ids('lane:"a b"') == ids('key:k lane:"a b"') == [first.pk]
    assert ids("key:nothing") == []


def test_by_the_start_of_the_subject_of_its_event(ids: Search) -> None:
    job, other = ordered(42), ordered(43)
    event = Job.objects.get(pk=job).event_id
    assert ids("order:42") == ids("subject:order:42") == ids(f"event:{event}") == [job]
    assert ids("subject:order:") == [job, other]
    assert ids("subject:rder") == ids("subject:order_42") == ids("subject:%") == []


def test_by_a_part_of_the_error(ids: Search) -> None:
    one = failed("no order 4711 of 'anna'")
    other = failed("100% of x_y are gone")
    assert ids("error:4711") == ids("error:ANNA") == ids('error:"order 4711"') == [one]
    assert ids("anna") == [one]
    assert ids("error:100%") == ids("error:x_y") == [other]
    assert ids('error:"100_ of"') == ids("error:x%y") == ids("error:471%") == []
    assert ids(f"error:anna queue:{Working.name}") == []


def test_by_the_values_of_declared_fields(ids: Search) -> None:
    job, other = ordered(42, "anna"), ordered(43, "anna")
    own = enqueue(Shipping, {"parcel": "P 1"})
    assert ids("order=42") == ids("order=42 customer=anna") == [job]
    assert ids("customer=anna") == [job, other]
    assert ids('parcel="P 1"') == [own]
    assert ids("order=4") == ids("order=%") == ids("order=42 customer=bob") == []
    assert SearchValue.objects.filter(field="customer", value="anna").count() == 2


def test_others_cost_nothing(ids: Search) -> None:
    with CaptureQueriesContext(connection) as captured:
        publish(NewEvent(Happened, {"who": "w"}))
        enqueue(Working, {"note": "n"})
    assert not [q["sql"] for q in captured.captured_queries if "searchvalue" in q["sql"]]


def test_by_time(ids: Search, clock) -> None:
    old = operators.job()
    Job.objects.filter(pk=old.pk).update(created_at=clock.now() - timedelta(hours=3))
    new = operators.job()
    assert ids("since:2h") == [new.pk]
    assert ids("until:2h") == [old.pk]
    assert ids("since:4h until:1m") == [old.pk]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("queue:operators.trm", "did you mean 'operators.trim'"),
        ("colour=red", "The payload field 'colour' cannot be searched. Searchable fields: .*order"),
        ("12 id:3", "Enter one id at a time"),
    ],
)
def test_what_there_is_not_says_what_there_is(ids: Search, text: str, says: str) -> None:
    with pytest.raises(InvalidSearch, match=says):
        ids(text)


def test_errors_and_payloads_need_permissions(ids: Search) -> None:
    ordered(42)
    failed("anna")
    bob, cat = make_user("bob"), make_user("cat", "view_job_payload")
    for user, text in (
        (bob, "error:anna"), (bob, "order=42"), (cat, "order=42"), (bob, "parcel=P"),
    ):  # fmt: skip
        with pytest.raises(InvalidSearch, match="you need the permission"):
            find.search(user, text, Job.objects.all())
    assert list(find.search(bob, "anna", Job.objects.all()).jobs) == []


def test_each_term_leads_to_a_bounded_number_of_jobs(ids: Search, monkeypatch) -> None:
    jobs = [ordered(42) for _ in range(5)]
    monkeypatch.setattr(lists, "MOST", 3)
    assert ids("order=42") == jobs[-3:]
    bob = make_user("bob", *PAYLOADS)
    for text, name in (("order=42", "order=42"), ("subject:order:42", "the subject order:42")):
        result = find.search(bob, text, Job.objects.all())
        assert result.left_out == f"Only the newest 3 jobs of {name} are searched."
    assert find.search(bob, "order=43", Job.objects.all()).left_out == ""


def test_errors_that_were_not_compared_are_said_and_reached_by_queue_or_time(
    ids: Search, monkeypatch, clock
) -> None:
    bob = make_user("bob", *PAYLOADS)

    def left_out(text: str) -> bool:
        result = find.search(bob, text, Job.objects.all())
        assert result.left_out in ("", lists.NOT_COMPARED)
        return bool(result.left_out)

    old = failed("no order 'anna'", handler=Working.name)
    before = [failed(f"no order '{name}'") for name in ("anna", "bert")]
    Job.objects.update(created_at=clock.now() - timedelta(hours=3))
    clock.step(60)
    after = [failed(f"no order '{name}'") for name in ("carl", "dora")]
    assert ids("error:anna") == [old, before[0]]
    assert not left_out("error:anna")
    monkeypatch.setattr(lists, "JOBS_OF_GROUP", 2)
    monkeypatch.setattr(find, "MARGIN", timedelta(0))
    assert ids("error:anna") == [old]
    assert left_out("error:anna"), "two jobs of the other queue were not compared"
    assert left_out("anna")
    assert ids("error:anna until:1h") == [old, before[0]]
    assert ids("error:order since:1h") == after
    assert not left_out(f"error:anna queue:{Working.name}")
    monkeypatch.setattr(lists, "JOBS_OF_GROUP", 1000)
    monkeypatch.setattr(lists, "GROUPS", 1)
    assert ids("error:anna") == [before[0]]
    assert left_out("error:anna")
    assert ids(f"error:anna queue:{Working.name}") == [old]


def test_long_values_are_cut_and_lists_are_left_out(ids: Search) -> None:
    job = ordered(1, "x" * 300)
    assert ids(f"customer={'x' * 300}") == [job]
    event = Event.objects.get()
    Event.objects.filter(pk=event.pk).update(payload={"order": [1], "customer": None})
    SearchValue.objects.all().delete()
    search_values._write(search_values._OF_EVENTS, [event.pk], {("test.bought", "order")})
    assert not SearchValue.objects.exists()


def test_values_go_when_no_job_can_be_there(ids: Search, clock, settings) -> None:
    settings.JOBS_RETENTION_DAYS = settings.JOBS_FAILED_RETENTION_DAYS = 10
    settings.EVENTS_RETENTION_DAYS = 20
    ordered(42)
    clock.step(20 * 86_400 - 60)
    prune.prune()
    assert SearchValue.objects.exists()
    clock.step(120)
    assert prune.prune()["values to search for"] == 2
