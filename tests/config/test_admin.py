"""The admin as a whole: every list and form of every app opens, in unfold's style."""

import re
from importlib.resources import files

import pytest
from django.contrib import admin
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from unfold.admin import ModelAdmin

from tests.kit import ROOT

pytestmark = pytest.mark.django_db
MODELS = sorted(admin.site._registry, key=lambda model: model._meta.label_lower)


@pytest.fixture
def root() -> Client:
    client = Client()
    client.force_login(User.objects.create_superuser("root"))
    return client


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model._meta.label_lower)
def test_each_list_and_form_comes_up(root: Client, model: type) -> None:
    assert isinstance(admin.site._registry[model], ModelAdmin)
    name = f"admin:{model._meta.app_label}_{model._meta.model_name}"
    assert root.get(reverse(f"{name}_changelist")).status_code == 200
    assert root.get(reverse(f"{name}_add")).status_code in (200, 403)


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE", "OPTIONS"])
def test_pages_take_no_other_method_than_get_and_post(root: Client, method: str) -> None:
    for name in ("index", "tailrace_jobs_job_changelist", "auth_user_add"):
        assert root.generic(method, reverse(f"admin:{name}")).status_code == 405
    assert Client().generic(method, reverse("admin:index")).status_code == 302


def test_the_frame_of_all_pages_is_unfolds_with_a_main_part() -> None:
    """If this fails after an update of unfold, copy its file anew, with `<main>` as before."""
    theirs = (files("unfold") / "templates/admin/base.html").read_text()
    ours = (ROOT / "config/pages/templates/admin/base.html").read_text()
    ours = re.sub(r"{% comment %}.*?{% endcomment %}\n", "", ours)
    assert ours != theirs
    assert ours.replace('<main id="main"', '<div id="main"').replace("</main>", "</div>") == theirs


def test_the_sidebar_shows_what_one_may_see(root: Client) -> None:
    page = root.get(reverse("admin:index")).content.decode()
    for words in ("Overview", "Queues", "Sweep runs", "Users"):
        assert words in page
    staff = Client()
    staff.force_login(User.objects.create_user("staff", is_staff=True))
    page = staff.get(reverse("admin:index")).content.decode()
    assert "Overview" in page
    assert reverse("admin:tailrace_jobs_queue_changelist") not in page


def test_who_logs_in_by_hand_lands_on_the_overview() -> None:
    User.objects.create_superuser("root", password="a long password")
    form = {"username": "root", "password": "a long password"}
    client = Client()
    page = client.get(reverse("admin:login"))["Location"]
    assert page == "/accounts/login/?next=/admin/"
    assert client.post("/accounts/login/", form)["Location"] == "/"


def test_a_user_is_made_and_given_a_password(root: Client) -> None:
    form = {
        "username": "new",
        "usable_password": "true",
        "password1": "a long password",
        "password2": "a long password",
    }
    assert root.post(reverse("admin:auth_user_add"), form).status_code == 302
    assert User.objects.get(username="new").check_password("a long password")
