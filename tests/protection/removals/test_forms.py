"""Requests by form, from the start to the check ten days after the removal."""

from datetime import timedelta

import pytest

from tailrace.db.query import database_now
from tailrace.domains.protection.models import Alert
from tailrace.domains.protection.services.removals import decisions
from tailrace.domains.protection.services.removals.brokers import Confirmation
from tailrace.jobs.models import Job
from tests.protection.removals.kit import DAY, HOUR, form_entry, history, now, started
from tests.servers.broker import page
from tests.servers.web import Response

pytestmark = pytest.mark.django_db


def due_in(row) -> timedelta:
    return now(row).next_at - database_now()


def test_a_form_is_sent_and_its_removal_is_seen_after_72_hours(
    broker, ann, run_removals, clock
) -> None:
    row = started(ann)
    assert row.state == "pending"
    run_removals()
    assert now(row).state == "awaiting_confirmation"
    assert broker.taken == {
        f"removal_{row.pk}_1": {
            "full_name": "Ann Example",
            "email": "ann@example.org",
            "agree": "yes",
        }
    }
    assert timedelta(hours=71, minutes=59) < due_in(row) <= timedelta(hours=72)
    clock.step(71 * HOUR)
    assert run_removals() == 0
    clock.step(HOUR + 60)
    run_removals()
    assert now(row).state == "removed"
    assert history(row) == ["pending", "submitted", "awaiting_confirmation", "removed"]
    assert timedelta(days=9, hours=23) < due_in(row) <= timedelta(days=10)
    assert [alert.kind for alert in Alert.objects.all()] == ["removal_done"]


def test_whoever_is_listed_again_is_submitted_again(broker, ann, run_removals, clock) -> None:
    row = started(ann)
    run_removals()
    clock.step(3 * DAY + 60)
    run_removals()
    clock.step(10 * DAY + 60)
    run_removals()
    assert history(row)[-1] == "removed"
    assert len(broker.taken) == 1
    broker.people.add("Ann Example")
    clock.step(10 * DAY + 60)
    run_removals()
    assert history(row)[-3:] == ["pending", "submitted", "awaiting_confirmation"]
    assert list(broker.taken) == [f"removal_{row.pk}_1", f"removal_{row.pk}_2"]
    assert Alert.objects.filter(kind="removal_reappeared").count() == 1


def test_a_link_of_the_page_after_the_form_is_followed(broker, ann, run_removals, rewrite) -> None:
    rewrite(form_entry(broker, confirmation=Confirmation.LINK.value))
    broker.asks_to_confirm = True
    row = started(ann)
    run_removals()
    assert history(row) == ["pending", "submitted", "awaiting_confirmation"]
    assert broker.people == set()
    assert now(row).confirm_url == ""


def test_a_mailed_link_is_opened_by_the_person(broker, ann, run_removals, rewrite) -> None:
    rewrite(form_entry(broker, confirmation=Confirmation.MAIL.value))
    row = started(ann)
    run_removals()
    assert now(row).state == "submitted"
    assert [alert.kind for alert in Alert.objects.all()] == ["removal_open_link"]
    decisions.done(now(row), ann)
    assert now(row).state == "awaiting_confirmation"


def test_a_redirect_after_the_form_is_followed_on_the_same_site(broker, ann, run_removals) -> None:
    broker.redirects = True
    row = started(ann)
    run_removals()
    assert now(row).state == "awaiting_confirmation"


def test_who_stays_listed_is_looked_at_six_times_and_then_left_to_a_person(
    broker, ann, run_removals, clock
) -> None:
    row = started(ann)
    run_removals()
    broker.people.add("Ann Example")
    days = 0.0
    for number in range(6):
        assert now(row).state == "awaiting_confirmation", number
        wait = (now(row).next_at - database_now()).total_seconds() + 1
        days += wait / DAY
        clock.step(wait)
        run_removals()
    assert now(row).state == "needs_person"
    assert now(row).note == "after 6 checks, the person is still listed"
    assert round(days) == 53
    assert len(broker.taken) == 1
    assert not Job.objects.filter(state="pending", handler__startswith="protection.rem").exists()


@pytest.mark.parametrize(
    ("fault", "note"),
    [
        (
            {"asks_for_captcha": True},
            "the broker asks for a captcha, which only a person may solve",
        ),
        (
            {"captcha_after_form": True},
            "the broker asks for a captcha, which only a person may solve",
        ),
        ({"field_name": "your_name"}, "the form has changed: it has no field full_name"),
        ({"action": "https://elsewhere.test/x"}, "the page leads to another site"),
        ({"answer": lambda request: Response(404)}, "the page with the form: answered 404"),
        ({"answer": lambda request: page("Welcome")}, "the page no longer has a form"),
        (
            {"answer": lambda request: Response(422) if request.method == "POST" else None},
            "the form: answered 422",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_a_machine_may_not_do_is_left_to_a_person(
    broker, ann, run_removals, fault, note
) -> None:
    for name, value in fault.items():
        setattr(broker, name, value)
    row = started(ann)
    run_removals()
    assert now(row).state == "needs_person"
    assert now(row).note.startswith(note)
    assert broker.taken == {}
    assert [alert.kind for alert in Alert.objects.all()] == ["removal_needs_person"]
    assert Job.objects.get(handler="protection.removebrokers_process").state == "completed"


def test_a_link_to_another_site_is_not_followed(broker, ann, run_removals, rewrite) -> None:
    rewrite(form_entry(broker, confirmation="link"))
    broker.asks_to_confirm, broker.link_to = True, "https://elsewhere.test/confirm"
    row = started(ann)
    run_removals()
    assert now(row).state == "needs_person"
    assert now(row).note == "the page leads to another site, which is not trusted"


def test_a_private_address_is_not_sent_anything(broker, ann, run_removals, settings) -> None:
    settings.PROTECTION_LOCAL_BROKERS = False
    row = started(ann)
    run_removals()
    assert now(row).state == "needs_person"
    assert now(row).note.startswith("the page with the form: ")
    assert broker.sent == []
