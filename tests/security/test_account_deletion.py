"""A deleted account: what was still stored of the person, and who could still use or delete it."""

from io import StringIO
from typing import Any

import pytest
from django.apps import apps
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Group, User
from django.core.management import CommandError
from django.db.models import ForeignKey
from django.test import Client
from django.urls import reverse

from tailrace.domains.builds.models import Watch
from tailrace.domains.photos.models import Gathering, Photo, Upload
from tailrace.domains.photos.uploads.pictures import storage
from tailrace.domains.timeline.live.receive import store as send_points
from tailrace.domains.timeline.models import Point
from tailrace.events.management.subcommands import call_subcommand
from tailrace.jobs.models import FailureGroup, Job, Replay, RequestKey
from tailrace.net.encryption import encrypt
from tailrace.net.signing import new_secret
from tailrace.subscriptions.channels.rss.feeds import make_feed
from tailrace.subscriptions.channels.web import inbox
from tailrace.subscriptions.models import (
    Block,
    Delivery,
    Device,
    Digest,
    DigestItem,
    Endpoint,
    FeedItem,
    Notification,
    PhoneCode,
    Preferences,
)
from tailrace.subscriptions.plans import status
from tailrace.web.accounts import tokens
from tailrace.web.accounts.deletion import DeletionRefused, delete_account, request_deletion
from tailrace.web.accounts.security import second_factor
from tailrace.web.models import AnsweredRequest
from tests.photos.kit import SQUARE, upload_photo, upload_photos
from tests.photos.pictures import make_photo, recent
from tests.protection.kit import fill_protection
from tests.records.kit import fill_records
from tests.security.remains import files_in, rows_with
from tests.subscriptions.plans.kit import make_plans
from tests.subscriptions.plans.kit import subscribe as subscribe_to_plan
from tests.subscriptions.sample_domain import FIRST, assign_role, person, publish_event, subscribe
from tests.timeline.kit import gpx, staged_tables, track, upload
from tests.web.program import Program, allow, make_token
from tests.web.visitor import Visitor, words

pytestmark = pytest.mark.django_db
NAME, PASSWORD = "zoe-unlikely", "correct horse battery"
TRACES = (NAME, "+49170999", "hook.zoe.example", "push.zoe.example", "a secret caption")


def foreign_keys() -> list[tuple[Any, str]]:
    """Return each model with its column that refers to a user, those of the tests excepted."""
    return [
        (model, field.name)
        for model in apps.get_models(include_auto_created=True)
        if not model.__module__.startswith("tests.")
        for field in model._meta.get_fields()
        if isinstance(field, ForeignKey) and field.related_model is User
    ]


@pytest.fixture
def zoe(run_jobs, storage_folder, import_folder) -> User:
    """A person of whom something is stored in every table that refers to users."""
    other, zoe = person("other"), User.objects.create_user(NAME, f"{NAME}@x.org", PASSWORD)
    zoe.groups.add(Group.objects.create(name="crew"))
    assign_role(FIRST, zoe)
    event = publish_event()
    inbox.put(event, user=zoe, group=None, role=FIRST)
    Notification.objects.get_or_create(event_id=event.id, user=zoe, role=FIRST)
    FeedItem.objects.get_or_create(event_id=event.id, user=zoe, role=FIRST)
    digest = Digest.objects.create(user=zoe, pace="daily", window_end=recent())
    DigestItem.objects.create(digest=digest, event_id=event.id)
    endpoint = Endpoint.objects.create(
        user=zoe, url="https://hook.zoe.example/", secret=encrypt(new_secret())
    )
    for _ in range(3):
        Delivery.objects.create(
            endpoint=endpoint, message_id="m", attempt=1, milliseconds=1, outcome="failed"
        )
    Device.objects.create(user=zoe, url="https://push.zoe.example/1")
    Preferences.objects.update_or_create(user=zoe, defaults={"phone": "+49170999"})
    PhoneCode.objects.create(user=zoe, phone="+49170999")
    Block.objects.create(user=zoe, blocked=other)
    FailureGroup.objects.create(pk=1, handler="test.work", assignee=zoe)
    Replay.objects.create(what="all", user=zoe)
    Block.objects.create(user=other, blocked=zoe)
    subscribe(user=zoe)
    make_feed(zoe, "a secret caption")
    second_factor.begin(zoe)
    make_token(zoe, "a program", tokens.scopes())
    RequestKey.objects.create(user=zoe, key="zoe's request", digest="")
    AnsweredRequest.objects.create(user=zoe, key="zoe's post", digest="", status=200)
    Watch.objects.create(user=zoe, request=1)
    make_plans()
    subscribe_to_plan("basic", zoe)
    status.mark_past_due([subscribe_to_plan("basic", other).pk], by=zoe)
    allow(zoe, "tailrace_photos.view_gathering")
    LogEntry.objects.log_actions(zoe.pk, [other], 2, "changed")
    LogEntry.objects.log_actions(other.pk, [zoe], 2, "changed")
    upload_photo(SQUARE, user=zoe, caption="a secret caption")
    upload_photos(4)
    run_jobs("photos.cluster")
    make_photo(zoe, caption="a secret caption")
    key = storage.new_key(".jpg")
    (storage_folder / key).parent.mkdir(parents=True, exist_ok=True)
    (storage_folder / key).write_bytes(b"cut off")
    Upload.objects.create(user=zoe, storage_key=key)
    send_points(zoe, "a secret caption", [(1_772_352_000_000_000, 7, 8, None, None, None, None)])
    upload(zoe, gpx(track(5)), "a secret caption", name="a secret caption")
    run_jobs("timeline.stage")
    fill_protection(zoe)
    fill_records(zoe, "a secret caption")
    return zoe


def test_a_deleted_account_stayed_in_some_table_or_file(
    zoe: User,
    run_jobs,
    storage_folder,
    import_folder,
    clock,
) -> None:
    for model, column in foreign_keys():
        assert model.objects.filter(**{column: zoe}).exists(), f"add a {model.__name__} to zoe"
    id = zoe.pk
    request_deletion(zoe)
    run_jobs("web.delete_account", "photos.delete_files", "timeline.discard")
    assert not User.objects.filter(pk=id).exists()
    for model, column in foreign_keys():
        assert not model.objects.filter(**{f"{column}_id": id}).exists(), model
    assert rows_with(*TRACES) == []
    assert files_in(storage_folder) == files_in(import_folder) == []
    assert not Point.objects.exists()
    assert staged_tables() == []
    assert not Gathering.objects.exists(), "four photos of others are too few"
    assert Photo.objects.count() == 4
    assert LogEntry.objects.filter(user__username=f"deleted-user-{id}").count() == 1
    clock.step(2 * 3600)  # files of requests that were killed are deleted after an hour
    run_jobs()
    assert set(Job.objects.values_list("state", flat=True)) <= {"completed", "skipped", "cancelled"}


def test_a_closed_account_was_still_used(zoe: User) -> None:
    program = Program(zoe)
    visitor, feed = Visitor(zoe), make_feed(zoe)[1]
    path = feed[feed.index("/feeds/") :]
    assert program.get("/photos").status_code == 200
    assert Client().get(path).status_code == 200
    request_deletion(zoe)
    assert program.get("/photos").status_code == 401
    assert "/login/" in visitor.get("/photos/mine")["Location"]
    assert Client().get(path).status_code == 404
    assert not Client().login(username=NAME, password=PASSWORD)
    assert rows_with("+49170999"), "the job has not run yet"


def test_a_session_alone_deleted_the_account(zoe: User, run_jobs) -> None:
    visitor = Visitor(zoe)
    page = words(visitor.get("/me/account/delete"))
    assert "Photos with their pictures" in page
    assert "API tokens and the second factor." in page
    for wrong in ({}, {"password": ""}, {"password": "wrong"}):
        assert visitor.post("/me/account/delete", wrong).status_code == 422
        zoe.refresh_from_db()
        assert zoe.is_active
    assert visitor.get("/me/account/delete").status_code == 200
    assert visitor.post("/me/account/delete", {"password": PASSWORD}).status_code == 200
    assert visitor.get("/me/account/delete").status_code == 302
    run_jobs("web.delete_account")
    assert not User.objects.filter(username=NAME).exists()


def test_an_interrupted_deletion_left_the_rest(zoe: User) -> None:
    request_deletion(zoe)
    turns = 0
    while not delete_account(zoe.pk, lambda: True):
        turns += 1
        assert turns < 100
    assert turns > 5
    assert rows_with(*TRACES) == []


def test_an_account_that_was_opened_again_was_deleted(zoe: User, run_jobs) -> None:
    request_deletion(zoe)
    User.objects.filter(pk=zoe.pk).update(is_active=True)
    run_jobs("web.delete_account")
    assert Photo.objects.filter(user=zoe).count() == 2


def test_deleting_a_user_in_the_admin_left_pictures(
    zoe: User,
    run_jobs,
    storage_folder,
    import_folder,
) -> None:
    chief = User.objects.create_superuser("chief", "c@x.org", "x")
    client = Client()
    client.force_login(chief)
    second = User.objects.create_user("second")
    client.post(reverse("admin:auth_user_delete", args=[zoe.pk]), {"post": "yes"})
    many = {"action": "delete_selected", "_selected_action": [second.pk, chief.pk], "post": "yes"}
    client.post(reverse("admin:auth_user_changelist"), many)
    run_jobs("web.delete_account", "photos.delete_files")
    assert not User.objects.filter(pk__in=[zoe.pk, second.pk]).exists()
    assert User.objects.get(pk=chief.pk).is_active, "the only superuser"
    assert rows_with(*TRACES) == []
    assert files_in(storage_folder) == []


def test_the_command_deletes_an_account(zoe: User) -> None:
    with pytest.raises(CommandError, match="no user has the login 'zoe-unlikeli'; did you mean"):
        call_subcommand("delete_account", "zoe-unlikeli", "--yes")
    out = StringIO()
    call_subcommand("delete_account", NAME, "--yes", stdout=out)
    assert "deleted" in out.getvalue()
    assert rows_with(*TRACES) == []
    with pytest.raises(DeletionRefused, match="the only active superuser"):
        request_deletion(User.objects.create_superuser("root"))
