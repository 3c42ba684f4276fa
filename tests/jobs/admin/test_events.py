"""An event's page and the filters of events."""

import pytest
from django.contrib.admin.models import LogEntry

from tailrace.db import locks
from tailrace.events.models import Event
from tailrace.jobs.models import Attempt, Job
from tests.jobs import operators
from tests.kit import at_once, held

pytestmark = pytest.mark.django_db
EVENTS = "/admin/tailrace_events/event/"
VIEW = "tailrace_events.view_event"


def _event(**fields: object) -> Event:
    values = {
        "source": "test",
        "source_id": str(Event.objects.count()),
        "type": operators.LampLit.name,
    }
    return Event.objects.create(**values | fields)


def _found(query: str) -> set[int]:
    client = operators.client(f"reader {query}", VIEW)
    return {row.pk for row in client.get(EVENTS + query).context["cl"].result_list}


def test_events_are_found_by_the_state_of_their_jobs() -> None:
    none, progress, settled, failures = (_event() for _ in range(4))
    operators.job("pending", event=progress)
    operators.job("completed", event=settled)
    operators.job("completed", event=failures)
    operators.job("failed", event=failures, routing_key="other")
    assert _found("?state=none") == {none.pk}
    assert _found("?state=progress") == {progress.pk}
    assert _found("?state=settled") == {settled.pk}
    assert _found("?state=failures") == {failures.pk}


def test_the_list_shows_the_state_of_each_event() -> None:
    _event()
    operators.job("failed", event=_event())
    page = operators.client("reader", VIEW).get(EVENTS).content.decode()
    assert "no jobs" in page
    assert "has failures" in page


def test_events_are_found_by_id_and_start_of_subject() -> None:
    alice, bob = _event(subject="home:alice/hello"), _event(subject="home:bob/hello")
    assert _found("?q=home:a") == {alice.pk}
    assert _found("?q=hello") == set()
    assert _found("?q=home%25") == set()
    assert _found(f"?q={bob.pk}") == {bob.pk}


def test_flagged_and_acknowledged_events_are_filtered() -> None:
    _event()
    flagged, seen = _event(problem="odd"), _event(problem="odd")
    Event.objects.filter(pk=seen.pk).update(acknowledged_at=seen.recorded_at)
    assert _found("?problem=flagged") == {flagged.pk}
    assert _found("?problem=acknowledged") == {seen.pk}


def test_an_event_shows_its_jobs_cause_and_effects() -> None:
    cause = _event()
    event = _event(cause=cause)
    effect = _event(cause=event)
    job = operators.job("failed", event=event, attempt=3, error="the oil is out")
    Attempt.objects.create(
        job=job, claim_no=2, outcome="retried", error_class="Dark", message="no light", traceback=""
    )
    permissions = (VIEW, "tailrace_jobs.view_job", "tailrace_jobs.view_job_payload")
    page = operators.client("reader", *permissions).get(f"{EVENTS}{event.pk}/change/")
    text = page.content.decode()
    for words in ("the oil is out", "3/3", "claim 2", "Dark: no light", f"_jobs/job/{job.pk}/"):
        assert words in text
    assert f"{EVENTS}{cause.pk}/change/" in text
    assert f"{EVENTS}{effect.pk}/change/" in text


def test_an_event_shows_the_state_of_its_jobs() -> None:
    event = _event()
    operators.job("failed", event=event)
    page = operators.client("reader", VIEW).get(f"{EVENTS}{event.pk}/change/")
    fields = {each.label: each.value for group in page.context["details"] for each in group.fields}
    assert "has failures" in str(fields["State"])


def test_a_payload_needs_its_own_permission() -> None:
    event = _event(payload={"secret": "treasure"})
    address = f"{EVENTS}{event.pk}/change/"
    without = operators.client("without", VIEW).get(address).content.decode()
    assert "treasure" not in without
    assert "tailrace_events.view_payload" in without
    assert (
        "treasure"
        in operators.client("with", VIEW, "tailrace_events.view_payload")
        .get(address)
        .content.decode()
    )


def test_jobs_of_an_event_need_the_job_permission() -> None:
    event = _event()
    operators.job("failed", event=event, error="the oil is out")
    page = operators.client("reader", VIEW).get(f"{EVENTS}{event.pk}/change/").content.decode()
    assert "the oil is out" not in page


def test_a_payload_is_shown_as_text_and_not_as_markup() -> None:
    event = _event(payload={"name": "<script>alert(1)</script>"}, problem="<b>odd</b>")
    client = operators.client("with", VIEW, "tailrace_events.view_payload")
    page = client.get(f"{EVENTS}{event.pk}/change/").content.decode()
    assert "<script>alert" not in page
    assert "<b>odd" not in page


def test_acknowledging_needs_permission_and_is_audited() -> None:
    event = _event(problem="odd")
    address = f"{EVENTS}{event.pk}/acknowledge/"
    keeper = operators.client("keeper", VIEW, "tailrace_events.acknowledge_event")
    assert operators.client("reader", VIEW).post(address).status_code == 403
    assert keeper.get(address).status_code == 405
    assert Event.objects.flagged().count() == 1
    assert keeper.post(address).status_code == 302
    assert Event.objects.flagged().count() == 0
    assert LogEntry.objects.get().change_message == "acknowledged"


def test_chosen_events_are_acknowledged_in_the_list_by_permission() -> None:
    first, second, other = (_event(problem="odd") for _ in range(3))
    form = {
        "action": "acknowledge_events",
        "_selected_action": [first.pk, second.pk],
        "select_across": 0,
        "index": 0,
        "confirmed": 2,
    }
    reader = operators.client("reader", VIEW)
    assert reader.post(EVENTS, form).status_code in (200, 302)
    assert Event.objects.flagged().count() == 3
    keeper = operators.client("keeper", VIEW, "tailrace_events.acknowledge_event")
    assert keeper.post(EVENTS, form).status_code == 302
    assert list(Event.objects.flagged()) == [other]
    entry = LogEntry.objects.get()
    assert entry.change_message == "acknowledged 2 events: selected events"


def test_nobody_adds_changes_or_deletes_events() -> None:
    event = _event()
    client = operators.client(
        "eager",
        VIEW,
        "tailrace_events.add_event",
        "tailrace_events.change_event",
        "tailrace_events.delete_event",
    )
    assert client.get(EVENTS + "add/").status_code == 403
    assert client.get(f"{EVENTS}{event.pk}/delete/").status_code == 403
    assert client.post(f"{EVENTS}{event.pk}/change/", {"type": "x"}).status_code == 403


@pytest.mark.parametrize("id", ["999999", "99999999999999999999999", "²"])
def test_an_event_that_does_not_exist_is_no_error(id: str) -> None:
    assert operators.client("reader", VIEW).get(f"{EVENTS}{id}/change/").status_code == 302


def _chain() -> tuple[Event, Event, Event]:
    """Return a cause, its effect, and the effect of that, which has a failed job."""
    cause = _event()
    effect = _event(cause=cause)
    last = _event(cause=effect)
    operators.job("failed", event=last, error="ValueError: no ink")
    return cause, effect, last


def test_the_page_shows_the_chain_over_several_levels() -> None:
    cause, effect, last = _chain()
    page = operators.client("reader", VIEW, "tailrace_jobs.view_job").get(
        f"{EVENTS}{effect.pk}/change/"
    )
    text = page.content.decode()
    for event in (cause, effect, last):
        assert f'id="event-{event.pk}"' in text
    assert "has failures" in text
    assert "no ink" not in text
    assert "Replay its failed jobs" not in text
    assert (
        "Causes and effects"
        not in operators.client("other", VIEW).get(f"{EVENTS}{effect.pk}/change/").content.decode()
    )


def test_failed_jobs_of_any_event_of_the_chain_are_replayed_from_it() -> None:
    cause, _, last = _chain()
    done = operators.job("completed", event=last, routing_key="done")
    operator = operators.client("op", VIEW, "tailrace_jobs.view_job", "tailrace_jobs.replay_job")
    address = f"{EVENTS}{last.pk}/replay/"
    assert address in operator.get(f"{EVENTS}{cause.pk}/change/").content.decode()
    answer = operator.post(address, {"page": cause.pk})
    assert answer["Location"] == f"{EVENTS}{cause.pk}/change/"
    states = dict(Job.objects.filter(event=last).values_list("routing_key", "state"))
    assert states == {"": "pending", "done": "completed"}
    assert LogEntry.objects.filter(change_message__contains="replayed").count() == 1
    done.refresh_from_db()
    for page in ("//evil.example", "9" * 30, ""):
        assert operator.post(address, {"page": page})["Location"].startswith("/admin/")


def test_failed_jobs_of_an_event_without_a_chain_are_replayed_too() -> None:
    event = _event()
    operators.job("failed", event=event)
    page, replay = f"{EVENTS}{event.pk}/change/", f"{EVENTS}{event.pk}/replay/"
    operator = operators.client("op", VIEW, "tailrace_jobs.view_job", "tailrace_jobs.replay_job")
    assert operator.get(page).content.decode().count(f'action="{replay}"') == 1
    assert operator.post(replay)["Location"] == page
    assert replay not in operator.get(page).content.decode(), "nothing is failed now"
    operators.job("failed", event=event, routing_key="again")
    reader = operators.client("reader", VIEW, "tailrace_jobs.view_job")
    assert replay not in reader.get(page).content.decode()


def test_a_replay_needs_its_permission() -> None:
    _, _, last = _chain()
    reader = operators.client("reader", VIEW, "tailrace_jobs.view_job")
    assert reader.post(f"{EVENTS}{last.pk}/replay/").status_code == 403
    assert Job.objects.get(event=last).state == "failed"


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("page", ["admin", "overview"])
def test_acknowledging_says_who_holds_the_event(page: str, monkeypatch) -> None:
    """A request waited until the other transaction ended."""
    monkeypatch.setattr(locks, "WAIT_SECONDS", 0.2)
    event = _event(problem="odd")
    reads = ("tailrace_jobs.view_job", "tailrace_jobs.view_queue")
    keeper = operators.client("keeper", VIEW, *reads, "tailrace_events.acknowledge_event")
    address = f"{EVENTS}{event.pk}/acknowledge/"
    if page == "overview":
        address = f"/overview/events/{event.pk}/acknowledge"
    with held("SELECT 1 FROM tailrace_events_event WHERE id = %s FOR UPDATE", event.pk) as pid:
        htmx = {"HX-Request": "true"} if page == "overview" else {}
        [response] = at_once(1, lambda _: keeper.post(address, headers=htmx), seconds=30)
    assert response.status_code == 302 or response["HX-Refresh"] == "true"
    shown = keeper.get(f"{EVENTS}{event.pk}/change/" if page == "admin" else "/").content.decode()
    assert f"the row of event {event.pk}, held by database session {pid} (psql)" in shown
    assert Event.objects.flagged().exists()
