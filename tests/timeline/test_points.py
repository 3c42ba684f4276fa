"""Points that phones send, and how a timeline is read and exported."""

import json
from datetime import UTC, datetime

import pytest

from tailrace.domains.timeline.imports import decisions
from tailrace.domains.timeline.models import Device, Import, Point
from tests.timeline.kit import expected, gpx, now, numbers, send, stored, track, upload, visible
from tests.web.program import Program, problem, program

pytestmark = pytest.mark.django_db


@pytest.fixture
def ann() -> Program:
    return program("ann")


def point(at: str, lat: float = 52.5, lon: float = 13.4, **more: float) -> dict[str, object]:
    return {"lat": lat, "lon": lon, "recorded_at": at, **more}


def test_points_are_seen_at_once_and_once(ann: Program) -> None:
    body = {"device": "phone", "points": [point("2026-03-01T08:00:00Z", speed=1.5)] * 2}
    body["points"].append(point("2026-03-01T09:00:00+01:00", lat=52.6))
    assert ann.post("/points", body).json() == {"inserted": 2, "duplicates": 1, "rejected": {}}
    assert ann.post("/points", body).json() == {"inserted": 0, "duplicates": 3, "rejected": {}}
    items = ann.all("/timeline/points", day="2026-03-01")
    assert [(item["lat"], item["recorded_at"], item["speed"]) for item in items] == [
        (52.5, "2026-03-01T08:00:00Z", 1.5),
        (52.6, "2026-03-01T08:00:00Z", None),
    ]
    assert Device.objects.get().live_points == 2
    days = ann.get("/timeline/days", first="2026-02-01", last="2026-03-31").json()
    assert [(day["day"], day["points"]) for day in days["days"]] == [("2026-03-01", 2)]
    assert [each["name"] for each in ann.get("/timeline/devices").json()] == ["phone"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"points": [point("2026-03-01T08:00:00")]},
        {"points": [point("2026-03-01T08:00:00Z", lat=91)]},
        {"points": [point("2026-03-01T08:00:00Z", lon="x")]},
        {"points": [point("2026-03-01T08:00:00Z")], "user": 1},
        {"points": [point("2026-03-01T08:00:00Z")] * 1001},
        {"points": [], "device": "x" * 101},
        {"points": [point("2026-03-01T08:00:00Z", altitude=1e6 + 1)]},
        {"points": [point("2026-03-01T08:00:00Z", accuracy=1e7 + 1)]},
        {"points": [point("2026-03-01T08:00:00Z", speed=1e5 + 1)]},
        {"points": [point("2026-03-01T08:00:00Z", course=361)]},
    ],
)
def test_what_is_no_point_is_refused(ann: Program, wrong: dict[str, object]) -> None:
    problem(ann.post("/points", wrong), 422, "invalid")
    assert not Point.objects.exists()


def test_a_point_keeps_every_measure_that_is_accepted(ann: Program) -> None:
    measures = {"altitude": 408_000, "accuracy": 1e7, "speed": 1e5, "course": 360}
    ann.post("/points", {"points": [point("2026-03-01T08:00:00Z", **measures)]})
    assert Point.objects.values(*measures).get() == measures


def test_points_too_early_or_too_late_are_rejected_by_reason(ann: Program) -> None:
    body = {"points": [point("1970-01-01T00:00:00Z"), point("2999-01-01T00:00:00Z")]}
    reasons = {"time before 1990": 1, "time more than a day ahead": 1}
    assert ann.post("/points", body).json() == {"inserted": 0, "duplicates": 0, "rejected": reasons}


def test_owntracks(ann: Program) -> None:
    body = {"_type": "location", "lat": 52.5, "lon": 13.4, "tst": 1772352000, "tid": "an"}
    assert ann.post("/points/owntracks", {**body, "acc": 12, "vel": 36, "batt": 80}).json() == []
    assert ann.post("/points/owntracks", {"_type": "transition", "tst": 1}).json() == []
    assert ann.post("/points/owntracks", {**body, "lat": None}).json() == []
    row = Point.objects.select_related("device").get()
    assert (row.device.name, row.accuracy, row.speed) == ("an", 12, 10)
    assert row.recorded_at == datetime(2026, 3, 1, 8, tzinfo=UTC)


def test_gpslogger(ann: Program) -> None:
    body = {"lat": 52.5, "lon": 13.4, "time": "2026-03-01T08:00:00.000Z", "acc": "4.5"}
    answer = ann.post("/points/gpslogger?device=pixel", body).json()
    assert answer == {"inserted": 1, "duplicates": 0, "rejected": {}}
    row = Point.objects.select_related("device").get()
    assert (row.device.name, row.accuracy) == ("pixel", 4.5)
    answer = ann.post("/points/gpslogger", {"lat": "undefined", "lon": 1, "time": "x"}).json()
    assert answer["rejected"] == {"unparsable value": 1}


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"time": "2026-03-01T08:00:00"}, "unparsable value"),  # local time, in an unknown zone
        ({"time": 1772352000000}, "unparsable value"),  # milliseconds
        ({"time": "1e400"}, "unparsable value"),
        ({"time": True}, "unparsable value"),
        ({"time": None}, "no time"),
        ({"lat": "52,5"}, "unparsable value"),
        ({"lat": "5_2"}, "unparsable value"),
        ({"lat": "٥٢"}, "unparsable value"),
        ({"time": "1_772_352_000"}, "unparsable value"),
        ({"lat": ""}, "no coordinates"),
        ({"lon": 181}, "coordinates out of range"),
    ],
)
def test_values_of_phones_are_not_guessed(
    ann: Program, values: dict[str, object], reason: str
) -> None:
    body = {"lat": 52.5, "lon": 13.4, "time": "2026-03-01T08:00:00Z", **values}
    assert ann.post("/points/gpslogger", body).json()["rejected"] == {reason: 1}
    body = {**body, "_type": "location", "tst": body["time"]}
    ann.post("/points/owntracks", body)
    properties = {"timestamp": body["time"]}
    geometry = {"type": "Point", "coordinates": [body["lon"], body["lat"]]}
    ann.post("/points/overland", {"locations": [{"geometry": geometry, "properties": properties}]})
    assert not Point.objects.exists()


def test_gpslogger_sends_seconds_if_it_has_no_time(ann: Program) -> None:
    body = {"latitude": 52.5, "longitude": "13.4", "time": "", "timestamp": "1772352000.5"}
    assert ann.post("/points/gpslogger", body).json()["inserted"] == 1
    assert Point.objects.get().recorded_at == datetime(2026, 3, 1, 8, 0, 0, 500_000, tzinfo=UTC)
    answer = ann.post("/points/gpslogger", [5]).json()
    assert answer["rejected"] == {"unparsable value": 1}


def test_overland(ann: Program) -> None:
    def location(at: str, **more: object) -> dict[str, object]:
        geometry = {"type": "Point", "coordinates": [13.4, 52.5]}
        properties = {"timestamp": at, "speed": -1, "device_id": "iphone", **more}
        return {"type": "Feature", "geometry": geometry, "properties": properties}

    locations = [location("2026-03-01T08:00:00Z"), location(""), {"geometry": None}]
    answer = ann.post("/points/overland", {"locations": locations})
    assert answer.json() == {"result": "ok"}, "or it keeps them on the phone for ever"
    row = Point.objects.select_related("device").get()
    assert (row.device.name, row.speed) == ("iphone", None)
    for wrong in ([], 5, {"locations": 5}, {"locations": [5]}, {"locations": []}):
        assert ann.post("/points/overland", wrong).status_code == 200, wrong


@pytest.mark.parametrize("kind", ["gpx", "geojson"])
def test_an_export_has_all_points_of_a_device(ann: Program, kind: str, run_imports) -> None:
    row = upload(ann.user, gpx(track(40)))
    run_imports()
    decisions.promote_now(row.pk)
    run_imports()
    odd = point("2026-03-01T10:00:00.123456Z", lat=-0.0000001, lon=-179.9999999)
    ann.post("/points", {"points": [odd]})
    ann.post("/points", {"points": [odd], "device": "watch"})
    period = {"first": "2026-03-01", "last": "2026-03-01"}
    answer = ann.get("/timeline/export", **period, format=kind)
    assert answer.status_code == 200
    assert answer["RateLimit"].startswith('"api";r=')
    file = b"".join(answer.streaming_content)
    assert len(stored(ann.user)) == 42
    if kind == "geojson":
        points = json.loads(file)["features"]
        assert len(points) == 41
        assert points[-1]["geometry"]["coordinates"] == [-179.9999999, -0.0000001]
        assert points[-1]["properties"]["time"] == "2026-03-01T10:00:00.123456Z"
    again = upload(ann.user, file)
    run_imports()
    decisions.promote_now(again.pk)
    run_imports()
    assert numbers(again) == (0, 41, 0), now(again).error
    problem(ann.get("/timeline/export", **period, device="nothing"), 404)


def test_points_that_come_while_their_import_is_undone_stay(ann: Program, run_imports) -> None:
    row = upload(ann.user, gpx(track(3)))
    run_imports()
    decisions.promote_now(row.pk)
    run_imports()
    decisions.undo(row.pk)
    at, lat, lon = track(1)[0]
    body = {"points": [point(at.isoformat(), lat=lat, lon=lon)]}
    assert ann.post("/points", body).json()["inserted"] == 1
    assert visible(ann.user) == 1
    run_imports()
    assert stored(ann.user) == expected(track(1))
    assert now(row).removed == 2


def test_an_import_by_the_api(ann: Program, run_imports) -> None:
    answer = send(ann, gpx([*track(5), (None, 1.0, 2.0)]), device="phone")
    assert answer.status_code == 202, answer.content
    reply = answer.json()
    path = f"/imports/{reply['id']}"
    assert (reply["state"], reply["device"], reply["staged"]) == ("queued", "phone", 0)
    problem(ann.post(f"{path}/promote"), 409)
    run_imports()
    reply = ann.get(path).json()
    assert (reply["state"], reply["staged"], reply["rejected"]) == ("grace", 5, 1)
    assert reply["rejected_by_reason"] == {"no time": 1}
    assert reply["first_rejected"][0]["line"] == 7
    assert ann.post(f"{path}/promote").status_code == 200
    run_imports()
    reply = ann.get(path).json()
    assert (reply["state"], reply["inserted"], reply["duplicates"]) == ("completed", 5, 0)
    detail = problem(ann.post(f"{path}/cancel"), 409)["detail"]
    assert detail == "the import was promoted; undo it instead"
    assert ann.post(f"{path}/undo").json()["state"] == "undoing"
    assert [each["id"] for each in ann.all("/imports")] == [Import.objects.get().pk]


def test_days_are_those_of_the_readers_time_zone(ann: Program) -> None:
    ann.patch("/preferences", {"time_zone": "Asia/Tokyo"})
    ann.post("/points", {"points": [point("2026-03-01T20:00:00Z")]})
    days = ann.get("/timeline/days", first="2026-03-01", last="2026-03-02").json()
    assert days["time_zone"] == "Asia/Tokyo"
    assert [day["day"] for day in days["days"]] == ["2026-03-02"]
    problem(ann.get("/timeline/days", first="2026-03-02", last="2026-03-01"), 422, "invalid")
    problem(ann.get("/timeline/days", first="2020-03-02", last="2026-03-01"), 422, "invalid")
