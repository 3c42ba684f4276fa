"""The admin and the overview: the sweeper's runs, unclusterable photos, and requeue."""

import re

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.test import Client

from tailrace.db import clock
from tailrace.domains.photos.models import Photo
from tailrace.domains.photos.platform.panels import Photos
from tailrace.jobs.models import Job, SweepRun
from tests.photos.pictures import make_gathering, make_photo
from tests.subscriptions.sample_domain import person
from tests.web.program import allow
from tests.web.visitor import words

pytestmark = pytest.mark.django_db
WHY = "Fewer than 5 photos without a gathering within 75 m and 15 min"


@pytest.fixture
def op() -> User:
    user = person("op")
    user.is_staff = True
    user.save()
    allow(
        user,
        "tailrace_photos.view_photo",
        "tailrace_photos.view_gathering",
        "tailrace_jobs.view_sweeprun",
    )
    return user


@pytest.fixture
def client(op: User) -> Client:
    client = Client()
    client.force_login(op)
    return client


@pytest.fixture
def alone() -> Photo:
    return make_photo(
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
    lines = {line["name"]: line for line in Photos().context()["lines"]}
    gathers = lines["photos.photos_gather"]
    run, skipped = gathers["run"], gathers["skipped"]
    assert run
    assert skipped
    assert (run.found, run.repaired, gathers["repair_name"]) == (3, 2, "requeued")
    assert skipped.pk < run.pk
    assert lines["photos.active_gatherings_grow"]["skipped"] is None
    text = words(client.get("/overview/panels"))
    assert "3 2 requeued 12 ms" in text
    assert "it broke" in text
    assert f"photo {alone.pk}" in text
    assert re.search(rf"4 tries (now|\d+ s ago) · {WHY}", text)
    assert "All 1 unclusterable photos" in text


def test_the_panel_needs_few_queries(
    django_assert_max_num_queries, client: Client, alone: Photo
) -> None:
    with django_assert_max_num_queries(16):  # two for each invariant, two for the photos
        Photos().context()


def test_the_list_names_reason_and_tries(client: Client, alone: Photo) -> None:
    make_photo(alone.user)
    text = words(client.get("/admin/tailrace_photos/photo/?state=unclusterable"))
    assert WHY[:60] in text
    assert "1 photo" in text or "unclusterable" in text
    assert str(alone.pk) in text
    gathering = make_gathering(alone.user)
    assert client.get(f"/admin/tailrace_photos/gathering/{gathering.pk}/change/").status_code == 200
    assert client.get("/admin/tailrace_photos/gathering/?state=FINALIZED").status_code == 200
    assert client.get(f"/admin/tailrace_photos/photo/?q={alone.pk}").status_code == 200


def test_requeue_needs_the_permission(client: Client, alone: Photo) -> None:
    page = client.get(f"/admin/tailrace_photos/photo/{alone.pk}/change/")
    assert "Requeue" not in words(page)
    assert client.post(f"/admin/tailrace_photos/photo/{alone.pk}/requeue/").status_code == 403
    client.post(
        "/admin/tailrace_photos/photo/",
        {"action": "requeue_photos", "_selected_action": [alone.pk]},
    )
    alone.refresh_from_db()
    assert alone.state == "unclusterable"
    assert not LogEntry.objects.exists()


def test_a_requeued_photo_is_tried_again(op: User, client: Client, alone: Photo) -> None:
    allow(op, "tailrace_photos.change_photo")
    opened = alone.opened_at
    assert "Requeue" in words(client.get(f"/admin/tailrace_photos/photo/{alone.pk}/change/"))
    assert client.get(f"/admin/tailrace_photos/photo/{alone.pk}/requeue/").status_code == 405
    text = words(client.post(f"/admin/tailrace_photos/photo/{alone.pk}/requeue/", follow=True))
    assert "1 photo requeued." in text
    alone.refresh_from_db()
    assert (alone.state, alone.reason, alone.given_up_at) == ("new", "", None)
    assert alone.opened_at > opened
    job = Job.objects.get(handler="photos.cluster")
    assert (job.routing_key, job.state) == (str(alone.pk), "pending")
    entry = LogEntry.objects.get()
    assert (entry.user, entry.object_id, entry.change_message) == (op, str(alone.pk), "requeued")
    again = words(client.post(f"/admin/tailrace_photos/photo/{alone.pk}/requeue/", follow=True))
    assert "No photo was requeued" in again
    assert LogEntry.objects.count() == Job.objects.filter(handler="photos.cluster").count() == 1


def test_many_are_requeued_at_once(op: User, client: Client, alone: Photo) -> None:
    allow(op, "tailrace_photos.change_photo")
    new = make_photo(alone.user)
    chosen = {"action": "requeue_photos", "_selected_action": [alone.pk, new.pk], "confirmed": 2}
    assert "1 photo requeued." in words(
        client.post("/admin/tailrace_photos/photo/", chosen, follow=True)
    )
    across = {**chosen, "select_across": "1"}
    text = words(client.post("/admin/tailrace_photos/photo/", across, follow=True))
    assert "first filter by the state unclusterable" in text
