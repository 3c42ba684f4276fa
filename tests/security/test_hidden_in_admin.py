"""What staff without `tailrace_events.view_hidden` got of a hidden project, on any page of the
admin."""

from collections.abc import Container, Iterator
from datetime import timedelta

import pytest
from django.apps import apps
from django.contrib import admin
from django.contrib.auth.models import Group, Permission, User
from django.db.models import Model
from django.test import Client, override_settings
from django.urls import reverse
from django.utils import timezone

from tailrace.domains.builds.models import (
    Binary,
    Package,
    PackageLink,
    Project,
    ProjectLogEntry,
    RoleHolder,
    UnreadChange,
    Watch,
)
from tailrace.events.models import Event
from tailrace.events.publish import NewEvent, publish
from tailrace.jobs.engine.failures import fill_in
from tailrace.jobs.enqueue import enqueue
from tailrace.jobs.models import Attempt, Job, LogLines, Schedule
from tailrace.jobs.platform.inspection.explain.explanation import explain
from tailrace.jobs.testing.perform import work_off
from tailrace.subscriptions.models import EventSubscription

pytestmark = [pytest.mark.usefixtures("planted"), pytest.mark.django_db]
SECRET, OPEN = "home:planted", "home:open"
PAYLOADS = ("view_payload", "view_job_payload")
OF_EVENTS = {f"tailrace_{name}" for name in ("events", "jobs", "builds", "subscriptions")}
"""The apps with rows about what is planted here."""
OTHERS = {model._meta.app_label for model in admin.site._registry} - OF_EVENTS
in_apps = pytest.mark.parametrize(
    "chosen",
    [
        pytest.param(OF_EVENTS, id="of events"),
        pytest.param(OTHERS, id="others", marks=pytest.mark.long),
    ],
)


def staff(name: str, *without: str) -> Client:
    """Return a client of staff who have all permissions but these."""
    user = User.objects.create_user(name, is_staff=True)
    user.user_permissions.set(Permission.objects.exclude(codename__in=without))
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture(scope="module")
def planted(rows_of_module: None) -> Iterator[None]:
    """Put the name of the hidden project into every table of the admin that can hold it, once for
    all tests of this file: what each of them changes is rolled back."""
    backends = {"main": "http://127.0.0.1:9"}
    with override_settings(OBS_UNKNOWN_PROJECTS="hidden", OBS_BACKENDS=backends):
        plant()
        yield


def plant() -> None:
    now = timezone.now()
    for name in (SECRET, OPEN):
        place = {"backend": "main", "project": name}
        Project.objects.create(
            backend="main", name=name, title=name, hidden=name == SECRET, refreshed_at=now
        )
        package = Package.objects.create(**place, name="p")
        PackageLink.objects.create(package=package, project=OPEN, name="q")
        RoleHolder.objects.create(**place, role="reader", user=f"of {name[5:]}")
        Binary.objects.create(**place, repository="r", name="b", operation="added", released_at=now)
        Watch.objects.create(user=User.objects.create_user(f"of {name[5:]}"), project=name)
        publish(_events(name))
    EventSubscription.objects.create(
        event_type="*", role="project_watcher", channel="web",
        user=User.objects.get(username="of planted"),
    )  # fmt: skip
    work_off(["builds.project_log", "subscriptions.notify"])
    for event in Event.objects.filter(subject__startswith=SECRET):
        job = Job.objects.create(
            handler="subscriptions.web", event=event, state="failed", lane=SECRET,
            routing_key=f"key {SECRET}", error=f"no {SECRET}", progress_done=1,
            progress_note=f"at {SECRET}", unique_key=SECRET, result={"of": SECRET},
            finished_at=now, claim_no=2, attempt=2,
        )  # fmt: skip
        Attempt.objects.create(
            job=job, claim_no=1, outcome="retried", error_class="Oops", message=f"no {SECRET}",
            traceback=f"at {SECRET}", started_at=now - timedelta(seconds=9), finished_at=now,
        )  # fmt: skip
        LogLines.objects.create(
            job=job, claim_no=2, first=1, last=1, lines=[[1, now.isoformat(), f"log of {SECRET}"]]
        )
    fill_in.group(list(Job.objects.failed().values_list("pk", flat=True)))
    refresh = {"backend": "main", "project": SECRET, "package": "_project"}
    for delay in (0, 3600):
        enqueue("builds.update_backend_infos", refresh, lane=f"main:{SECRET}/{delay}", delay=delay)
    UnreadChange.objects.create(
        backend="main", project=SECRET, package="p", event_id=1, recorded_at=now
    )


def _events(project: str) -> Iterator[NewEvent]:
    source = "obs:main:1"
    comment = {"project": project, "id": 1, "commenter": "carl", "comment_body": "hm"}
    commit = {"project": project, "package": "p", "rev": "1", "comment": project}
    branch = {"project": OPEN, "package": "p", "targetproject": project}
    yield NewEvent("builds.comment_for_project", comment, source=source)
    yield NewEvent("builds.commit", commit, source=source, actor=f"{project} bot")
    yield NewEvent("builds.branch_command", branch, source=source)
    yield NewEvent("builds.unknown", {"raw_type": f"T {SECRET}", "data": SECRET})


def pages(client: Client, chosen: Container[str]) -> Iterator[tuple[str, str]]:
    """Yield the address and the content of every list, and of every page of every row."""
    for address in ("/", "/overview/panels", "/admin/"):
        response = client.get(address, follow=True)
        yield address, response.content.decode()
    for model in admin.site._registry:
        if model._meta.app_label in chosen:
            yield from pages_of(client, model)


def pages_of(client: Client, model: type[Model]) -> Iterator[tuple[str, str]]:
    name = f"admin:{model._meta.app_label}_{model._meta.model_name}"
    response = client.get(reverse(f"{name}_changelist"))
    assert response.status_code == 200, name
    yield f"{name} list", response.content.decode()
    kept = model in (Event, Job)
    rows = list(model._default_manager.order_by("-pk").values_list("pk", flat=True))
    for number, pk in enumerate(rows[: 12 if kept else 3]):
        for page in ("change", "history", "delete")[: 3 if not number else 1]:
            if page == "delete" and kept:
                continue
            response = client.get(reverse(f"{name}_{page}", args=[pk]))
            yield f"{name} {pk} {page}", response.content.decode()


def leaks(client: Client, secret: str, chosen: Container[str]) -> list[str]:
    """Return the addresses of the pages that the secret stands on."""
    return [address for address, page in pages(client, chosen) if secret in page]


def assert_shown(client: Client, secret: str, *models: str) -> None:
    """Assert that the secret is on a page of each of these models."""
    for app, name in (model.rsplit("_", 1) for model in models):
        walk = pages_of(client, apps.get_model(app, name))
        assert any(secret in page for _, page in walk), f"{app}_{name}"


@in_apps
def test_no_page_of_the_admin_names_it(chosen: set[str]) -> None:
    assert leaks(staff("opal", "view_hidden"), SECRET, chosen) == []


@pytest.mark.parametrize(
    "query",
    [
        f"tailrace_events/event/?q={SECRET}",
        f"tailrace_events/event/?q={SECRET[:8]}",
        f"tailrace_jobs/job/?lane=main:{SECRET}/0",
        f"tailrace_jobs/job/?lane={SECRET}",
        f"tailrace_jobs/failuregroup/?q={SECRET}",
        f"tailrace_jobs/job/?q={SECRET}",
        f"tailrace_jobs/job/?q=subject:{SECRET}",
        f"tailrace_jobs/job/?q=lane:{SECRET}",
        f'tailrace_jobs/job/?q=key:"key {SECRET}"',
        f"tailrace_jobs/job/?q=error:{SECRET}",
        f"tailrace_builds/project/?q={SECRET}",
        f"tailrace_builds/projectlogentry/?q={SECRET}",
        f"tailrace_builds/roleholder/?q={SECRET}",
        f"tailrace_builds/watch/?q={SECRET}",
    ],
)
def test_no_search_answers_whether_it_exists(query: str) -> None:
    client = staff("opal", "view_hidden")
    hidden = client.get(f"/admin/{query}")
    absent = client.get("/admin/" + query.replace("planted", "nothing").replace("plan", "noth"))
    assert list(hidden.context["cl"].result_list) == list(absent.context["cl"].result_list) == []
    assert hidden.context["cl"].result_count == absent.context["cl"].result_count == 0
    assert list(staff("root").get(f"/admin/{query}").context["cl"].result_list), "it is there"


def test_a_page_of_search_results_is_filled_with_those_that_may_be_read() -> None:
    events = [
        NewEvent("builds.update_project_config", {"project": project}, source="obs:main:1")
        for project in [SECRET] * 60 + [OPEN] + [SECRET] * 60
    ]
    shown = publish(events)[60]
    change_list = (
        staff("opal", "view_hidden").get("/admin/tailrace_events/event/?q=home:").context["cl"]
    )
    ids = [event.pk for event in change_list.result_list]
    assert shown.id in ids
    assert SECRET not in {event.subject for event in change_list.result_list}
    assert (change_list.older_url, change_list.newer_url) == ("", "")


def test_an_explanation_names_it_only_to_who_may_read_it() -> None:
    user = User.objects.get(username=f"of {OPEN[5:]}")
    for job in Job.objects.filter(lane__contains=SECRET):
        assert SECRET not in str(explain(job.pk, user).as_json())
    failed = Job.objects.filter(state="failed").earliest("pk")
    assert SECRET in str(explain(failed.pk).as_json())


def test_a_hidden_event_shows_nobody_who_was_notified() -> None:
    hidden = Event.objects.filter(subject=SECRET).earliest("pk")
    page = staff("opal", "view_hidden").get(
        f"/admin/tailrace_events/event/{hidden.pk}/change/?who=carl"
    )
    assert "Who was notified" not in page.content.decode()


# --- payloads ---


@in_apps
def test_staff_without_view_payload_see_no_value_of_a_payload(run_jobs, chosen: set[str]) -> None:
    VALUE = "sunken-treasure"
    body = {"project": OPEN, "id": 9, "commenter": "carl", "comment_body": VALUE}
    (event,) = publish([NewEvent("builds.comment_for_project", body, source="obs:main:3")])
    publish([NewEvent("builds.comment_for_project", body | {"id": [VALUE]})], outside=True)
    run_jobs("builds.project_log")
    assert ProjectLogEntry.objects.filter(details__comment_body=VALUE).exists()
    job = Job.objects.create(
        handler="subscriptions.web", event_id=event.id, state="failed", payload={"x": VALUE},
        result={"y": VALUE}, error=f"ValueError of {VALUE}", progress_done=1, attempt=1,
        progress_note=VALUE, claim_no=2, finished_at=timezone.now(),
    )  # fmt: skip
    Attempt.objects.create(
        job=job, claim_no=1, outcome="retried", error_class="Oops", message=VALUE, traceback=VALUE,
        started_at=timezone.now(), finished_at=timezone.now(),
    )  # fmt: skip
    LogLines.objects.create(
        job=job, claim_no=2, first=1, last=1, lines=[[1, timezone.now().isoformat(), VALUE]]
    )
    Job.objects.create(handler="subscriptions.web", state="running", progress_done=1,
                       progress_note=VALUE, worker="w", claim_no=1, attempt=1)  # fmt: skip
    _schedule(VALUE)
    assert leaks(staff("opal", *PAYLOADS), VALUE, chosen) == []
    root = staff("root", "nothing")
    assert_shown(
        root, VALUE, "tailrace_events_event", "tailrace_jobs_job", "tailrace_jobs_schedule",
        "tailrace_builds_projectlogentry",
    )  # fmt: skip


def test_all_that_is_hidden_is_there() -> None:
    assert_shown(
        staff("root", "nothing"), SECRET,
        "tailrace_events_event", "tailrace_jobs_job", "tailrace_jobs_failuregroup",
        "tailrace_builds_project", "tailrace_builds_package", "tailrace_builds_binary",
        "tailrace_builds_roleholder", "tailrace_builds_watch", "tailrace_builds_projectlogentry",
        "tailrace_builds_packagelink", "tailrace_builds_unreadchange",
        "tailrace_subscriptions_eventsubscription",
    )  # fmt: skip


def _schedule(value: str) -> None:
    Schedule.objects.create(
        name="theirs", handler="subscriptions.digest", payload={"digest": value}, owner="ann",
        every_seconds=3600, next_run_at=timezone.now(),
    )  # fmt: skip


def test_a_schedule_keeps_the_payload_that_its_editor_may_not_see() -> None:
    _schedule("7")
    row = Schedule.objects.get(name="theirs")
    client = staff("opal", *PAYLOADS)
    data = {"name": "theirs", "handler": row.handler, "routing_key": "", "every_seconds": 60,
            "cron": "", "time_zone": row.time_zone, "catch_up": row.catch_up,
            "payload": '{"digest": 8}'}  # fmt: skip
    client.post(reverse("admin:tailrace_jobs_schedule_change", args=[row.pk]), data)
    row.refresh_from_db()
    assert (row.every_seconds, row.payload) == (60, {"digest": "7"})


def test_groups_are_walked_too() -> None:
    Group.objects.create(name="g")
    addresses = [address for address, _ in pages_of(staff("opal", "view_hidden"), Group)]
    assert len(addresses) == 4, "its list, and three pages of the group"


def test_a_project_that_changed_is_hidden_until_it_is_read() -> None:
    opal = staff("opal", "view_hidden")
    path = "/admin/tailrace_builds/project/"
    assert OPEN in opal.get(path).content.decode()
    change = UnreadChange.objects.create(
        backend="main", project=OPEN, event_id=1, recorded_at=timezone.now()
    )
    for page in (path, "/admin/tailrace_builds/package/", "/admin/tailrace_builds/unreadchange/"):
        assert OPEN not in opal.get(page).content.decode(), page
    assert OPEN in staff("root").get(path).content.decode()
    change.delete()
    assert OPEN in opal.get(path).content.decode()


def test_the_parts_of_pages_that_move_name_it_to_nobody_who_may_not_read_it() -> None:
    job = Job.objects.filter(handler="subscriptions.web", error=f"no {SECRET}").latest("pk")
    page = f"/admin/tailrace_jobs/job/{job.pk}"
    queue = "/admin/tailrace_jobs/queue/subscriptions.web"
    opal, root = staff("opal", "view_hidden"), staff("root", "nothing")
    assert opal.get(f"{page}/log/?claim=2").status_code == 403
    assert f"log of {SECRET}" in root.get(f"{page}/log/?claim=2").content.decode()
    Job.objects.filter(pk=job.pk).update(state="running", progress_total=2)
    for address in (f"{page}/live/", f"{queue}/running/"):
        response = opal.get(address)
        assert response.status_code == 200
        assert SECRET not in response.content.decode()
        assert SECRET in root.get(address).content.decode()
