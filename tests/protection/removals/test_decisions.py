"""What people decide: start, confirm, withdraw; done, rejected, try again."""

import pytest
from django.contrib.auth.models import User

from tailrace.domains.protection.alerts.raising import NOTIFICATIONS
from tailrace.domains.protection.models import Alert, RemovalRequest
from tailrace.domains.protection.services.removals import decisions, moves
from tailrace.domains.protection.services.removals.person import Person
from tailrace.events.models import Event
from tests.protection.removals.kit import ANN, DAY, form_entry, history, now, started

pytestmark = pytest.mark.django_db


@pytest.fixture
def operator() -> User:
    return User.objects.create_user("operator")


def test_a_letter_is_for_a_person_from_the_start(broker, ann, run_removals, operator, clock):
    row = started(ann, "letters")
    assert row.state == "needs_person"
    assert [alert.kind for alert in Alert.objects.all()] == ["removal_needs_person"]
    decisions.done(row, operator)
    assert now(row).state == "submitted"
    assert now(row).changes.order_by("-pk").first().by == operator
    clock.step(3 * DAY + 60)
    run_removals()
    assert now(row).state == "needs_person", "nobody but a person can look"
    assert now(row).note.startswith("check yourself")
    decisions.done(now(row), operator)
    assert now(row).state == "removed"


def test_a_parked_form_is_tried_again_or_rejected(broker, ann, run_removals, operator) -> None:
    broker.asks_for_captcha = True
    row = started(ann)
    run_removals()
    decisions.try_again(now(row), operator)
    assert now(row).state == "pending"
    run_removals()
    decisions.reject(now(row), operator)
    assert now(row).state == "rejected"
    assert Alert.objects.filter(kind="removal_rejected").count() == 1
    broker.asks_for_captcha = False
    decisions.try_again(now(row), operator)
    run_removals()
    assert history(row)[-5:] == [
        "needs_person",
        "rejected",
        "pending",
        "submitted",
        "awaiting_confirmation",
    ]
    assert list(broker.taken) == [f"removal_{row.pk}_1"], "none was submitted before"


def test_a_rejected_request_makes_room_for_another(broker, ann, operator, clock) -> None:
    row = started(ann, "letters")
    decisions.reject(now(row), operator)
    clock.step(DAY + 60)
    other = started(ann, "letters")
    assert other.pk != row.pk
    with pytest.raises(decisions.Refused, match="the user has started another request"):
        decisions.try_again(now(row), operator)


def test_a_decision_on_what_has_changed_is_refused(broker, ann, operator) -> None:
    row = started(ann, "letters")
    stale = now(row)
    decisions.done(now(row), operator)
    with pytest.raises(decisions.Refused, match="the request has changed"):
        decisions.reject(stale, operator)
    with pytest.raises(decisions.Refused, match="only a parked request can be rejected"):
        decisions.reject(now(row), operator)
    decisions.withdraw(now(row), ann)
    for decide in (decisions.done, decisions.reject, decisions.try_again, decisions.withdraw):
        with pytest.raises(decisions.Refused):
            decide(now(row), operator)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ([], "choose at least one broker"),
        (["peeple"], "there is no broker 'peeple'; did you mean 'people'?"),
        (["people", "records"], "Public Records needs more data: fill in city"),
    ],
)
def test_what_cannot_be_started_is_named(broker, ann, keys, message) -> None:
    with pytest.raises(decisions.Refused) as error:
        decisions.start(ann, keys, Person(name="Ann Example", email="ann@example.org"))
    assert str(error.value) == message
    assert not RemovalRequest.objects.exists()


def test_a_broker_that_left_the_file_leaves_one_way(broker, ann, rewrite, operator) -> None:
    row = started(ann, "letters")
    rewrite(form_entry(broker))
    with pytest.raises(decisions.Refused, match="the request can only be withdrawn"):
        decisions.done(now(row), operator)
    decisions.withdraw(now(row), ann)
    assert history(row)[-1] == "withdrawn"


def test_several_brokers_are_started_at_once(broker, ann) -> None:
    rows = decisions.start(ann, ["records", "people", "records"], ANN)
    assert [row.broker for row in rows] == ["records", "people"]


def test_a_request_that_needs_a_person_twice_in_a_day_is_announced_twice(
    broker, ann, run_jobs, clock
) -> None:
    row = started(ann, "people")
    for _ in range(2):
        moves.park(row, "the form has changed")
        run_jobs(NOTIFICATIONS)
        clock.step(3600)
        moves.try_again(row, ann)
    raised = Event.objects.filter(type="protection.alert_raised")
    assert raised.count() == 1
    clock.step(86_400)
    run_jobs(NOTIFICATIONS)
    assert [event.payload["kind"] for event in raised] == ["removal_needs_person"] * 2
    assert Alert.objects.count() == 1
