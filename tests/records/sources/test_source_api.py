"""Sources in the API."""

import pytest

from tailrace.domains.records.models import Deposition, Source
from tailrace.domains.records.sources.requests import PULL, schedule_name
from tailrace.events.models import Event
from tailrace.jobs.models import Schedule
from tests.records.kit import source
from tests.records.sources.test_source_pages import MAY
from tests.web.program import Program, problem, program

pytestmark = pytest.mark.django_db
SOURCES = "/records/sources"
KEY = {"headers": {"Idempotency-Key": "once"}}


@pytest.fixture
def curator() -> Program:
    return program("curator", "records:read_sources", "records:write_sources", may=MAY)


def test_a_source_is_tried_made_pulled_changed_and_paused(curator, feed, run_jobs) -> None:
    feed.add("1", title="Snow depth", creators=["Novak, Ana"])
    feed.add("2", title="No creator")
    body = {"kind": "json", "address": feed.url, "settings": {"cursor_parameter": "cursor"}}
    trial = curator.post(f"{SOURCES}/try", body).json()
    assert (trial["problem"], trial["read"], trial["submitted"], trial["total"]) == ("", 2, 2, 2)
    first, second = trial["records"]
    assert (first["identifier"], first["is_new"], first["problems"]) == ("1", True, [])
    assert second["problems"][0]["field"] == "creators"
    assert not Deposition.objects.exists()

    made = curator.post(SOURCES, {**body, "name": "library"}, **KEY)
    again = curator.post(SOURCES, {**body, "name": "library"}, **KEY)
    assert (made.status_code, again.json()) == (201, made.json())
    row = Source.objects.get()
    assert made.json()["state"] == "new"
    assert made.json()["next_pull_at"]
    path = f"{SOURCES}/{row.pk}"
    pulled = curator.post(f"{path}/pull", **KEY | {"headers": {"Idempotency-Key": "pull"}})
    assert Event.objects.get(pk=pulled.json()["event"]).actor == "curator"
    run_jobs(PULL)
    shown = curator.get(path).json()
    assert (shown["state"], shown["records_read"], shown["late_seconds"]) == ("up to date", 2, None)
    assert (shown["depositions"], shown["address"]) == ({"submitted": 2}, feed.url)
    assert shown["cursor"]["next"] == "2"

    changed = curator.patch(path, {"cron": "0 5 * * *"}).json()
    assert (changed["cron"], changed["cursor"]) == ("0 5 * * *", shown["cursor"])
    assert Schedule.objects.get(name=schedule_name(row.pk)).cron == "0 5 * * *"
    assert curator.post(f"{path}/pause").json()["is_active"] is False
    problem(curator.post(f"{path}/pull"), 409)
    problem(curator.post(f"{path}/restart"), 409)
    row.refresh_from_db()
    assert row.cursor is not None, "a restart that is refused changes nothing"
    assert curator.post(f"{path}/resume").json()["next_pull_at"]
    assert curator.post(f"{path}/restart").status_code == 202
    assert curator.get(path).json()["cursor"] is None


def test_sources_are_listed_newest_first(curator) -> None:
    rows = [source(name) for name in ("a", "b", "c")]
    listed = [item["id"] for item in curator.all(SOURCES, limit=2)]
    assert listed == [row.pk for row in reversed(rows)]


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"address": "https://10.0.0.1/feed"}, "#/address"),
        ({"kind": "gopher"}, "#/kind"),
        ({"settings": {"colour": 1}}, "#/settings"),
        ({"cron": "at noon"}, "#/cron"),
        ({"name": "Two words"}, "#/name"),
        ({"name": "there"}, "#/name"),
        ({"cursor": {}}, "#/cursor"),
    ],
)
def test_what_is_wrong_is_named_by_its_pointer(curator, change, pointer) -> None:
    source("there")
    body = {"name": "library", "kind": "json", "address": "https://example.org/feed"} | change
    answer = problem(curator.post(SOURCES, body), 422, "invalid")
    assert answer["errors"][0]["pointer"] == pointer
    assert Source.objects.count() == 1
