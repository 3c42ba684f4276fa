"""Depositions and records in the API."""

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile

from tailrace.domains.records.depositions.decisions import CURATE
from tailrace.domains.records.models import Deposition, DepositionFile, Record
from tailrace.events.models import Event
from tests.records.kit import fill_records, metadata
from tests.records.test_chain import CHAIN
from tests.web.program import Program, allow, problem

pytestmark = pytest.mark.django_db
DEPOSITIONS = "/records/depositions"


@pytest.fixture
def ana() -> Program:
    return Program(User.objects.create_user("ana"))


@pytest.fixture
def curator() -> Program:
    user = User.objects.create_user("curator")
    allow(user, CURATE, "tailrace_records.view_deposition", "tailrace_records.view_record")
    return Program(User.objects.get(pk=user.pk))


def send(program: Program, files: dict[str, bytes], **fields: Any) -> Any:
    sent = [SimpleUploadedFile(name, content) for name, content in files.items()]
    return program.client.post(f"/api{DEPOSITIONS}", {**fields, "files": sent})


def test_a_deposition_with_files_is_followed_to_its_record(
    ana: Program, run_jobs: Callable[..., int]
) -> None:
    text = '{"title": "Snow", "creators": ["Novak, Ana"], "language": "en"}'
    answer = send(ana, {"a.csv": b"1,2\n", "b.csv": b"3,4\n"}, metadata=text)
    assert answer.status_code == 201, answer.content
    sent = answer.json()
    assert (sent["state"], sent["record"], len(sent["files"])) == ("submitted", None, 2)
    run_jobs(*CHAIN)
    done = ana.get(f"{DEPOSITIONS}/{sent['id']}").json()
    assert done["state"] == "published"
    assert ana.get(f"/records/{done['record']}").json()["title"] == "Snow"
    file = ana.client.get(done["files"][0]["url"].partition("8000")[2])
    assert b"".join(file.streaming_content) == b"1,2\n"
    assert file["Content-Disposition"].startswith("attachment")


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"metadata": {"title": 7}}, "#/metadata/title"),
        ({"metadata": {"title": "x" * 1001}}, "#/metadata/title"),
        ({"metadata": {"creators": "Ana"}}, "#/metadata/creators"),
        ({"metadata": {"colour": "blue"}}, "#/metadata/colour"),
        ({"metadata": {"title": "Snow"}, "identifier": "of nobody"}, "#/identifier"),
        ({}, "#/metadata"),
    ],
)
def test_a_wrong_field_is_named(ana: Program, body: dict[str, Any], pointer: str) -> None:
    answer = problem(ana.post(DEPOSITIONS, body), 422, "invalid")
    assert answer["errors"][0]["pointer"] == pointer
    assert not Deposition.objects.exists()


def test_what_is_incomplete_is_invalid_and_can_be_corrected(
    ana: Program, run_jobs: Callable[..., int]
) -> None:
    first = ana.post(DEPOSITIONS, {"metadata": {"title": "Snow", "language": "xx"}}).json()
    run_jobs(*CHAIN)
    wrong = ana.get(f"{DEPOSITIONS}/{first['id']}").json()
    assert wrong["state"] == "invalid"
    assert [each["field"] for each in wrong["problems"]] == ["creators", "language"]
    body = {"metadata": metadata("Snow"), "identifier": first["identifier"]}
    second = ana.post(DEPOSITIONS, body).json()
    run_jobs(*CHAIN)
    assert ana.get(f"{DEPOSITIONS}/{second['id']}").json()["state"] == "published"
    assert Record.objects.get().identifier == first["identifier"]


def test_a_repeated_key_is_one_deposition(ana: Program) -> None:
    body, key = {"metadata": metadata()}, {"headers": {"Idempotency-Key": "k1"}}
    first = ana.post(DEPOSITIONS, body, **key)
    again = ana.post(DEPOSITIONS, body, **key)
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json()["id"] == again.json()["id"]
    other = problem(ana.post(DEPOSITIONS, {"metadata": metadata("x")}, **key), 422, "key-reused")
    assert other["errors"][0]["header"] == "Idempotency-Key"
    assert Deposition.objects.count() == 1


def test_limits_are_named_with_their_settings(ana: Program, settings: Any) -> None:
    text = '{"title": "Snow"}'
    settings.RECORDS_MAX_FILES = 1
    too_many = send(ana, {"a": b"1", "b": b"2"}, metadata=text)
    assert "RECORDS_MAX_FILES" in problem(too_many, 422, "invalid")["detail"]
    settings.RECORDS_MAX_FILES = 5
    settings.RECORDS_MAX_GIGABYTES_PER_USER = 1e-9
    too_large = send(ana, {"a": b"12"}, metadata=text)
    assert "RECORDS_MAX_GIGABYTES_PER_USER" in problem(too_large, 409, "too-many")["detail"]
    settings.RECORDS_MAX_MEGABYTES = 1
    huge = send(ana, {"a": b"1" * 1_100_000}, metadata=text)
    assert "RECORDS_MAX_MEGABYTES" in problem(huge, 413)["detail"]
    settings.RECORDS_MAX_PER_USER = 1
    assert ana.post(DEPOSITIONS, {"metadata": metadata()}).status_code == 201
    full = ana.post(DEPOSITIONS, {"metadata": metadata()})
    assert "RECORDS_MAX_PER_USER" in problem(full, 409, "too-many")["detail"]
    assert not DepositionFile.objects.exists()


def test_a_curator_rejects_with_a_reason_that_the_depositor_reads(
    ana: Program, curator: Program, run_jobs: Callable[..., int], settings: Any
) -> None:
    settings.RECORDS_AUTO_APPROVE = False
    ids = [ana.post(DEPOSITIONS, {"metadata": metadata()}).json()["id"] for _ in range(2)]
    run_jobs(*CHAIN)
    problem(ana.post(f"{DEPOSITIONS}/{ids[0]}/approve"), 403, "permission-missing")
    problem(curator.post(f"{DEPOSITIONS}/{ids[0]}/reject", {"reason": ""}), 422, "invalid")
    answer = curator.post(f"{DEPOSITIONS}/{ids[0]}/reject", {"reason": "not a data set"})
    assert answer.status_code == 200, answer.content
    problem(curator.post(f"{DEPOSITIONS}/{ids[0]}/approve"), 409)
    assert curator.post(f"{DEPOSITIONS}/{ids[1]}/approve").status_code == 200
    run_jobs(*CHAIN)
    rejected = ana.get(f"{DEPOSITIONS}/{ids[0]}").json()
    assert (rejected["state"], rejected["reason"]) == ("rejected", "not a data set")
    assert Record.objects.get().deposition_id == ids[1]
    event = Event.objects.get(type="records.deposition_rejected")
    assert (event.actor, event.payload["reason"]) == ("curator", "not a data set")
    actions = LogEntry.objects.order_by("pk").values_list("change_message", flat=True)
    assert list(actions) == ["rejected", "approved"]


def test_what_is_of_another_user_is_not_found(ana: Program) -> None:
    bob = User.objects.create_user("bob")
    record = fill_records(bob)
    deposition = record.deposition
    assert deposition is not None
    body = {"metadata": metadata(), "identifier": deposition.identifier}
    problem(ana.post(DEPOSITIONS, body), 422, "invalid")
    problem(ana.post(f"/records/{record.pk}/withdraw", {"reason": "mine"}), 404)
    assert ana.get(f"{DEPOSITIONS}/{deposition.pk}").status_code == 404
    file = f"{DEPOSITIONS}/{deposition.pk}/files/{deposition.files.get().pk}"
    assert ana.get(file).status_code == 200, "files of open records are open"
    Record.objects.update(access="closed")
    assert ana.get(file).status_code == 404
    assert ana.get(f"/records/{record.pk}").status_code == 404


def test_a_withdrawn_record_leaves_every_index(ana: Program, run_jobs: Callable[..., int]) -> None:
    ana.post(DEPOSITIONS, {"metadata": metadata("Snow")})
    run_jobs(*CHAIN)
    record = Record.objects.get()
    assert hasattr(record, "keyword_entry")
    assert record.vector_entries.count() == 1
    answer = ana.post(f"/records/{record.pk}/withdraw", {"reason": "an error"})
    assert answer.status_code == 202
    run_jobs(*CHAIN)
    record = Record.objects.get()
    assert record.is_deleted
    assert not hasattr(record, "keyword_entry")
    assert not record.vector_entries.exists()
    problem(ana.post(f"/records/{record.pk}/withdraw", {"reason": "again"}), 409)
