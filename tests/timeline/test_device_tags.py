"""Records.json tells devices apart by `deviceTag`: each tag becomes a device."""

import json
import zipfile
from collections.abc import Callable
from io import BytesIO
from itertools import chain

import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile

from tailrace.domains.timeline.devices import decisions as devices
from tailrace.domains.timeline.imports import decisions, quotas
from tailrace.domains.timeline.imports.files.parsing.tally import MOST_TAGS, TagFilter, Tally
from tailrace.domains.timeline.imports.files.reading import read_points
from tailrace.domains.timeline.imports.receive import receive
from tailrace.domains.timeline.models import Device, Import
from tests.subscriptions.sample_domain import person
from tests.timeline.kit import files_in, gpx, now, numbers, track, upload, visible
from tests.web.program import Program, problem
from tests.web.visitor import Visitor

pytestmark = pytest.mark.django_db


@pytest.fixture
def ann() -> User:
    return person("ann")


def records(*tags: object, step: int = 60) -> bytes:
    """Return a Records.json with a record for each tag; phones with other tags are far away."""
    lines = [
        {
            "timestamp": f"2026-03-01T08:{number * step // 60 % 60:02d}:{number * step % 60:02d}Z",
            "latitudeE7": 525_000_000 + 40_000_000 * (sum(map(ord, str(tag))) % 2) + number,
            "longitudeE7": 134_000_000 + number,
            **({} if tag is None else {"deviceTag": tag}),
        }
        for number, tag in enumerate(tags)
    ]
    return json.dumps({"locations": lines}).encode()


def imported(ann: User, run_imports: Callable[[], int], file: bytes, **options: bool) -> None:
    receive(ann, SimpleUploadedFile("Records.json", file), len(file), "Records.json", **options)
    run_imports()
    for row in Import.objects.filter(state="grace"):
        decisions.promote_now(row.pk)
    run_imports()


def points_by_device(user: User) -> dict[str, int]:
    rows = Device.objects.with_counts().filter(user=user)
    return {row.name: row.point_count for row in rows}


def test_two_phones_become_two_devices(ann: User, run_imports, import_folder) -> None:
    imported(ann, run_imports, records(*[111, -222] * 10, 111))
    assert points_by_device(ann) == {"Google 111": 11, "Google -222": 10}
    assert visible(ann) == 21
    first, second = Import.objects.order_by("pk")
    assert (numbers(first), numbers(second)) == ((11, 0, 0), (10, 0, 0))
    assert (first.tags, second.tags) == ({"only": "111"}, {"only": "-222"})
    assert second.part_of == first
    decisions.undo(first.pk)
    run_imports()
    assert points_by_device(ann) == {"Google -222": 10}


def test_the_owner_wants_one_device(ann: User, run_imports) -> None:
    imported(ann, run_imports, records(*[111, 222] * 5), one_device=True)
    assert points_by_device(ann) == {"default": 10}


def test_records_without_a_tag_stay_with_the_device_of_the_import(ann: User, run_imports) -> None:
    imported(ann, run_imports, records(111, None, 222, None, [1], {}, True, "x" * 100))
    assert points_by_device(ann) == {"default": 6, "Google 111": 1, "Google 222": 1}


def test_a_file_of_one_phone_makes_one_device_that_later_files_find(ann: User, run_imports) -> None:
    imported(ann, run_imports, records(111, 111, 111))
    assert points_by_device(ann) == {"default": 3}
    devices.rename(ann, Device.objects.get().pk, "Pixel")
    imported(ann, run_imports, records(111, 111, 111, 222, 111))
    assert points_by_device(ann) == {"Pixel": 4, "Google 222": 1}
    imported(ann, run_imports, records(222, 222, step=61))
    assert points_by_device(ann) == {"Pixel": 4, "Google 222": 3}


def test_the_same_file_brings_nothing_again(ann: User, run_imports) -> None:
    file = records(*[111, 222, None] * 4)
    for _ in range(2):
        imported(ann, run_imports, file)
    assert visible(ann) == 12
    again = Import.objects.order_by("-pk")[:3]
    assert {numbers(row)[0] for row in again} == {0}
    assert sum(numbers(row)[1] for row in again) == 12


def test_more_phones_than_the_user_may_have_stay_together(ann: User, run_imports, settings) -> None:
    settings.TIMELINE_MAX_DEVICES_PER_USER = 2
    imported(ann, run_imports, records(111, 111, 222, 333))
    assert points_by_device(ann) == {"default": 2, "Google 111": 2}
    settings.TIMELINE_MAX_DEVICES_PER_USER = 1
    Import.objects.all().delete()
    Device.objects.all().delete()
    imported(ann, run_imports, records(111, 222))
    assert points_by_device(ann) == {"default": 2}


def test_the_file_is_kept_until_the_last_of_its_imports_has_ended(
    ann: User, run_imports, import_folder
) -> None:
    row = upload(ann, records(111, 222, 111), name="Records.json")
    size = now(row).size
    run_imports()
    first, second = Import.objects.order_by("pk")
    assert (first.state, second.state) == ("grace", "grace")
    assert quotas.usage_of(ann.pk).bytes == size, "the file counts once"
    decisions.cancel(first.pk)
    run_imports()
    assert len(files_in(import_folder)) == 1
    decisions.cancel(second.pk)
    run_imports()
    assert files_in(import_folder) == []
    assert not Device.objects.exists()


def test_a_file_with_other_files_in_an_archive(ann: User, run_imports) -> None:
    packed = BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("Records.json", records(111, 222, 111))
        archive.writestr("walk.gpx", gpx(track(4)))
    imported(ann, run_imports, packed.getvalue())
    assert points_by_device(ann) == {"default": 4, "Google 111": 2, "Google 222": 1}


def test_the_pages_and_the_api_say_so(ann: User, run_imports) -> None:
    browser, client = Visitor(ann), Program(ann)
    assert "keep the devices separate" in browser.text("/timeline/imports")
    file = SimpleUploadedFile("Records.json", records(111, 222))
    answer = client.client.post("/api/imports", {"file": file, "one_device": "maybe"})
    problem(answer, 422, "invalid")
    file.seek(0)
    answer = client.client.post("/api/imports", {"file": file, "one_device": "false"})
    assert answer.status_code == 202
    run_imports()
    first, second = (
        client.get(f"/imports/{row.pk}").json() for row in Import.objects.order_by("pk")
    )
    assert [row["tag"] for row in (first, second)] == ["111", "222"]
    assert (first["part_of"], second["part_of"]) == (None, first["id"])
    text = browser.text(f"/timeline/imports/{first['id']}")
    assert "This import has the points of Google 111 ; the others are in Google 222 ." in text
    file = SimpleUploadedFile("Records.json", records(111, 222))
    answer = browser.post("/timeline/imports", {"file": file, "split": "one"})
    assert "for default as one device" in browser.text(answer["Location"])


@pytest.mark.parametrize(
    "tag_filter", [TagFilter(), TagFilter("1"), TagFilter(None, frozenset("1"))]
)
def test_a_filter_reads_the_points_of_its_tags_with_their_places(tag_filter: TagFilter) -> None:
    lines = json.loads(records(*[1, 2, None] * 4))
    lines["locations"][3]["latitudeE7"] = "x"  # of tag 1
    tally = Tally(latest=2 * 10**15, tag_filter=tag_filter)
    batches = read_points(BytesIO(json.dumps(lines).encode()), tally)
    points = list(chain.from_iterable(batches))
    wanted = [n for n in range(12) if tag_filter.wants(["1", "2", ""][n % 3])]
    assert [point[1] - 134_000_000 for point in points] == [n for n in wanted if n != 3]
    assert [each.record for each in tally.first_rejected] == [4] * (3 in wanted)
    assert tally.tags == {"1": 4, "2": 4, "": 4}


def test_a_hostile_number_of_tags_is_counted_as_no_tag() -> None:
    tally = Tally(latest=2 * 10**15)
    assert sum(map(len, read_points(BytesIO(records(*range(1000))), tally))) == 1000
    assert len(tally.tags) <= MOST_TAGS + 1
    assert tally.tags.total() == 1000
