"""Pages along the id: each row is on one page, forwards and backwards."""

import pytest
from django.test import Client

from tailrace.events.models import Event
from tailrace.jobs.platform.admin.lists.pagination import KeysetAdmin
from tests.jobs import operators

pytestmark = pytest.mark.django_db
EVENTS = "/admin/tailrace_events/event/"


@pytest.fixture
def reader() -> Client:
    Event.objects.bulk_create(
        Event(source="test", source_id=str(n), type="operators.lamp_lit")
        for n in range(2 * KeysetAdmin.list_per_page + 20)
    )
    return operators.client("reader", "tailrace_events.view_event")


def _page(client: Client, address: str) -> tuple[list[int], str, str]:
    changes = client.get(EVENTS + address).context["cl"]
    return [row.pk for row in changes.result_list], changes.newer_url, changes.older_url


def test_each_row_is_on_one_page_in_both_directions(reader: Client) -> None:
    newest, newer, older = _page(reader, "")
    assert (len(newest), newer) == (KeysetAdmin.list_per_page, "")
    middle, _newer, older = _page(reader, older)
    last, newer, end = _page(reader, older)
    assert end == ""
    everything = newest + middle + last
    assert everything == sorted(Event.objects.values_list("pk", flat=True), reverse=True)
    back, newer, _older = _page(reader, newer)
    assert back == middle
    assert _page(reader, newer)[0] == newest


def test_a_filter_starts_at_the_newest_page_again(reader: Client) -> None:
    older = _page(reader, "")[2]
    page = reader.get(EVENTS + older).content.decode()
    assert "?problem=flagged" in page
    assert f"{older[1:]}&amp;problem=flagged" not in page


@pytest.mark.parametrize("anchor", ["none", "-99999999999999999999", "99999999999999999999", "0"])
def test_an_invalid_page_number_is_harmless(reader: Client, anchor: str) -> None:
    assert reader.get(f"{EVENTS}?p={anchor}").status_code == 200


@pytest.mark.parametrize("query", ["type=nothing", "state=nothing", "q=99999999999999999999"])
def test_an_invalid_filter_finds_nothing(reader: Client, query: str) -> None:
    assert _page(reader, "?" + query)[0] == []
