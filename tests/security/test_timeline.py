"""Where somebody was is nobody else's business: attacks on imports and timelines."""

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from tailrace.domains.timeline.imports import decisions
from tailrace.domains.timeline.models import Device, Import, Point
from tailrace.events.models import Event
from tests.kit import at_once
from tests.timeline.kit import STEPS, gpx, now, numbers, send, track, upload, visible
from tests.web.program import Program, allow, problem, program
from tests.web.visitor import Visitor

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("import_folder")]


@pytest.fixture
def ann() -> Program:
    return program("ann")


@pytest.fixture
def eve() -> Program:
    """The attacker, who may also see all models in the admin but those of timelines."""
    return program("eve")


def promoted(who: Program, run_jobs, file: bytes) -> Import:
    row = upload(who.user, file)
    run_jobs(*STEPS)
    decisions.promote_now(row.pk)
    run_jobs(*STEPS)
    return now(row)


def test_another_users_import_was_seen_or_decided(ann, eve, run_jobs) -> None:
    row = upload(ann.user, gpx(track(5)))
    run_jobs(*STEPS)
    path = f"/imports/{row.pk}"
    problem(eve.get(path), 404)
    for action in ("promote", "cancel", "undo"):
        problem(eve.post(f"{path}/{action}"), 404)
        answer = Visitor(eve.user).post(f"/timeline{path}/{action}")
        assert answer.status_code == 404
    for page in ("", "/part", "/details", "/track"):
        assert Visitor(eve.user).get(f"/timeline{path}{page}").status_code == 404
    assert eve.all("/imports") == []
    assert "track.gpx" not in Visitor(eve.user).text("/timeline/imports")
    assert now(row).state == "grace"


def test_another_users_points_were_read(ann, eve, run_jobs) -> None:
    promoted(ann, run_jobs, gpx(track(5)))
    period = {"first": "2026-03-01", "last": "2026-03-01"}
    for reader in (
        eve,
        program("root", may=("tailrace_timeline.view_import", "tailrace_timeline.view_point")),
    ):
        assert reader.all("/timeline/points", day="2026-03-01") == []
        assert reader.get("/timeline/days", **period).json()["days"] == []
        assert reader.get("/timeline/devices").json() == []
        problem(reader.get("/timeline/export", **period), 404)
        visitor = Visitor(reader.user)
        assert "Your timeline has no points on this day" in visitor.text(
            "/timeline/days/2026-03-01"
        )
        assert visitor.get("/timeline/days/2026-03-01/track").json() == []
        assert visitor.get("/timeline/cells?month=2026-03").json() == []
        assert "Your timeline is empty" in visitor.text("/timeline/")
    assert len(ann.all("/timeline/points", day="2026-03-01")) == 5


def test_events_told_others_when_somebody_moved(ann, eve, run_jobs, clock) -> None:
    promoted(ann, run_jobs, gpx(track(5)))
    body = {"points": [{"lat": 1, "lon": 2, "recorded_at": "2026-03-01T08:00:00Z"}]}
    assert ann.post("/points", body).status_code == 200
    clock.step(6)
    run_jobs("timeline.announce_points")
    events = Event.objects.filter(source="timeline").order_by("type")
    assert [event.type for event in events] == ["timeline.import_promoted", "timeline.points_added"]
    rights = (
        "tailrace_events.view_event",
        "tailrace_events.view_payload",
        "tailrace_timeline.view_import",
    )
    clerk = program("clerk", may=rights)
    owner = Program(ann.user)
    allow(ann.user, *rights)
    for event in events:
        assert not {"lat", "lon"} & event.payload.keys()
        for reader, status in ((eve, 403), (clerk, 404), (owner, 200)):
            assert reader.get(f"/events/{event.pk}").status_code == status, reader.user


def test_a_phones_token_read_the_timeline(ann) -> None:
    phone = Program(ann.user, "timeline:points")
    body = {"points": [{"lat": 1, "lon": 2, "recorded_at": "2026-03-01T08:00:00Z"}]}
    assert phone.post("/points", body).status_code == 200
    problem(phone.get("/timeline/points", day="2026-03-01"), 403, "scope-missing")
    problem(phone.get("/imports"), 403, "scope-missing")
    problem(send(phone, gpx(track(3))), 403, "scope-missing")
    reader = Program(ann.user, "timeline:read")
    problem(reader.post("/points", body), 403, "scope-missing")
    problem(reader.post("/imports/1/undo"), 403, "scope-missing")


def test_points_of_an_import_under_way_were_read(ann, run_jobs) -> None:
    row = promoted(ann, run_jobs, gpx(track(5)))
    Import.objects.filter(pk=row.pk).update(visible=False)
    period = {"first": "2026-03-01", "last": "2026-03-01"}
    assert ann.all("/timeline/points", day="2026-03-01") == []
    assert ann.get("/timeline/days", **period).json()["days"] == []
    file = b"".join(ann.get("/timeline/export", **period).streaming_content)
    assert b"trkpt" not in file
    assert Visitor(ann.user).get("/timeline/days/2026-03-01/track").json() == []
    assert Visitor(ann.user).get("/timeline/cells?month=2026-03").json() == []


def test_a_user_had_more_than_one_may(ann, run_jobs, settings) -> None:
    file = gpx(track(5))
    settings.IMPORT_MAX_UNFINISHED = 2
    assert [send(ann, file).status_code for _ in range(2)] == [202, 202]
    assert "IMPORT_MAX_UNFINISHED" in problem(send(ann, file), 409, "too-many")["detail"]
    for row in Import.objects.all():
        decisions.cancel(row.pk)
    run_jobs(*STEPS)
    settings.IMPORT_MAX_GIGABYTES_PER_USER = (2 * len(file) - 1) / 1e9
    assert send(ann, file).status_code == 202
    assert "MAX_GIGABYTES_PER_USER" in problem(send(ann, file), 409, "too-many")["detail"]
    settings.IMPORT_MAX_GIGABYTES_PER_USER = 1.0
    settings.TIMELINE_MAX_DEVICES_PER_USER = 1
    assert "DEVICES" in problem(send(ann, file, device="second"), 409, "too-many")["detail"]
    body = {"points": [{"lat": 1, "lon": 2, "recorded_at": "2026-03-01T08:00:00Z"}]}
    problem(ann.post("/points", {**body, "device": "third"}), 409, "too-many")
    settings.TIMELINE_MAX_POINTS_PER_USER = 3
    assert ann.post("/points", body).status_code == 200
    run_jobs(*STEPS)
    row = Import.objects.latest("pk")
    assert (row.state, row.staged) == ("needs_decision", 2), "the two that are left"
    decisions.promote_now(row.pk)
    run_jobs(*STEPS)
    assert numbers(row) == (2, 0, 0)
    body["points"][0]["lat"] = 3
    assert "POINTS_PER_USER" in problem(ann.post("/points", body), 409, "too-many")["detail"]
    assert "POINTS_PER_USER" in problem(send(ann, file), 409, "too-many")["detail"]
    settings.IMPORT_MAX_PER_USER = 3
    assert "IMPORT_MAX_PER_USER" in problem(send(ann, file), 409, "too-many")["detail"]


@pytest.mark.django_db(transaction=True)
def test_uploads_at_once_had_no_limit_and_the_same_points_twice(ann, run_jobs, settings) -> None:
    settings.IMPORT_MAX_UNFINISHED = 3
    file = gpx(track(50))
    answers = at_once(5, lambda number: send(Program(ann.user), file).status_code)
    assert sorted(answers) == [202, 202, 202, 409, 409]
    run_jobs(*STEPS)
    rows = list(Import.objects.all())
    for row in rows:
        decisions.promote_now(row.pk)
    at_once(2, lambda number: run_jobs("timeline.promote"))
    run_jobs(*STEPS)
    assert sorted(numbers(row)[0] for row in rows) == [0, 0, 50]
    assert visible(ann.user) == Point.objects.count() == 50


@pytest.mark.django_db(transaction=True)
def test_cancelled_and_promoted_at_the_same_moment(ann, run_jobs) -> None:
    for _ in range(4):
        row = upload(ann.user, gpx(track(5)))
        run_jobs(*STEPS)
        before = visible(ann.user)

        def decide(number: int, id: int = row.pk) -> str:
            try:
                if number:
                    decisions.cancel(id)
                else:
                    decisions.promote_now(id)
                    run_jobs("timeline.promote")
            except decisions.NotNow as error:
                return str(error)
            return ""

        at_once(2, decide)
        run_jobs(*STEPS)
        state = now(row).state
        assert state in ("cancelled", "completed")
        if state == "cancelled":
            assert visible(ann.user) == before
        else:
            assert sum(numbers(row)) == 5


def test_an_archive_member_or_file_name_ran_a_script(ann, run_jobs) -> None:
    name = "<script>alert(1)</script>.gpx"
    row = upload(ann.user, gpx([*track(2), (None, 1.0, 2.0)]), name=name)
    run_jobs(*STEPS)
    for page in ("/timeline/imports", f"/timeline/imports/{row.pk}"):
        assert b"<script>alert" not in Visitor(ann.user).get(page).content
    body = {"points": [{"lat": 1, "lon": 2, "recorded_at": "2026-03-01T08:00:00Z"}]}
    ann.post("/points", {**body, "device": "</name><evil/>"})
    answer = ann.get(
        "/timeline/export", first="2026-03-01", last="2026-03-01", device="</name><evil/>"
    )
    assert b"<evil" not in b"".join(answer.streaming_content)


def test_a_body_without_a_file_or_with_several(ann) -> None:
    files = [SimpleUploadedFile(name, gpx(track(2))) for name in ("a.gpx", "b.gpx")]
    for data in ({}, {"file": files}, {"other": files[0]}, {"file": "text"}):
        problem(ann.client.post("/api/imports", data), 422, "invalid")
    problem(send(ann, b""), 422, "invalid")
    problem(send(ann, gpx(track(2)), device="x" * 101), 422, "invalid")
    assert not Import.objects.exists()


def test_another_users_device_was_seen_renamed_merged_or_deleted(ann, eve, run_jobs) -> None:
    point = {"lat": 1, "lon": 2, "recorded_at": "2026-03-01T08:00:00Z"}
    body = {"device": "ann's phone", "points": [point]}
    assert ann.post("/points", body).status_code == 200
    assert eve.post("/points", {"device": "mine", "points": [point]}).status_code == 200
    theirs, mine = (Device.objects.get(user=who.user).pk for who in (ann, eve))
    root = program("root", may=("tailrace_timeline.change_device", "tailrace_timeline.view_device"))
    for attacker in (eve, root):
        path, browser = f"/timeline/devices/{theirs}", Visitor(attacker.user)
        problem(attacker.patch(path, {"name": "x"}), 404)
        problem(attacker.post(f"{path}/merge", {"into": mine}), 404)
        problem(attacker.post(f"/timeline/devices/{mine}/merge", {"into": theirs}), 404)
        problem(attacker.delete(f"{path}?with_points=true"), 404)
        assert browser.get(path).status_code == browser.get(f"{path}/delete").status_code == 404
        assert browser.post(path, {"name": "x"}).status_code == 404
        assert browser.post(f"{path}/delete").status_code == 404
        assert browser.post(f"{path}/merge", {"into": mine}).status_code == 404
        assert "ann's" not in browser.text("/timeline/devices")
    answer = Visitor(eve.user).post(f"/timeline/devices/{mine}/merge", {"into": theirs})
    assert answer.status_code == 404
    run_jobs("timeline.remove_device")
    assert (visible(ann.user), visible(eve.user)) == (1, 1)
    assert Device.objects.get(pk=theirs).name == "ann's phone"


def test_a_token_without_the_scope_deleted_a_device(ann) -> None:
    body = {"points": [{"lat": 1, "lon": 2, "recorded_at": "2026-03-01T08:00:00Z"}]}
    assert ann.post("/points", body).status_code == 200
    id = Device.objects.get().pk
    for scopes in (("timeline:points",), ("timeline:read", "timeline:import")):
        weak = Program(ann.user, *scopes)
        problem(weak.delete(f"/timeline/devices/{id}?with_points=true"), 403, "scope-missing")
        problem(weak.patch(f"/timeline/devices/{id}", {"name": "x"}), 403, "scope-missing")
        problem(weak.post(f"/timeline/devices/{id}/merge", {"into": id}), 403, "scope-missing")


def test_a_name_of_a_device_was_markup(ann) -> None:
    name = "<script>alert(1)</script>"
    body = {"points": [{"lat": 1, "lon": 2, "recorded_at": "2026-03-01T08:00:00Z"}]}
    assert ann.post("/points", {"device": name, **body}).status_code == 200
    id = Device.objects.get().pk
    for page in ("", f"/{id}", f"/{id}/delete"):
        html = Visitor(ann.user).get(f"/timeline/devices{page}").content.decode()
        assert "alert(1)" in html
        assert name not in html
