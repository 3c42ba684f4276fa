"""Recording CloudEvents by the API: all events of a request or none, each once."""

import base64
import json
from datetime import UTC, datetime
from typing import Any

import pytest
from django.http import HttpResponse

from tailrace.events.models import Event
from tailrace.jobs.models import Job
from tailrace.subscriptions.api.recording import cloudevents
from tailrace.subscriptions.api.recording.cloudevents import BATCHED, STRUCTURED
from tests.kit import at_once
from tests.web.program import Program, problem, program

pytestmark = pytest.mark.django_db


@pytest.fixture
def ann() -> Program:
    return program("ann", "events:write", may=("tailrace_events.add_event",))


def event(**fields: Any) -> dict[str, Any]:
    return {
        "specversion": "1.0", "id": "1", "source": "/ci", "type": "stage.premiere",
        "data": {"title": "Faust"}, **fields,
    }  # fmt: skip


def one(ann: Program, **fields: Any) -> HttpResponse:
    return ann.post("/events", event(**fields), content_type=STRUCTURED)


def batch(ann: Program, *events: Any) -> HttpResponse:
    return ann.post("/events", list(events), content_type=BATCHED)


def test_a_structured_event_is_recorded_with_its_jobs(ann: Program) -> None:
    answer = one(ann, subject="Faust I", time="2026-03-01T20:00:00.25+01:00")
    assert answer.status_code == 201
    recorded = Event.objects.get()
    assert answer.json() == {
        "events": [{"source": "/ci", "id": "1", "recorded": True, "event_id": recorded.pk}]
    }
    assert (recorded.type, recorded.payload["title"]) == ("stage.premiere", "Faust")
    assert (recorded.source, recorded.source_id) == ("api:ann:/ci", "1")
    assert (recorded.subject, recorded.actor) == ("Faust I", "ann")
    assert recorded.occurred_at == datetime(2026, 3, 1, 19, 0, 0, 250_000, tzinfo=UTC)
    assert Job.objects.filter(event=recorded, handler="subscriptions.notify").exists()


def test_subject_and_time_have_defaults(ann: Program) -> None:
    one(ann)
    recorded = Event.objects.get()
    assert recorded.subject == "Faust"
    assert recorded.occurred_at == recorded.recorded_at


def test_binary_mode(ann: Program) -> None:
    headers = {
        "ce-specversion": "1.0", "ce-id": "b%C3%A4r", "ce-source": "/ci",
        "ce-type": "stage.premiere", "ce-subject": "a%20b", "ce-time": "2026-03-01T20:00:00Z",
        "ce-traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
    }  # fmt: skip
    answer = ann.post("/events", {"title": "Faust"}, headers=headers)
    assert answer.status_code == 201
    recorded = Event.objects.get()
    assert (recorded.source_id, recorded.subject) == ("bär", "a b")
    assert recorded.payload == {"title": "Faust", "note": ""}
    assert recorded.trace_parent == headers["ce-traceparent"]
    silent = {**headers, "ce-type": "stage.silence", "ce-id": "2"}
    assert ann.post("/events", headers=silent).status_code == 201, "no body, no data"
    result = problem(
        ann.post("/events", [], headers={**headers, "ce-id": ""}), 422, "not-a-cloud-event"
    )
    assert {fault.get("header") or fault["pointer"] for fault in result["errors"]} == {"ce-id", "#"}


def test_data_in_base64(ann: Program) -> None:
    text = base64.b64encode(b'{"title": "Faust"}').decode()
    sent = event(data_base64=text)
    del sent["data"]
    assert ann.post("/events", sent, content_type=STRUCTURED).status_code == 201
    assert Event.objects.get().payload == {"title": "Faust", "note": ""}
    for wrong in ("!", base64.b64encode(b"[]").decode(), base64.b64encode(b"\xff").decode()):
        sent |= {"data_base64": wrong}
        result = problem(
            ann.post("/events", sent, content_type=STRUCTURED), 422, "not-a-cloud-event"
        )
        assert result["errors"][0]["pointer"] == "#/data_base64"


def test_a_known_event_is_not_recorded_again(ann: Program) -> None:
    first = one(ann).json()["events"][0]
    again = one(ann, data={"title": "another"})
    assert again.status_code == 200
    assert again.json()["events"] == [{**first, "recorded": False}]
    assert Event.objects.get().payload == {"title": "Faust", "note": ""}
    assert one(ann, id="2").status_code == 201


def test_a_batch_reports_which_events_were_recorded(ann: Program) -> None:
    one(ann, id="b")
    answer = batch(ann, *(event(id=id) for id in "abcc"))
    assert answer.status_code == 201
    result = answer.json()["events"]
    assert [(item["id"], item["recorded"]) for item in result] == [
        ("a", True), ("b", False), ("c", True), ("c", False),
    ]  # fmt: skip
    numbers = dict(Event.objects.values_list("source_id", "pk"))
    assert [item["event_id"] for item in result] == [numbers[id] for id in "abcc"]
    assert batch(ann).json() == {"events": []}


def test_users_cannot_use_each_others_sources(ann: Program) -> None:
    bob = program("bob", "events:write", may=("tailrace_events.add_event",))
    assert one(ann).status_code == 201
    assert one(bob).status_code == 201, "what ann sent is not known of bob"
    assert set(Event.objects.values_list("source", flat=True)) == {"api:ann:/ci", "api:bob:/ci"}


def test_all_or_nothing(ann: Program) -> None:
    answer = batch(ann, event(id="a"), event(id="b", type="stage.premier"), event(id="c", type="x"))
    result = problem(answer, 422, "unknown-event-type")
    first, second = result["errors"]
    assert first["pointer"] == "#/1/type"
    assert "did you mean 'stage.premiere'?" in first["detail"]
    assert second["pointer"] == "#/2/type"
    wrong = event(id="b", data={"title": 5}), event(id="c", data={"note": []})
    result = problem(batch(ann, event(id="a"), *wrong), 422, "invalid")
    assert [fault["pointer"] for fault in result["errors"]] == ["#/1/data/title", "#/2/data/note"]
    assert result["errors"][0]["detail"] == "Input should be a valid string"
    assert not Event.objects.exists()


@pytest.mark.parametrize(
    ("fields", "pointer"),
    [
        ({"specversion": "0.3"}, "#/specversion"),
        ({"specversion": 1.0}, "#/specversion"),
        ({"id": ""}, "#/id"),
        ({"id": 5}, "#/id"),
        ({"id": "x" * 501}, "#/id"),
        ({"source": None}, "#/source"),
        ({"source": "x" * 201}, "#/source"),
        ({"subject": "x" * 501}, "#/subject"),
        ({"time": "yesterday"}, "#/time"),
        ({"time": "2026-03-01T20:00:00"}, "#/time"),
        ({"time": "2026-02-30T20:00:00Z"}, "#/time"),
        ({"time": "0001-01-01T00:00:00+14:00"}, "#/time"),
        ({"time": "9999-12-31T23:59:59-14:00"}, "#/time"),
        ({"time": 1700000000}, "#/time"),
        ({"data": [1]}, "#/data"),
        ({"data": "<xml/>"}, "#/data"),
        ({"data_base64": "e30="}, "#/data_base64"),
        ({"datacontenttype": "text/xml"}, "#"),
        ({"Subject": "x"}, "#"),
    ],
)
def test_an_invalid_cloud_event_is_refused(ann: Program, fields: Any, pointer: str) -> None:
    result = problem(one(ann, **fields), 422, "not-a-cloud-event")
    assert [fault["pointer"] for fault in result["errors"]] == [pointer]
    assert not Event.objects.exists()


def test_values_too_long_for_their_column_are_refused(ann: Program) -> None:
    problem(one(ann, data={"title": "a\0b"}), 422, "invalid")
    big = problem(one(ann, data={"title": "x" * 70_000}), 422, "invalid")
    assert "EVENTS_MAX_PAYLOAD_BYTES" in big["detail"]


def test_a_batch_is_an_array_of_objects_of_bounded_length(
    ann: Program, settings, monkeypatch
) -> None:
    for body in ({}, 5, None):
        answer = ann.post("/events", json.dumps(body).encode(), content_type=BATCHED)
        problem(answer, 422, "not-a-cloud-event")
    problem(batch(ann, 5, "x"), 422, "not-a-cloud-event")
    problem(ann.post("/events", [], content_type=STRUCTURED), 422, "not-a-cloud-event")
    monkeypatch.setattr(cloudevents, "MAX_BATCH", 2)
    problem(batch(ann, *(event(id=str(n)) for n in range(3))), 413)
    settings.API_MAX_BODY_BYTES = 1024
    problem(one(ann, data={"title": "x" * 1024}), 413)


def test_other_content_types_are_refused(ann: Program) -> None:
    for kind in ("application/json", "text/plain", "application/cloudevents+avro"):
        answer = ann.post("/events", event(), content_type=kind)
        problem(answer, 415)
        assert STRUCTURED in answer["Accept"]
    answer = ann.post(
        "/events", b"<x/>", content_type="text/xml", headers={"ce-specversion": "1.0"}
    )
    problem(answer, 415)
    problem(ann.post("/events", b"{", content_type=STRUCTURED), 400)
    problem(ann.post("/events", b" ", content_type=STRUCTURED), 400)


def test_it_needs_the_scope_and_the_permission() -> None:
    problem(one(program("bob", "events:write")), 403, "permission-missing")
    problem(
        one(program("eve", "events:read", may=("tailrace_events.add_event",))), 403, "scope-missing"
    )
    assert {event.type for event in Event.objects.all()} <= {"security.scope_refused"}


@pytest.mark.django_db(transaction=True)
def test_concurrent_requests_record_one_event() -> None:
    ann = program("ann", "events:write", may=("tailrace_events.add_event",))
    result = at_once(4, lambda _: one(ann).json()["events"][0])
    assert sorted(item["recorded"] for item in result) == [False, False, False, True]
    assert {item["event_id"] for item in result} == {Event.objects.get().pk}
