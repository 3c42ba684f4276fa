"""How other apps add to the API's scopes and to the head of a person's pages."""

import pytest

from subscriptions import navigation, tokens
from tests.subscriptions.browsing import Visitor
from tests.subscriptions.stage import person


def test_a_scope_has_one_meaning(monkeypatch) -> None:
    monkeypatch.setattr(tokens, "SCOPES", dict(tokens.SCOPES))
    tokens.offer("plays:read", "read plays")
    tokens.offer("plays:read", "read plays")
    assert tokens.SCOPES["plays:read"] == "read plays"
    with pytest.raises(ValueError, match="'plays:read' means already: read plays"):
        tokens.offer("plays:read", "read and write plays")


@pytest.mark.django_db
def test_an_offered_scope_can_be_chosen_and_used(monkeypatch) -> None:
    monkeypatch.setattr(tokens, "SCOPES", dict(tokens.SCOPES))
    ann = Visitor(person("ann"))
    assert "plays:read: read plays" not in ann.told("/me/preferences")
    tokens.offer("plays:read", "read plays")
    assert "plays:read: read plays" in ann.told("/me/preferences")
    assert tokens.make(ann.user, "x", ["plays:read"])[0].scopes == ["plays:read"]


@pytest.mark.django_db
def test_an_offered_link_stands_in_the_head(monkeypatch) -> None:
    monkeypatch.setattr(navigation, "_entries", {})
    ann = Visitor(person("ann"))
    assert "Backstage" not in ann.told("/me/feeds")
    navigation.offer("Backstage", "admin:index")
    assert '<a href="/admin/">Backstage</a>' in ann.get("/me/feeds").content.decode()
