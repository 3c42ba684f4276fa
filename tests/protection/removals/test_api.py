"""Removals in the API."""

import pytest

from tailrace.domains.protection.models import RemovalRequest
from tests.protection.removals.kit import ANN, now, started
from tests.web.program import Program, problem, program

pytestmark = pytest.mark.django_db
BODY = {"brokers": ["people", "letters"], "person": ANN.model_dump()}


def test_removals_are_started_listed_and_withdrawn(broker, ann, run_removals) -> None:
    api = Program(ann, "protection:read", "protection:write")
    keys = [each["key"] for each in api.get("/protection/brokers").json()]
    assert keys == ["people", "records", "letters"]
    answer = api.post("/protection/removals", BODY)
    assert answer.status_code == 201
    first, second = answer.json()
    assert (first["state"], second["state"]) == ("pending", "needs_person")
    assert second["to_do"] == "Send them a letter."
    again = api.post("/protection/removals", BODY).json()
    assert [each["id"] for each in again] == [first["id"], second["id"]]
    run_removals()
    row = api.get(f"/protection/removals/{first['id']}").json()
    assert [change["state"] for change in row["changes"]] == [
        "awaiting_confirmation",
        "submitted",
        "pending",
    ]
    done = api.post(f"/protection/removals/{second['id']}/done").json()
    assert done["state"] == "submitted"
    problem(api.post(f"/protection/removals/{second['id']}/done"), 409)
    gone = api.post(f"/protection/removals/{first['id']}/withdraw").json()
    assert gone["state"] == "withdrawn"
    assert [each["id"] for each in api.all("/protection/removals", limit=1)] == [
        second["id"],
        first["id"],
    ]


@pytest.mark.parametrize(
    ("change", "detail"),
    [
        ({"brokers": ["peeple"]}, "brokers: there is no broker 'peeple'; did you mean 'people'?"),
        ({"brokers": []}, "brokers: List should have at least 1 item"),
        ({"person": {"name": "Ann Example", "email": "ann"}}, "person/email: is not a mail"),
        (
            {"person": {"name": "A B", "email": "a@b.org"}, "brokers": ["records"]},
            "person: Public Records needs more data: fill in city",
        ),
        ({"person": ANN.model_dump() | {"ssn": "1"}}, "person/ssn: Extra inputs are not permitted"),
    ],
)
def test_a_wrong_field_is_named(broker, ann, change, detail) -> None:
    answer = Program(ann).post("/protection/removals", BODY | change)
    assert problem(answer, 422, "invalid")["detail"].startswith(detail)
    assert not RemovalRequest.objects.exists()


def test_requests_of_others_are_not_found(broker, ann) -> None:
    row, other = started(ann, "letters"), program("bob")
    problem(other.get(f"/protection/removals/{row.pk}"), 404)
    problem(other.post(f"/protection/removals/{row.pk}/withdraw"), 404)
    assert other.all("/protection/removals") == []
    assert now(row).state == "needs_person"


def test_reading_changes_nothing(broker, ann) -> None:
    row, reader = started(ann, "letters"), Program(ann, "protection:read")
    problem(reader.post("/protection/removals", BODY), 403, "scope-missing")
    problem(reader.post(f"/protection/removals/{row.pk}/done"), 403, "scope-missing")
