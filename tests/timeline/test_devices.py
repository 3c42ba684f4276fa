"""Devices are renamed, merged and deleted; imports that brought nothing leave none."""

import threading
from collections.abc import Callable

import pytest
from django.contrib.auth.models import User
from django.db import connection

from tailrace.domains.timeline.devices import decisions as devices
from tailrace.domains.timeline.devices import removal
from tailrace.domains.timeline.imports import decisions
from tailrace.domains.timeline.invariants import EndedImportsLeaveDevices, RemovedDevicesEnd
from tailrace.domains.timeline.live.receive import store
from tailrace.domains.timeline.models import Device, Import, Place, Point
from tailrace.events.models import Event
from tailrace.jobs.models import Job
from tailrace.web.uploads.errors import QuotaExceeded
from tests.kit import at_once, held, sessions_that_wait, wait_until
from tests.subscriptions.sample_domain import person
from tests.timeline.kit import expected, gpx, now, numbers, stored, track, upload, visible
from tests.web.program import Program, problem
from tests.web.visitor import Visitor

pytestmark = pytest.mark.django_db
RunImports = Callable[[], int]


@pytest.fixture
def ann() -> User:
    return person("ann")


@pytest.fixture
def remove(run_jobs: Callable[..., int]) -> Callable[[], int]:
    return lambda: run_jobs(removal.REMOVE)


def send(user: User, device: str, count: int, first: int = 0) -> int:
    """Let the device send points itself; return how many are new."""
    points = [
        (round(at.timestamp() * 1e6), round(lon * 1e7), round(lat * 1e7), None, None, None, None)
        for at, lat, lon in track(count, first)
    ]
    return store(user, device, points)


def imported(user: User, run_imports: RunImports, count: int, device: str, first: int = 0):
    row = upload(user, gpx(track(count, first)), device)
    run_imports()
    decisions.promote_now(row.pk)
    run_imports()
    return now(row)


def names(user: User) -> list[str]:
    rows = Device.objects.present().filter(user=user)
    return list(rows.order_by("name").values_list("name", flat=True))


def device(user: User, name: str) -> Device:
    return Device.objects.get(user=user, name=name)


def total(user: User) -> int:
    """The points of the user by the counts that the quota adds up."""
    rows = Device.objects.with_counts().filter(user=user)
    return sum(row.point_count for row in rows)


def test_a_failed_and_a_cancelled_import_leave_no_device(ann: User, run_imports) -> None:
    failed = upload(ann, b"nothing", "first")
    cancelled = upload(ann, gpx(track(5)), "second")
    run_imports()
    decisions.cancel(cancelled.pk)
    run_imports()
    assert names(ann) == []
    assert (now(failed).state, now(cancelled).state) == ("failed", "cancelled")
    assert [now(row).device_label for row in (failed, cancelled)] == ["first", "second"]
    assert Visitor(ann).get(f"/timeline/imports/{failed.pk}").status_code == 200
    assert "second" in Visitor(ann).text("/timeline/imports")


def test_fifty_failed_imports_leave_room_for_a_new_phone(ann: User, run_imports, settings) -> None:
    settings.TIMELINE_MAX_DEVICES_PER_USER = 2
    for number in range(3):
        upload(ann, b"nothing", f"device {number}")
        run_imports()
    assert send(ann, "phone", 1) == 1
    assert send(ann, "watch", 1) == 1
    with pytest.raises(QuotaExceeded, match="merge or delete some first"):
        send(ann, "third", 1)


def test_an_undone_import_leaves_a_device_that_has_something_else(ann: User, run_imports) -> None:
    rows = [imported(ann, run_imports, 5, name) for name in ("phone", "watch")]
    send(ann, "watch", 1, first=100)
    for row in rows:
        decisions.undo(row.pk)
    run_imports()
    assert names(ann) == ["watch"]
    assert [now(row).state for row in rows] == ["undone"] * 2
    assert visible(ann) == 1


def test_imports_that_ended_before_are_taken_off_their_devices(
    ann: User, run_imports, clock
) -> None:
    row = upload(ann, b"nothing", "phone")
    run_imports()
    phone = Device.objects.create(user=ann, name="phone")
    Import.objects.filter(pk=row.pk).update(device=phone)
    assert EndedImportsLeaveDevices().find() == []
    clock.step(1000)
    invariant = EndedImportsLeaveDevices()
    assert invariant.repair(invariant.find()) == 1
    run_imports()
    assert names(ann) == []
    assert invariant.find() == []


def test_a_renamed_device_still_gets_what_is_sent_with_the_old_name(ann: User, run_imports) -> None:
    send(ann, "a7", 1)
    devices.rename(ann, device(ann, "a7").pk, "  My   phone ")
    assert send(ann, "a7", 1, first=1) == 1
    imported(ann, run_imports, 3, "a7")
    assert names(ann) == ["My phone"]
    assert visible(ann) == 3
    devices.rename(ann, device(ann, "My phone").pk, "a7")
    assert (names(ann), device(ann, "a7").former_names) == (["a7"], ["My phone"])


def test_a_name_leads_to_the_device_that_got_it_last(ann: User) -> None:
    send(ann, "a", 1)
    send(ann, "b", 1)
    devices.rename(ann, device(ann, "a").pk, "old")
    devices.rename(ann, device(ann, "b").pk, "a")
    send(ann, "a", 1, first=1)
    assert device(ann, "a").live_points == 2
    assert device(ann, "old").former_names == []
    with pytest.raises(devices.NotNow, match="merge the two"):
        devices.rename(ann, device(ann, "a").pk, "old")


def test_merged_devices_have_each_point_once(ann: User, run_imports, remove, monkeypatch) -> None:
    monkeypatch.setattr(removal, "BATCH", 7)
    first = imported(ann, run_imports, 20, "phone")
    second = imported(ann, run_imports, 20, "tablet", first=10)
    send(ann, "phone", 10, first=25)  # five are also in the tablet's file
    send(ann, "tablet", 5, first=33)  # two the phone sent, too
    before = set(stored(ann))
    phone, tablet = device(ann, "phone"), device(ann, "tablet")
    devices.merge(ann, phone.pk, tablet.pk)
    assert visible(ann) == total(ann) == 55, "readers see all points before they are moved"
    remove()
    assert names(ann) == ["tablet"]
    assert stored(ann) == sorted(before) == expected(track(38))
    assert visible(ann) == total(ann) == 38
    assert Import.objects.filter(device=tablet).count() == 2
    assert numbers(first)[0] + numbers(second)[0] + device(ann, "tablet").live_points == 38
    assert Place.objects.filter(device=tablet).exists()
    assert send(ann, "phone", 1, first=500) == 1
    assert names(ann) == ["tablet"], "the phone's name leads to the tablet"
    decisions.undo(second.pk)
    run_imports()
    assert set(expected(track(13, 25))) <= set(stored(ann)), "what the phone sent itself stays"


def test_a_device_is_deleted_with_its_points_and_imports(ann: User, run_imports, remove) -> None:
    row = imported(ann, run_imports, 20, "phone")
    send(ann, "phone", 5, first=100)
    send(ann, "watch", 3)
    phone = device(ann, "phone")
    with pytest.raises(devices.NotNow, match="has points"):
        devices.delete(ann, phone.pk, with_points=False)
    devices.delete(ann, phone.pk, with_points=True)
    assert visible(ann) == 3, "hidden at once"
    assert len(stored(ann)) == 28
    assert send(ann, "phone", 2) == 2, "a new device, although the old one is not gone yet"
    with pytest.raises(decisions.NotNow, match="being merged or deleted"):
        decisions.undo(row.pk)
    remove()
    assert names(ann) == ["phone", "watch"]
    assert len(stored(ann)) == visible(ann) == total(ann) == 5
    assert not Import.objects.exists()
    assert not Place.objects.filter(device=phone.pk).exists()
    events = Event.objects.filter(subject__in=[f"import/{row.pk}", f"device/{phone.pk}"])
    assert events.count() == 2
    assert not events.filter(payload__has_key="user_id").exists()


def test_a_device_with_an_import_under_way_is_neither_merged_nor_deleted(
    ann: User, run_imports
) -> None:
    row = upload(ann, gpx(track(5)), "phone")
    send(ann, "watch", 1)
    phone, watch = device(ann, "phone"), device(ann, "watch")
    for change in (
        lambda: devices.merge(ann, phone.pk, watch.pk),
        lambda: devices.merge(ann, watch.pk, phone.pk),
        lambda: devices.delete(ann, phone.pk, with_points=True),
    ):
        with pytest.raises(devices.NotNow, match=f"import {row.pk} of phone is queued"):
            change()
    with pytest.raises(devices.NotNow, match="into itself"):
        devices.merge(ann, phone.pk, phone.pk)
    with pytest.raises(devices.DeviceNotFound):
        devices.merge(ann, watch.pk, 0)
    assert names(ann) == ["phone", "watch"]


def test_an_import_that_comes_during_a_merge_waits_for_its_end(
    ann: User, run_imports, remove
) -> None:
    send(ann, "phone", 10)
    send(ann, "tablet", 1, first=100)
    devices.merge(ann, device(ann, "phone").pk, device(ann, "tablet").pk)
    row = upload(ann, gpx(track(12)), "phone")
    run_imports()
    decisions.promote_now(row.pk)
    run_imports()
    assert now(row).state == "grace"
    assert now(row).device_label == "tablet"
    with pytest.raises(devices.NotNow, match="being merged into"):
        devices.delete(ann, device(ann, "tablet").pk, with_points=True)
    remove()
    Job.objects.filter(state="pending").update(due_at=now(row).created_at)
    run_imports()
    assert numbers(row) == (2, 10, 0)
    assert visible(ann) == total(ann) == 13


def test_a_lost_job_of_a_removal_is_enqueued_again(ann: User, remove, clock) -> None:
    send(ann, "phone", 10)
    devices.delete(ann, device(ann, "phone").pk, with_points=True)
    Job.objects.filter(handler=removal.REMOVE).delete()
    assert RemovedDevicesEnd().find() == []
    clock.step(1000)
    invariant = RemovedDevicesEnd()
    assert invariant.repair(invariant.find()) == 1
    remove()
    assert not Device.objects.exists()
    assert invariant.find() == []


def test_an_account_is_deleted_during_a_merge(ann: User, remove) -> None:
    from tailrace.domains.timeline.platform.personal_data import delete_some_of

    send(ann, "phone", 10)
    send(ann, "tablet", 5)
    tablet = device(ann, "tablet")
    devices.merge(ann, device(ann, "phone").pk, tablet.pk)
    Point.objects.filter(device=tablet.pk).delete()
    Place.objects.filter(device=tablet.pk).delete()
    tablet.delete()
    remove()
    while delete_some_of(ann.pk):
        pass
    assert not Point.objects.exists()
    assert not Device.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_no_point_is_lost_that_comes_while_its_device_is_merged(
    ann: User, remove, monkeypatch
) -> None:
    """The phone sends while the merge begins and while its job works: all that was answered is in
    the timeline afterwards."""
    monkeypatch.setattr(removal, "BATCH", 50)
    send(ann, "phone", 300)
    send(ann, "tablet", 300, first=150)
    phone, tablet = device(ann, "phone"), device(ann, "tablet")
    begun = threading.Event()

    def work(number: int) -> int:
        if number == 0:
            begun.wait()
            devices.merge(ann, phone.pk, tablet.pk)
            while removal._remove_some(phone.pk):
                pass
            return 0
        answered = 0
        for first in range(1000 * number, 1000 * number + 400, 10):
            answered += send(ann, ("phone", "tablet")[number % 2], 10, first)
            begun.set()
        return answered

    answered = at_once(4, work)
    assert answered == [0, 400, 400, 400]
    assert names(ann) == ["tablet"]
    assert visible(ann) == len(set(stored(ann))) == total(ann) == 450 + 1200


@pytest.mark.django_db(transaction=True)
def test_points_that_come_after_a_deletion_are_those_of_a_new_device(ann: User, remove) -> None:
    """The request waits for the decision, which has locked the device, and then finds no device."""
    send(ann, "phone", 5)
    phone = device(ann, "phone")
    with held("SELECT 1 FROM tailrace_timeline_device FOR UPDATE"):
        threads = [
            threading.Thread(target=_and_close, args=[work])
            for work in (
                lambda: devices.delete(ann, phone.pk, with_points=True),
                lambda: send(ann, "phone", 5, first=2),
            )
        ]
        for waiting, thread in enumerate(threads, start=1):
            thread.start()
            wait_until(lambda waiting=waiting: sessions_that_wait() == waiting)
    for thread in threads:
        thread.join()
    remove()
    assert stored(ann) == expected(track(5, 2))
    assert device(ann, "phone").live_points == 5


def _and_close(work: Callable[[], object]) -> None:
    try:
        work()
    finally:
        connection.close()


def test_devices_on_the_pages(ann: User, run_imports, remove) -> None:
    browser = Visitor(ann)
    assert "No devices yet." in browser.text("/timeline/devices")
    imported(ann, run_imports, 20, "phone")
    send(ann, "watch", 1, first=100)
    phone, watch = device(ann, "phone"), device(ann, "watch")
    assert "phone 20 points · 1 import" in browser.text("/timeline/devices")
    page = f"/timeline/devices/{phone.pk}"
    assert browser.post(page, {"name": "watch"}).status_code == 422
    assert browser.post(page, {"name": "x" * 101}).status_code == 422
    assert browser.post(page, {"name": "mobile"})["Location"] == page
    assert "mobile 20 points · 1 import · also phone" in browser.text("/timeline/devices")
    assert "20 points will be deleted" in browser.text(f"{page}/delete")
    assert browser.post(f"{page}/merge", {"into": phone.pk}).status_code == 404
    answer = browser.post(f"{page}/merge", {"into": ""})
    assert "Choose the device into which mobile is merged." in browser.text(answer["Location"])
    assert browser.post(f"{page}/merge", {"into": watch.pk})["Location"] == "/timeline/devices"
    text = browser.text("/timeline/devices")
    assert "mobile 20 points" in text
    assert "being merged into watch" in text
    assert browser.get(page).status_code == 404
    remove()
    assert "watch 21 points · 1 import · also phone, mobile" in browser.text("/timeline/devices")
    page = f"/timeline/devices/{watch.pk}"
    row = upload(ann, gpx(track(5)), "watch")
    answer = browser.post(f"{page}/delete")
    assert f"Import {row.pk} of watch is queued" in browser.text(answer["Location"])
    decisions.cancel(row.pk)
    assert browser.post(f"{page}/delete")["Location"] == "/timeline/devices"
    assert "being deleted" in browser.text("/timeline/devices")
    remove()
    assert "No devices yet." in browser.text("/timeline/devices")


def test_devices_in_the_api(ann: User, run_imports, remove) -> None:
    client = Program(ann)
    send(ann, "phone", 3)
    send(ann, "watch", 1, first=1)
    [phone, watch] = client.get("/timeline/devices").json()
    assert (phone["name"], phone["point_count"], phone["state"]) == ("phone", 3, "present")
    path = f"/timeline/devices/{phone['id']}"
    problem(client.patch(path, {"name": "watch"}), 409)
    problem(client.patch(path, {"name": "x" * 101}), 422, "invalid")
    assert client.patch(path, {"name": "mobile"}).json()["former_names"] == ["phone"]
    exported = client.get("/timeline/export", first="2026-03-01", last="2026-03-01", device="phone")
    assert b"".join(exported.streaming_content).count(b"<trkpt") == 3
    problem(client.post(f"{path}/merge", {"into": phone["id"]}), 409)
    problem(client.post(f"{path}/merge", {"into": 10**9}), 404)
    answer = client.post(f"{path}/merge", {"into": watch["id"]})
    assert answer.status_code == 202
    assert (answer.json()["state"], answer.json()["into"]) == ("merging", watch["id"])
    assert answer.json()["name"] == "mobile"
    remove()
    path = f"/timeline/devices/{watch['id']}"
    assert "has points" in problem(client.delete(path), 409)["detail"]
    assert client.delete(f"{path}?with_points=true").json()["state"] == "deleting"
    problem(client.delete(path), 404)
    remove()
    assert client.get("/timeline/devices").json() == []
