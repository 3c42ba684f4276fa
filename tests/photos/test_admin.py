"""The operator's side: the sweeper's runs, photos that are unclusterable, and another try."""

import re

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.test import Client

from domains.photos.models import Photo
from domains.photos.panels import Photos
from events import clock
from jobs.models import Job, SweepRun
from tests.photos.scene import gather, keep
from tests.subscriptions.api.kit import allow
from tests.subscriptions.browsing import words
from tests.subscriptions.stage import person

pytestmark = pytest.mark.django_db
WHY = "it is the only photo within 75 m and 15 min that no gathering has"


@pytest.fixture
def op() -> User:
    user = person("op")
    user.is_staff = True
    user.save()
    allow(user, "photos.view_photo", "photos.view_gathering", "jobs.view_sweeprun")
    return user


@pytest.fixture
def client(op: User) -> Client:
    found = Client()
    found.force_login(op)
    return found


@pytest.fixture
def alone() -> Photo:
    return keep(
        person("ann"), state="unclusterable", next_try_at=None, given_up_at=clock.now(),
        reason=WHY, cluster_attempts=4,
    )  # fmt: skip


def test_the_panel_shows_each_sweeps_last_run(client: Client, alone: Photo) -> None:
    for outcome, found, repaired in (("checked", 7, 5), ("skipped", 0, 0), ("checked", 3, 2)):
        SweepRun.objects.create(
            invariant="photos.photos_gather", outcome=outcome, found=found, repaired=repaired,
            duration_ms=12,
        )  # fmt: skip
    SweepRun.objects.create(
        invariant="photos.active_gatherings_grow", outcome="error", error="it broke"
    )
    lines = {line.name: line for line in Photos().context()["lines"]}
    gathers = lines["photos.photos_gather"]
    assert gathers.run
    assert gathers.skipped
    assert (gathers.run.found, gathers.run.repaired, gathers.did) == (3, 2, "requeued")
    assert gathers.skipped.pk < gathers.run.pk
    assert lines["photos.active_gatherings_grow"].skipped is None
    told = words(client.get("/overview/panels"))
    assert "3 2 requeued 12 ms" in told
    assert "it broke" in told
    assert f"photo {alone.pk}" in told
    assert re.search(rf"4 tries (now|\d+ s ago) · {WHY}", told)
    assert "All 1 that are unclusterable" in told


def test_the_panel_asks_little(django_assert_max_num_queries, client: Client, alone: Photo) -> None:
    with django_assert_max_num_queries(12):
        Photos().context()


def test_the_list_names_reason_and_tries(client: Client, alone: Photo) -> None:
    keep(alone.user)
    told = words(client.get("/admin/photos/photo/?state=unclusterable"))
    assert WHY[:60] in told
    assert "1 photo" in told or "unclusterable" in told
    assert str(alone.pk) in told
    gathering = gather(alone.user)
    assert client.get(f"/admin/photos/gathering/{gathering.pk}/change/").status_code == 200
    assert client.get("/admin/photos/gathering/?state=FINALIZED").status_code == 200
    assert client.get(f"/admin/photos/photo/?q={alone.pk}").status_code == 200


def test_who_may_not_requeue_is_refused(client: Client, alone: Photo) -> None:
    page = client.get(f"/admin/photos/photo/{alone.pk}/change/")
    assert "Requeue" not in words(page)
    assert client.post(f"/admin/photos/photo/{alone.pk}/requeue/").status_code == 403
    client.post(
        "/admin/photos/photo/", {"action": "requeue_photos", "_selected_action": [alone.pk]}
    )
    alone.refresh_from_db()
    assert alone.state == "unclusterable"
    assert not LogEntry.objects.exists()


def test_a_requeued_photo_is_tried_again(op: User, client: Client, alone: Photo) -> None:
    allow(op, "photos.change_photo")
    opened = alone.opened_at
    assert "Requeue" in words(client.get(f"/admin/photos/photo/{alone.pk}/change/"))
    assert client.get(f"/admin/photos/photo/{alone.pk}/requeue/").status_code == 405
    told = words(client.post(f"/admin/photos/photo/{alone.pk}/requeue/", follow=True))
    assert "1 photo requeued." in told
    alone.refresh_from_db()
    assert (alone.state, alone.reason, alone.given_up_at) == ("new", "", None)
    assert alone.opened_at > opened
    job = Job.objects.get(handler="photos.cluster")
    assert (job.routing_key, job.state) == (str(alone.pk), "pending")
    entry = LogEntry.objects.get()
    assert (entry.user, entry.object_id, entry.change_message) == (op, str(alone.pk), "requeued")
    again = words(client.post(f"/admin/photos/photo/{alone.pk}/requeue/", follow=True))
    assert "Nothing was requeued" in again
    assert LogEntry.objects.count() == Job.objects.filter(handler="photos.cluster").count() == 1


def test_many_are_requeued_at_once(op: User, client: Client, alone: Photo) -> None:
    allow(op, "photos.change_photo")
    new = keep(alone.user)
    chosen = {"action": "requeue_photos", "_selected_action": [alone.pk, new.pk]}
    assert "1 photo requeued." in words(client.post("/admin/photos/photo/", chosen, follow=True))
    across = {**chosen, "select_across": "1"}
    told = words(client.post("/admin/photos/photo/", across, follow=True))
    assert "first filter by unclusterable" in told
