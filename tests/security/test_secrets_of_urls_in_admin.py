"""What staff who may only view got of secrets in URLs, on any page of the admin."""

from datetime import date
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.auth.models import Permission, User
from django.contrib.postgres.fields import ArrayField
from django.db.models import (
    CharField,
    DateField,
    DateTimeField,
    DecimalField,
    Field,
    FloatField,
    ForeignKey,
    IntegerField,
    JSONField,
    Model,
    TextField,
)
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from tailrace.domains.records.models import Source

pytestmark = pytest.mark.django_db
SECRETS = ("PLANTED1", "PLANTED2")
URL = "https://u:{}@host.example/?key={}".format(*SECRETS)
SHOWN = "https://***@host.example/?key=***"
Rows = dict[type[Model], Model]

EXEMPT = {
    "names of people and groups, which pages link to": {
        "auth.User.username", "auth.Group.name", "tailrace_jobs.Flow.paused_by",
        "tailrace_jobs.Flow.cancelled_by",
    },
    "names in the code, by which lists are filtered": {
        "django_celery_beat.PeriodicTask.task", "tailrace_jobs.Schedule.handler",
        "tailrace_jobs.FailureGroup.handler", "tailrace_jobs.Job.handler",
        "tailrace_jobs.Job.flow_name", "tailrace_events.Event.type",
        "tailrace_subscriptions.EventSubscription.role",
        "tailrace_subscriptions.EventSubscription.event_type",
        "tailrace_subscriptions.Notification.role",
    },
    "keys, which are in the addresses of pages": {
        "tailrace_jobs.Queue.name", "tailrace_jobs.Breaker.name",
    },
    "names of rows that other rows link to": {
        "tailrace_jobs.Schedule.name", "tailrace_builds.Package.project",
        "tailrace_builds.Package.name", "tailrace_subscriptions.Plan.name",
        "tailrace_protection.Breach.title",
    },
    "stored as it may be shown": {"tailrace_protection.WatchlistItem.masked"},
}  # fmt: skip
"""Columns in which nothing is planted, by the reason."""
NOT_PLANTED = set().union(*EXEMPT.values())
VALUES: dict[str, dict[str, Any]] = {
    "auth.User": {"username": "ann"},
    "tailrace_events.Event": {"type": "sandbox.happened"},
    "tailrace_jobs.Queue": {"name": "test.gone"},
    "tailrace_jobs.Job": {"handler": "test.work", "done_on": None, "state": "failed"},
    "tailrace_jobs.FailureGroup": {"id": 1, "handler": "test.work"},
    "tailrace_jobs.Schedule": {"handler": "test.work", "cron": ""},
    "tailrace_subscriptions.EventSubscription": {"event_type": "*", "role": "owner"},
    "tailrace_subscriptions.Block": {"blocked": lambda: User.objects.create(username="bob").pk},
    "tailrace_subscriptions.Notification": {"user": lambda: User.objects.get(username="ann").pk},
    "tailrace_subscriptions.PlanSubscription": {"grace_until": None},
    "tailrace_builds.RoleHolder": {"group": ""},
    "tailrace_builds.Watch": {"request": None},
    "tailrace_builds.TokenHolder": {"group": None},
    "tailrace_protection.WatchedProperty": {"block": None, "lot": None},
}  # fmt: skip
"""Values that constraints require, by model and field."""


def row_of(model: type[Model], rows: Rows) -> Model:
    """Return the row of this model in `rows`. If there is none, insert one with URL in its text
    columns, and the rows that it refers to."""
    if model not in rows:
        values = {
            field.attname: value
            for field in model._meta.concrete_fields
            if (value := value_of(field, rows)) is not None
        }
        rows[model] = row = model(**values)
        row.save_base(raw=True, force_insert=True)
    return rows[model]


def value_of(field: Field[Any, Any], rows: Rows) -> Any:
    """Return the value for the field of a planted row; None: its default, or NULL."""
    given = VALUES.get(field.model._meta.label, {})
    if field.name in given:
        value = given[field.name]
        return value() if callable(value) else value
    if isinstance(field, ForeignKey):
        return None if field.null else row_of(field.related_model, rows).pk
    if field.choices:
        has_value = field.has_default() or field.null
        return None if has_value else field.choices[0][0]  # type: ignore[index]
    match field:
        case TextField() | CharField() if f"{field.model._meta.label}.{field.name}" in NOT_PLANTED:
            return field.name
        case TextField() | CharField():
            return URL if (field.max_length or len(URL)) >= len(URL) else "x"
        case JSONField():
            return {"url": URL, URL: [URL]}
        case ArrayField():
            return [URL]
        case DateTimeField():
            return timezone.now()
        case DateField():
            return date(2026, 1, 1)
        case IntegerField() | FloatField() | DecimalField() if not field.primary_key:
            return 1
    return None


def staff(*permissions: str) -> Client:
    user = User.objects.create_user("viewer", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=permissions))
    client = Client()
    client.force_login(user)
    return client


def pages_of(client: Client, row: Model) -> dict[str, str]:
    """Return the list of the row's model and the page of the row, by their addresses. The history
    of a row is a page of Django that is the same for all models."""
    name = f"admin:{row._meta.app_label}_{row._meta.model_name}"
    pages = {}
    for page, args in (("changelist", []), ("change", [row.pk])):
        answer = client.get(address := reverse(f"{name}_{page}", args=args))
        assert answer.status_code == 200, address
        pages[address] = answer.content.decode()
    return pages


def test_no_page_shows_a_secret_of_a_url_to_those_who_may_only_view() -> None:
    models = list(admin.site._registry)
    rows: Rows = {}
    for model in models:
        row_of(model, rows)
    own = [f"view_{model._meta.model_name}" for model in models]
    client = staff(*own, "view_hidden")
    pages = {k: text for model in models for k, text in pages_of(client, rows[model]).items()}
    leaks = [(address, s) for address, text in pages.items() for s in SECRETS if s in text]
    assert leaks == []
    assert sum(SHOWN in text for text in pages.values()) > len(models) / 2


def test_each_exempt_column_exists() -> None:
    columns = {
        f"{model._meta.label}.{field.name}"
        for model in admin.site._registry
        for field in model._meta.concrete_fields
    }
    assert columns >= NOT_PLANTED


def test_who_may_change_a_source_sees_and_keeps_its_secret() -> None:
    url = "https://host.example/?key=PLANTED2"
    source = Source.objects.create(name="library", kind="json", url=url)
    client = staff("view_source", "change_source")
    list_address, address = pages_of(client, source)
    assert "PLANTED2" not in client.get(list_address).content.decode()
    form = client.get(address).context["adminform"].form
    assert form["url"].value() == url
    sent = {name: form[name].value() or "" for name in form.fields} | {"cron": "0 4 * * *"}
    assert client.post(address, sent | {"settings": "{}"}).status_code == 302
    source.refresh_from_db()
    assert (source.url, source.cron) == (url, "0 4 * * *")
