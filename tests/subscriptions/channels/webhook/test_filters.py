"""The filter of an endpoint narrows what it gets, by type and by subject."""

import pytest

from tailrace.events.catalog.topics import family_of
from tailrace.subscriptions.channels.webhook.operations import endpoints, filters
from tailrace.subscriptions.channels.webhook.operations.errors import FilterError
from tests.servers.web import serving
from tests.subscriptions.channels.webhook.kit import BOTH, owner
from tests.subscriptions.sample_domain import Gala, Premiere, publish_event

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize(
    ("pattern", "subject", "is_match"),
    [
        ("devel:*", "devel:faust", True),
        ("devel:*", "home:devel:faust", False),
        ("*faust", "devel:faust", True),
        ("a*b*c", "a1b2c", True),
        ("a*b*c", "acb", False),
        ("ab*ba", "aba", False),
        ("a_%", "abc", False),
        ("a_%", "a_%", True),
        ("a?c", "abc", False),
        ("a?c*", "a?c", True),
        ("a[b]*", "ab", False),
        ("a[b]*", "a[b]c", True),
        ("[!a]", "[!a]", True),
        ("a\\*", "a*", False),
        ("a\\*", "a\\b", True),
        ("Devel:*", "devel:faust", False),
        ("a*", "a\nb", True),
        ("a", "a\n", False),
        ("*" * 100 + "x", "a" * 5000, False),
        ("*a" * 90 + "*b", "a" * 5000, False),
    ],
)
def test_only_the_star_is_special(pattern: str, subject: str, is_match: bool) -> None:
    assert filters.matches(pattern, subject) is is_match


def test_each_endpoint_gets_what_its_filter_lets_through(run_jobs) -> None:
    with serving() as server:
        ann, everything, _ = owner(f"{server.url}/all")
        endpoints.create(ann, f"{server.url}/gala", event_types=["stage.gala"])
        endpoints.create(ann, f"{server.url}/family", event_types=[family_of(Premiere)])
        endpoints.create(ann, f"{server.url}/devel", subject_pattern="devel:*")
        publish_event(Premiere, payload={"title": "devel:faust"})
        publish_event(Gala, payload={"title": "hamlet"})
        run_jobs(*BOTH)
    paths = sorted(request.path for request in server.requests)
    assert paths == ["/all", "/all", "/devel", "/family", "/family", "/gala"]
    assert everything.event_types == []


def test_a_filter_names_what_is_sent() -> None:
    ann, _endpoint, _ = owner("https://example.org/")
    for name, words in (
        ("stage.gal", "did you mean 'stage.gala'"),
        (
            "stage.silence",
            "'stage.silence' is not an event type or family that is sent to webhooks",
        ),
    ):
        with pytest.raises(FilterError, match=words):
            endpoints.create(ann, "https://example.org/", event_types=[name])
    with pytest.raises(FilterError, match="at most 100"):
        filters.checked_types([f"a.b{number}" for number in range(101)])
    with pytest.raises(FilterError, match="at most 200"):
        filters.checked_pattern("x" * 201)
    with pytest.raises(FilterError, match="control characters"):
        filters.checked_pattern("a\0b")
    assert filters.checked_types(["stage.gala", "*"]) == []
