"""One trace through four domains in worker processes: from the file of a walk to a mail.

The first worker is killed on the way, and another one takes over.
"""

from collections import Counter
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.test import Client

from tailrace.domains.photos.models import Gathering
from tailrace.domains.photos.uploads.create_photo import SOURCE, source_id
from tailrace.events.models import Event
from tailrace.jobs.engine.maintenance.ticking import tick
from tailrace.jobs.models import Attempt, Job
from tailrace.subscriptions.models import EventSubscription
from tests.across.kit import PLACES, minutes, upload_unplaced
from tests.across.test_gatherings_in_search import STEPS, hits
from tests.kit import empty_broker, held, sessions_that_wait, wait_until, worker
from tests.photos.pictures import recent
from tests.servers.smtp import mail_server
from tests.timeline.kit import STEPS as IMPORT
from tests.timeline.kit import gpx, rescued, upload
from tests.web.program import program

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]
QUEUES = (*IMPORT, *PLACES, *STEPS, "subscriptions.notify", "subscriptions.mail")
CAUSES = [
    "photos.gathering_started",
    "photos.uploaded",
    "timeline.places_known",
    "photos.places_requested",
    "timeline.import_promoted",
]
EFFECTS = [
    "records.deposition_submitted",
    "records.validation_completed",
    "records.deposition_approved",
    "records.record_published",
]
JOBS = [
    *PLACES,
    "photos.cluster",
    "subscriptions.notify",
    "subscriptions.mail",
    "records.deposit_event",
    "records.validate_deposition",
    "records.auto_approve_curation",
    "records.publish_record",
    "records.index_record",
]
ONCE = [
    "timeline.import_promoted",
    "photos.gathering_started",
    "records.deposition_submitted",
    "records.record_published",
]
SAME_EVENT = """
INSERT INTO tailrace_events_event (source, source_id, type, schema_version, subject, payload,
  occurred_at, recorded_at, actor, trace_parent, problem)
VALUES (%s, %s, '', 1, '', '{}', now(), now(), '', '', '')
"""
"""Until it is rolled back, whoever publishes an event with this source and id waits."""
LAKE = (46.28, 13.88)


def with_causes(event: Event | None) -> list[Event]:
    """Return the event, its cause, the cause of that, and so on."""
    events = []
    while event is not None:
        events.append(event)
        event = event.cause
    return events


def has_ended() -> bool:
    tick.tick()
    return not Job.objects.filter(handler__in=QUEUES, state__in=("pending", "running")).exists()


def is_placing() -> bool:
    """With a tick: photos have got their places, and their events wait to be written."""
    tick.tick()
    return Job.objects.running().filter(handler=PLACES[-1]).exists() and sessions_that_wait() > 0


def test_an_import_leads_to_a_gathering_in_the_search_and_to_a_mail(
    process_env: dict[str, str], tmp_path: Path, settings, storage_folder, import_folder
) -> None:
    settings.IMPORT_GRACE_SECONDS = 0
    empty_broker()
    ana = program("ana", "photos:read", "photos:write", "records:read")
    EventSubscription.objects.create(
        user=ana.user, event_type="photos.gathering_started", role="photographer", channel="mail"
    )
    start = recent()
    photos = [upload_unplaced(ana, start + minutes(number)) for number in range(5)]
    walk = gpx([(start + minutes(number), *LAKE) for number in range(5)])
    with mail_server() as smtp:
        env = process_env | {
            "EMAIL_URL": smtp.url,
            "IMPORT_GRACE_SECONDS": "0",
            "TIMELINE_FOLDER": str(import_folder),
            "PHOTOS_FOLDER": str(storage_folder),
        }
        with (
            worker(env, QUEUES, log=tmp_path / "killed.log", concurrency=2) as killed,
            held(SAME_EVENT, SOURCE, source_id(photos[-1].pk)),
        ):
            upload(ana.user, walk)
            wait_until(is_placing)
            killed.kill()
        rescued()
        with worker(env, QUEUES, log=tmp_path / "worker.log", concurrency=2):
            wait_until(lambda: has_ended() and smtp.received, what="the end of the trace")
    assert Attempt.objects.filter(job__handler=PLACES[-1], outcome="lost").exists()
    gathering = Gathering.objects.get()
    assert gathering.photo_count == 5
    types = Counter(Event.objects.values_list("type", flat=True))
    assert {name: types[name] for name in ONCE} == dict.fromkeys(ONCE, 1)
    assert types["photos.uploaded"] == 5
    started = Event.objects.get(type="photos.gathering_started")
    assert [event.type for event in with_causes(started)][: len(CAUSES)] == CAUSES
    assert hits(ana) == [f"events/gathering/{gathering.pk}"]
    [mail] = [each for each in smtp.received if "gathering" in str(each.message["Subject"]).lower()]
    assert mail.recipients == ["ana@example.org"]
    assert started in with_causes(Event.objects.get(type="records.record_published"))
    imported = Event.objects.get(type="timeline.import_promoted")
    published = Event.objects.get(type="records.record_published")
    browser = Client()
    browser.force_login(User.objects.create_superuser("root"))
    for event in (imported, started, published):
        page = browser.get(f"/admin/tailrace_events/event/{event.pk}/change/").content.decode()
        chain = page.partition('id="chain"')[2].partition('id="jobs"')[0]
        missing = [name for name in (*CAUSES, *EFFECTS, *JOBS) if name not in chain]
        assert not missing, f"the page of {event.type} does not show them"
    assert not Job.objects.failed().exists()
