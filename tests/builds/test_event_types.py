"""The event types are those of the catalogue, field by field."""

import json
import re
from pathlib import Path

import pytest
from pydantic import ValidationError

from domains.builds import event_types
from domains.builds.event_types import BuildsEvent, as_it_came, builds_types
from events.publish import NewEvent, publish
from events.types import get_type

CATALOGUE = json.loads(
    (Path(__file__).parents[1] / "data" / "obs" / "event-catalogue.json").read_text()
)
CONCRETE = [entry for entry in CATALOGUE if not entry["abstract"]]
NAMES = {entry["cls"] for entry in CATALOGUE}


def snake(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


def parent(cls: type) -> str:
    """The nearest base class that the catalogue has too."""
    return next((base.__name__ for base in cls.__mro__[1:] if base.__name__ in NAMES), "Base")


def test_there_are_exactly_the_55_of_the_catalogue():
    assert len(CONCRETE) == 55
    assert {found.__name__ for found in builds_types()} == {entry["cls"] for entry in CONCRETE}


@pytest.mark.parametrize("entry", CATALOGUE, ids=lambda entry: entry["cls"])
def test_a_type_is_as_the_catalogue_says(entry):
    found = getattr(event_types, entry["cls"])
    assert found.abstract == entry["abstract"]
    assert parent(found) == entry["parent"]
    assert found.wire_keys == tuple(dict.fromkeys(entry["payload_keys"]))
    assert found.raw_type == (entry["raw_type"] or "")
    assert found.bus_key == (entry["routing_key"] or "")
    assert list(found.receiver_roles) == entry["receiver_roles"]
    assert found.project_log == entry["project_log"]
    assert (found.can_mail, found.can_web, found.can_rss) == (
        entry["can_mail"], entry["web"], entry["rss"],
    )  # fmt: skip
    if not entry["abstract"]:
        assert found.name == f"builds.{snake(entry['cls'])}"
        assert found is get_type(found.name)
    if entry["description"]:
        assert found.description() == entry["description"]


@pytest.mark.parametrize("found", builds_types(), ids=lambda found: found.name)
def test_a_type_takes_its_own_keys_and_names_its_subject(found):
    payload = dict.fromkeys(found.Payload.identity, "7")
    assert found.Payload.model_validate(payload)
    assert found.problem(payload) == ""
    assert found.subject(payload)


def test_from_inside_identity_is_required_and_unknown_keys_are_refused():
    with pytest.raises(ValidationError, match="missing keys: package"):
        event_types.Commit.Payload.model_validate({"project": "home:alice"})
    with pytest.raises(ValidationError, match="unknown keys: surprise"):
        event_types.Commit.Payload.model_validate(
            {"project": "home:alice", "package": "hello", "surprise": "1"}
        )


def test_from_outside_both_are_taken_and_told():
    with as_it_came():
        payload = event_types.BuildFail.Payload.model_validate({"surprise": "1", "arch": "i586"})
    kept = payload.model_dump(exclude_unset=True)
    assert kept == {"surprise": "1", "arch": "i586"}
    assert event_types.BuildFail.problem(kept) == (
        "missing keys: project, package, repository; unknown keys: surprise"
    )


@pytest.mark.parametrize("key", ["comment", "files", "error"])
def test_what_people_write_at_length_is_cut(key):
    payload = event_types.ServiceFail.Payload if key == "error" else event_types.Commit.Payload
    kept = payload(project="p", package="q", **{key: "x" * 801}).model_dump(exclude_unset=True)
    assert kept[key] == "x" * 800 + "…"
    assert payload(project="p", package="q", **{key: "y" * 800}).model_dump()[key] == "y" * 800


def test_the_actor_is_the_first_of_sender_user_who_author_commenter():
    payload = {"commenter": "e", "author": "d", "who": "c", "user": "b", "sender": "a"}
    for wanted in "abcde":
        assert BuildsEvent.actor(payload) == wanted
        payload.popitem()
    assert BuildsEvent.actor(payload) == ""


@pytest.mark.django_db
def test_a_payload_above_64_kib_is_kept_apart_and_hinders_nobody():
    big = {"project": "p", "package": "q", "reason": "r" * 70_000, "repository": "s", "arch": "a"}
    fine = {"project": "p", "package": "q", "user": "u"}
    recorded = publish(
        [NewEvent("builds.build_fail", big), NewEvent("builds.commit", fine)], outside=True
    )
    assert [event.type for event in recorded] == ["events.quarantined", "builds.commit"]
    assert "more than EVENTS_MAX_PAYLOAD_BYTES (65536)" in recorded[0].problem
    assert recorded[1].problem == ""
