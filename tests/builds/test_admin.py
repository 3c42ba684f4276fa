from datetime import timedelta

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.urls import reverse

from tailrace.db import clock
from tailrace.domains.builds.models import (
    Binary,
    Package,
    PackageLink,
    Project,
    ProjectLogEntry,
    RoleHolder,
    TokenHolder,
    UnreadChange,
    Watch,
)
from tailrace.jobs.models import Breaker
from tests.builds.rows import one_of_each

pytestmark = pytest.mark.django_db


@pytest.fixture
def rows() -> None:
    """One row of each kind."""
    one_of_each()


MODELS = [
    Binary, Breaker, Package, PackageLink, Project, ProjectLogEntry, RoleHolder, TokenHolder,
    UnreadChange, Watch,
]  # fmt: skip


@pytest.mark.parametrize("model", MODELS)
def test_each_list_and_page_opens(admin_client: Client, rows: None, model: type) -> None:
    base = f"admin:{model._meta.label_lower.replace('.', '_')}"
    row = model.objects.get()
    for url in (
        reverse(f"{base}_changelist"),
        reverse(f"{base}_changelist") + "?q=home:alice",
        reverse(f"{base}_change", args=[row.pk]),
    ):
        assert admin_client.get(url).status_code == 200, url


def test_closing_a_breaker_needs_permission_and_is_audited(client: Client, rows: None) -> None:
    url = reverse("admin:tailrace_jobs_breaker_changelist")
    row = Breaker.objects.get()
    assert row.open_until > clock.now() + timedelta(seconds=1)
    user = User.objects.create(username="op", is_staff=True)
    user.user_permissions.add(Permission.objects.get(codename="view_breaker"))
    client.force_login(user)
    post = {"action": "close", "_selected_action": [row.pk]}
    client.post(url, post)
    assert Breaker.objects.get().open_until is not None
    user.user_permissions.add(Permission.objects.get(codename="close_breaker"))
    client.post(url, post)
    assert Breaker.objects.get().open_until is None
    assert LogEntry.objects.get().object_id == row.pk
