"""What an app declares in its `api` and `menu` modules."""

from collections.abc import Iterator

import pytest
from django.contrib import admin
from django.contrib.admin import sites
from django.test import modify_settings

from tailrace.web.accounts import tokens
from tests.subscriptions.sample_domain import person
from tests.web.plays import api as plays_api
from tests.web.visitor import Visitor


@pytest.fixture
def plays(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Install the app tests.web.plays."""
    for module in (admin, sites):  # unfold makes a new, empty site whenever apps are installed
        monkeypatch.setattr(module, "site", admin.site)
    tokens.scopes.cache_clear()
    with modify_settings(INSTALLED_APPS={"append": "tests.web.plays"}):
        yield
    tokens.scopes.cache_clear()


def test_a_scope_has_one_meaning(plays: None, monkeypatch) -> None:
    assert tokens.scopes()["plays:read"] == "read plays"
    tokens.scopes.cache_clear()
    monkeypatch.setattr(plays_api, "scopes", {"feeds": "read plays"})
    with pytest.raises(ValueError, match="scope 'feeds' has another meaning: list, create"):
        tokens.scopes()


@pytest.mark.django_db
def test_a_declared_scope_can_be_chosen_and_used(plays: None) -> None:
    ann = Visitor(person("ann"))
    assert "plays:read: read plays" in ann.text("/me/preferences")
    assert tokens.make(ann.user, "x", ["plays:read"])[0].scopes == ["plays:read"]


@pytest.mark.django_db
def test_an_unknown_scope_cannot_be_chosen() -> None:
    assert "plays:read: read plays" not in Visitor(person("ann")).text("/me/preferences")


@pytest.mark.django_db
def test_a_declared_link_is_in_the_head(plays: None) -> None:
    page = Visitor(person("ann")).get("/me/feeds").content.decode()
    assert '<a href="/admin/">Backstage</a>' in page


@pytest.mark.django_db
def test_links_of_other_apps_are_not_in_the_head() -> None:
    assert "Backstage" not in Visitor(person("ann")).text("/me/feeds")
