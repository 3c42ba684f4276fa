"""What staff read letter by letter through the admin's query string: columns they may not see."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.admin.exceptions import DisallowedModelAdminLookup
from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.auth.models import AnonymousUser, User
from django.db.models import Field, Model
from django.http import HttpRequest
from django.test import Client, RequestFactory

from tailrace.events.models import Event
from tailrace.jobs.models import Job
from tailrace.jobs.platform.admin.base import ModelAdmin
from tests.jobs import operators

pytestmark = pytest.mark.django_db
SITE = admin.site._registry
LOOKUPS = (
    "", "__exact", "__startswith", "__contains", "__regex", "__gt", "__lte", "__in", "__isnull",
    "__has_key", "__len", "__year",
)  # fmt: skip
DECLARED = {
    "auth.group": set(),
    "auth.user": {
        "is_staff__exact", "is_staff__isnull", "is_superuser__exact", "is_superuser__isnull",
        "is_active__exact", "is_active__isnull", "groups__id__exact", "groups__isnull",
    },
    "tailrace_builds.binary": set(),
    "tailrace_builds.package": set(),
    "tailrace_builds.packagelink": set(),
    "tailrace_builds.project": set(),
    "tailrace_builds.projectlogentry": set(),
    "tailrace_builds.roleholder": set(),
    "tailrace_builds.tokenholder": set(),
    "tailrace_builds.watch": set(),
    "django_celery_beat.clockedschedule": set(),
    "django_celery_beat.crontabschedule": set(),
    "django_celery_beat.intervalschedule": set(),
    "django_celery_beat.periodictask": {
        "enabled__exact", "enabled__isnull", "one_off__exact", "one_off__isnull", "task",
        "task__isnull", "start_time__gte", "start_time__lt", "start_time__isnull",
        "last_run_at__gte", "last_run_at__lt", "last_run_at__isnull",
    },
    "django_celery_beat.solarschedule": set(),
    "tailrace_events.event": {"type", "state", "recorded", "problem"},
    "tailrace_jobs.breaker": set(),
    "tailrace_jobs.failuregroup": {"jobs", "queue", "silenced", "assigned"},
    "tailrace_jobs.flow": {"state"},
    "tailrace_jobs.job": {"queue", "state", "lane", "event", "flow", "failure", "created"},
    "tailrace_jobs.queue": {"state"},
    "tailrace_jobs.schedule": {"enabled", "queue"},
    "tailrace_jobs.slot": {"outcome"},
    "tailrace_jobs.sweeprun": {"invariant", "outcome", "found"},
    "tailrace_photos.gathering": {"state"},
    "tailrace_photos.photo": {"state"},
    "tailrace_protection.alert": {"severity"},
    "tailrace_protection.breach": set(),
    "tailrace_protection.exposure": {"severity", "state"},
    "tailrace_protection.propertychange": {"severity"},
    "tailrace_protection.recording": set(),
    "tailrace_protection.removalrequest": {"state"},
    "tailrace_protection.report": set(),
    "tailrace_protection.watchedproperty": set(),
    "tailrace_protection.watchlistitem": set(),
    "tailrace_records.deposition": {"state"},
    "tailrace_records.record": set(),
    "tailrace_records.source": set(),
    "tailrace_subscriptions.apitoken": {"revoked_at__isempty"},
    "tailrace_subscriptions.block": set(),
    "tailrace_subscriptions.eventsubscription": {
        "channel__exact", "channel__isnull", "state__exact", "state__isnull",
        "role", "role__isnull",
    },
    "tailrace_subscriptions.feed": {"revoked_at__isempty"},
    "tailrace_subscriptions.feeditem": set(),
    "tailrace_subscriptions.groupaddress": set(),
    "tailrace_subscriptions.notification": set(),
    "tailrace_subscriptions.plansubscription": {"status"},
    "tailrace_timeline.import": {"state"},
}  # fmt: skip
"""What a query string may ask, by the model's label."""


def columns(model: type[Model], depth: int = 2) -> Iterator[str]:
    """Yield the names of all columns of the model, and of those of the models it leads to."""
    for field in model._meta.get_fields():
        yield field.name
        if isinstance(field, Field):
            yield field.attname
        if depth > 1 and field.related_model not in (None, model):
            assert isinstance(field.related_model, type)
            for further in columns(field.related_model, depth - 1):
                yield f"{field.name}__{further}"


def asked(user: Any, model_admin: Any, query: dict[str, str]) -> Any:
    """Return the change list for a query string; raise what Django makes of it."""
    request: HttpRequest = RequestFactory().get("/", query)
    request.user = user
    return model_admin.get_changelist_instance(request)


@pytest.mark.parametrize("model", SITE, ids=lambda model: model._meta.label_lower)
def test_no_column_answers_a_query_that_no_filter_declares(
    model: type[Model], django_assert_max_num_queries: Any
) -> None:
    model_admin: Any = SITE[model]
    assert isinstance(model_admin, ModelAdmin)
    root = User(username="root", is_superuser=True, is_active=True, is_staff=True)
    declared = DECLARED.get(model._meta.label_lower, set())
    answered = set()
    for column in dict.fromkeys(columns(model)):
        for lookup in LOOKUPS:
            name = f"{column}{lookup}"
            request = RequestFactory().get("/", {name: "x"})
            request.user = root
            request.__dict__[f"_declared_by_{id(model_admin)}"] = DECLARED_OF[model]
            if model_admin.lookup_allowed(name, "x", request):
                answered.add(name)
    assert answered <= declared
    assert DECLARED_OF[model] == declared


@pytest.fixture(autouse=True)
def _declared() -> None:
    """What the filters declare is worked out once per model, as it is once per request."""
    if not DECLARED_OF:
        request = RequestFactory().get("/")
        request.user = AnonymousUser()
        for model, model_admin in SITE.items():
            DECLARED_OF[model] = frozenset(model_admin._declared(request))  # type: ignore[attr-defined]


DECLARED_OF: dict[type[Model], frozenset[str]] = {}

ATTACKS = [
    (Event, "payload__reason__startswith"),
    (Event, "payload__contains"),
    (Event, "cause__payload__reason"),
    (Event, "jobs__payload__x"),
    (Event, "source_id__regex"),
    (Event, "recorded_at__year"),
    (Job, "payload__x__startswith"),
    (Job, "result__startswith"),
    (Job, "error__contains"),
    (Job, "progress_note__gt"),
    (Job, "event__payload__reason__startswith"),
    (Job, "event__subject__startswith"),
    (Job, "attempts__traceback__contains"),
    (User, "password__startswith"),
    (User, "email__startswith"),
    (User, "groups__name__startswith"),
    (User, "logentry__change_message__contains"),
]


@pytest.mark.parametrize(("model", "lookup"), ATTACKS, ids=str)
def test_a_lookup_of_a_hidden_column_is_refused(model: type[Model], lookup: str) -> None:
    event = Event.objects.create(
        source="x", source_id="1", type="operators.lamp_lit", payload={"reason": "gold"}
    )
    operators.job("failed", event=event, payload={"x": "gold"}, result="gold", error="gold")
    root = User.objects.create_superuser("root", "root@example.org", "gold")
    client = Client()
    client.force_login(root)
    address = f"/admin/{model._meta.app_label}/{model._meta.model_name}/"
    answers = [client.get(address, {lookup: value}) for value in ("gold", "lead")]
    assert [answer.status_code for answer in answers] == [400, 400]
    assert answers[0].content == answers[1].content
    with pytest.raises(DisallowedModelAdminLookup):
        asked(root, SITE[model], {lookup: "gold"})


@pytest.mark.parametrize("field", ["password", "email", "username", "user__password"])
def test_rows_are_not_named_by_other_columns(field: str) -> None:
    root = User.objects.create_superuser("root", "root@example.org", "gold")
    client = Client()
    client.force_login(root)
    for page in ("", "add/", f"{root.pk}/change/", f"{root.pk}/delete/"):
        answer = client.get(f"/admin/auth/user/{page}", {"_to_field": field})
        assert answer.status_code == 400, page


def test_the_order_is_that_of_a_declared_column() -> None:
    """`?o=` counts the columns of the list: no number reaches another one."""
    first = User.objects.create_superuser("ann", "z@example.org", "b")
    User.objects.create_superuser("bob", "a@example.org", "a")
    for number in ("99", "-99", "password", "-password", "payload", "email"):
        for model_admin in SITE.values():
            ordered = asked(first, model_admin, {"o": number}).queryset.query.order_by
            assert not {"password", "payload", "email"} & {name.lstrip("-") for name in ordered}
        users = asked(first, SITE[User], {"o": number}).result_list
        assert list(users) == list(asked(first, SITE[User], {"o": "98"}).result_list)


@pytest.mark.parametrize("query", ["_popup=1", "_facets=1", "date_hierarchy=x", "all=", "e=1"])
def test_other_parameters_of_django_show_the_same_rows(query: str) -> None:
    root = User.objects.create_superuser("root")
    name, _, value = query.partition("=")
    for model_admin in (SITE[User], SITE[Job], SITE[Event]):
        plain = list(asked(root, model_admin, {}).result_list)
        try:
            result = asked(root, model_admin, {name: value})
        except (DisallowedModelAdminLookup, IncorrectLookupParameters):
            continue
        assert list(result.result_list) == plain


def test_no_list_has_a_date_hierarchy_and_no_search_compares_hidden_columns() -> None:
    hidden = {"payload", "result", "error", "progress_note", "password", "details", "token_hash"}
    for model, model_admin in SITE.items():
        assert model_admin.date_hierarchy is None
        searched = {part for name in model_admin.search_fields for part in name.split("__")}
        assert not searched & hidden, model


def test_the_jobs_of_one_event_are_a_declared_filter() -> None:
    event = Event.objects.create(source="x", source_id="1", type="operators.lamp_lit")
    job = operators.job("failed", event=event)
    operators.job("failed")
    client = operators.client("reader", "tailrace_jobs.view_job")

    def ids(value: Any) -> list[int]:
        answer = client.get("/admin/tailrace_jobs/job/", {"event": value})
        return [row.pk for row in answer.context["cl"].result_list]

    assert ids(event.pk) == [job.pk]
    assert ids("x") == ids("9" * 30) == []
