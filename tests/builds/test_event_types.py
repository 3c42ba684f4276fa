"""The event types are those of the catalogue, field by field."""

import json
import re
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from pydantic import ValidationError

from tailrace.domains.builds.event_types.base import BuildsEvent, allow_incomplete
from tailrace.domains.builds.event_types.build import BuildFail
from tailrace.domains.builds.event_types.catalogue import builds_types, by_bus_key
from tailrace.domains.builds.event_types.package import Commit, ServiceFail
from tailrace.environment.discovery import subclasses
from tailrace.events.models import Event
from tailrace.events.publish import NewEvent, Recorded, publish
from tailrace.events.types import get_type
from tailrace.jobs.models import Job
from tailrace.jobs.platform.inspection.search import find

CATALOGUE = json.loads(
    (Path(__file__).parents[1] / "data" / "obs" / "event-catalogue.json").read_text()
)
CONCRETE = [entry for entry in CATALOGUE if not entry["abstract"]]
NAMES = {entry["cls"] for entry in CATALOGUE}
CLASSES = {cls.__name__: cls for cls in subclasses(BuildsEvent)}


def snake(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


def parent(cls: type) -> str:
    """The nearest base class that the catalogue has too."""
    return next((base.__name__ for base in cls.__mro__[1:] if base.__name__ in NAMES), "Base")


def test_there_are_exactly_the_55_of_the_catalogue_and_a_newer_one():
    assert len(CONCRETE) == 55
    assert {cls.__name__ for cls in builds_types()} == {entry["cls"] for entry in CONCRETE} | {
        "UpstreamPackageVersionChanged"
    }


@pytest.mark.parametrize("entry", CATALOGUE, ids=lambda entry: entry["cls"])
def test_a_type_matches_the_catalogue(entry):
    event_type = CLASSES[entry["cls"]]
    assert event_type.abstract == entry["abstract"]
    assert parent(event_type) == entry["parent"]
    assert event_type.wire_keys == tuple(dict.fromkeys(entry["payload_keys"]))
    assert event_type.raw_type == (entry["raw_type"] or "")
    assert event_type.bus_key == (entry["routing_key"] or "")
    assert list(event_type.receiver_roles) == entry["receiver_roles"]
    assert event_type.project_log == entry["project_log"]
    assert (event_type.can_mail, event_type.can_web, event_type.can_rss) == (
        entry["can_mail"], entry["web"], entry["rss"],
    )  # fmt: skip
    if not entry["abstract"]:
        assert event_type.name == f"builds.{snake(entry['cls'])}"
        assert event_type is get_type(event_type.name)
    if entry["description"]:
        assert event_type.description() == entry["description"]


def test_a_new_version_upstream_is_an_event_of_newer_revisions():
    event_type = by_bus_key()["package.upstream_version_changed"]
    assert event_type.name == "builds.upstream_package_version_changed"
    assert event_type.description() == "Version of the upstream package has changed"
    assert event_type.wire_keys == ("upstream_version", "project", "package")
    assert event_type.receiver_roles == ("develpackage_or_package_maintainer",)


@pytest.mark.parametrize("event_type", builds_types(), ids=lambda event_type: event_type.name)
def test_a_type_accepts_its_keys_and_names_its_subject(event_type):
    payload = dict.fromkeys(event_type.Payload.identity, "7")
    assert event_type.Payload.model_validate(payload)
    assert event_type.problem(payload) == ""
    assert event_type.subject(payload)


def test_from_inside_bad_keys_are_refused():
    with pytest.raises(ValidationError, match="missing keys: package"):
        Commit.Payload.model_validate({"project": "home:alice"})
    with pytest.raises(ValidationError, match="unknown keys: surprise"):
        Commit.Payload.model_validate(
            {"project": "home:alice", "package": "hello", "surprise": "1"}
        )


def test_from_outside_bad_keys_are_accepted_and_flagged():
    with allow_incomplete():
        payload = BuildFail.Payload.model_validate({"surprise": "1", "arch": "i586"})
    values = payload.model_dump(exclude_unset=True)
    assert values == {"surprise": "1", "arch": "i586"}
    assert BuildFail.problem(values) == (
        "missing keys: project, package, repository; unknown keys: surprise"
    )


@pytest.mark.django_db
def test_keys_that_were_not_sent_stay_missing():
    (event,) = publish(NewEvent(Commit, {"project": "p", "package": "q", "rev": None}))
    assert event.raw_payload == {"project": "p", "package": "q", "rev": None}
    assert event.payload.comment is None


@pytest.mark.django_db
def test_an_incomplete_event_from_outside_is_readable():
    with allow_incomplete():
        (event,) = publish(NewEvent(Commit, {"package": "q", "surprise": "1"}), outside=True)
    payload = Recorded.from_model(Event.objects.get(pk=event.id)).payload
    assert (payload.project, payload.package, payload.surprise) == (None, "q", "1")


@pytest.mark.parametrize("key", ["comment", "files", "error"])
def test_long_texts_are_cut(key):
    payload = ServiceFail.Payload if key == "error" else Commit.Payload
    values = payload(project="p", package="q", **{key: "x" * 801}).model_dump(exclude_unset=True)
    assert values[key] == "x" * 800 + "…"
    assert payload(project="p", package="q", **{key: "y" * 800}).model_dump()[key] == "y" * 800


def test_the_actor_is_the_first_user_named_in_the_payload():
    payload = {"commenter": "e", "author": "d", "who": "c", "user": "b", "sender": "a"}
    for wanted in "abcde":
        assert BuildsEvent.actor(payload) == wanted
        payload.popitem()
    assert BuildsEvent.actor(payload) == ""


@pytest.mark.django_db
def test_a_payload_above_64_kib_is_quarantined_alone():
    big = {"project": "p", "package": "q", "reason": "r" * 70_000, "repository": "s", "arch": "a"}
    fine = {"project": "p", "package": "q", "user": "u"}
    recorded = publish(
        [NewEvent("builds.build_fail", big), NewEvent("builds.commit", fine)], outside=True
    )
    assert [event.type for event in recorded] == ["events.quarantined", "builds.commit"]
    assert "more than EVENTS_MAX_PAYLOAD_BYTES (65536)" in recorded[0].problem
    assert recorded[1].problem == ""


def test_the_file_list_of_a_huge_upload_is_cut_and_not_quarantined(db):
    values = {"project": "p", "package": "q", "filename": "name.txt " * 20_000, "user": "u"}
    (event,) = publish([NewEvent("builds.upload", values, source="obs:main:1")], outside=True)
    assert event.type == "builds.upload"
    assert len(event.raw_payload["filename"]) == 801


@pytest.mark.django_db
def test_the_jobs_of_a_request_are_found_by_its_number() -> None:
    events = publish([NewEvent("builds.request_create", {"number": n}) for n in (4711, 4712)])
    jobs = [Job.objects.create(handler="builds.report_to_scm", event_id=each.id) for each in events]
    user = User.objects.create_superuser("ann")
    matches = find.search(user, "number=4711", Job.objects.filter(pk__in=[j.pk for j in jobs]))
    assert list(matches.jobs) == [jobs[0]]
