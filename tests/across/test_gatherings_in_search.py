"""Gatherings of photos are found in the search of records."""

from collections.abc import Callable

import pytest
from django.contrib.auth.models import User

from tailrace.domains.photos.models import Gathering, Photo
from tailrace.domains.photos.uploads.deletion.delete_photos import delete_photos
from tailrace.domains.records.depositions.submit import identifier_of_subject
from tailrace.domains.records.handlers.deposit_event import DepositEvent
from tailrace.domains.records.models import Deposition, Record
from tailrace.events.publish import NewEvent, publish
from tailrace.jobs.destinations.hidden import HIDDEN
from tailrace.jobs.handler import ClaimedJob, Skip
from tailrace.jobs.models import Job
from tests.photos.kit import upload_photos
from tests.web.program import Program, problem, program

pytestmark = pytest.mark.django_db
STEPS = (
    "photos.cluster",
    "records.deposit_event",
    "records.validate_deposition",
    "records.auto_approve_curation",
    "records.publish_record",
    "records.index_record",
)


@pytest.fixture
def ana() -> Program:
    return program("ana", "records:read", "records:deposit")


def hits(who: Program, words: str = "gathering photos") -> list[str]:
    answer = who.get("/records/search", q=words)
    assert answer.status_code == 200, answer.content
    return [hit["identifier"] for hit in answer.json()["items"]]


def test_who_may_see_a_gathering_finds_it(
    ana: Program, run_jobs: Callable[..., int], settings
) -> None:
    settings.RECORDS_AUTO_APPROVE = False
    upload_photos(5)
    run_jobs(*STEPS)
    gathering = Gathering.objects.get()
    assert hits(ana) == [f"events/gathering/{gathering.pk}"]
    record = Record.objects.get()
    assert f"/photos/gatherings/{gathering.pk}" in record.description
    assert (record.owner, record.access, record.creators) == (None, "open", ["photos"])


def test_a_gathering_that_is_dissolved_is_found_no_more(
    ana: Program, run_jobs: Callable[..., int]
) -> None:
    bor = User.objects.create_user("bor")
    photos = upload_photos(5)
    Photo.objects.update(user=bor)
    run_jobs(*STEPS)
    delete_photos([photo.pk for photo in photos], bor.pk)
    run_jobs(*STEPS)
    assert not Gathering.objects.exists()
    assert hits(ana) == []
    assert Record.objects.get().is_deleted


def test_an_event_that_is_late_brings_no_dissolved_gathering_back(
    ana: Program, run_jobs: Callable[..., int]
) -> None:
    bor = User.objects.create_user("bor")
    photos = upload_photos(5)
    Photo.objects.update(user=bor)
    run_jobs("photos.cluster")
    delete_photos([photo.pk for photo in photos], bor.pk)
    started = Job.objects.get(
        handler="records.deposit_event", event__type="photos.gathering_started"
    )
    Job.objects.filter(pk=started.pk).update(state="failed")
    run_jobs(*STEPS)
    Job.objects.filter(pk=started.pk).update(state="pending")
    run_jobs(*STEPS)
    assert hits(ana) == []


def test_nobody_takes_over_the_record_of_a_gathering(
    ana: Program, run_jobs: Callable[..., int]
) -> None:
    upload_photos(5)
    run_jobs(*STEPS)
    identifier = identifier_of_subject(f"gathering/{Gathering.objects.get().pk}")
    metadata = {"title": "Mine", "creators": ["Ana"]}
    body = {"identifier": identifier, "metadata": metadata}
    answer = ana.post("/records/depositions", body)
    problem(answer, 422, "invalid")
    run_jobs(*STEPS)
    assert Record.objects.get().title != "Mine"


def test_an_event_that_not_everybody_may_read_becomes_no_record() -> None:
    bor = User.objects.create_user("bor")
    payload = {"device_id": 7, "user_id": bor.pk, "count": 1}
    [event] = publish(NewEvent("timeline.points_added", payload))
    job = ClaimedJob(
        id=1, handler=DepositEvent(), routing_key="", raw_payload=None, lane="", attempt=1,
        claim_no=1, worker="w", event_row=None, _event=event,
    )  # fmt: skip
    DepositEvent().handle_batch([job])
    assert isinstance(job.outcome, Skip)
    assert job.outcome.reason == HIDDEN
    assert not Deposition.objects.exists()
