"""A device is merged into another one: points keep the sources that they have on both."""

from collections.abc import Callable
from itertools import permutations

import pytest
from django.contrib.auth.models import User

from tailrace.domains.timeline.devices import decisions as devices
from tailrace.domains.timeline.devices import removal
from tailrace.domains.timeline.imports import quotas
from tailrace.domains.timeline.imports.source_check import wrong_sources
from tailrace.domains.timeline.models import Device, Import, PointSource
from tests.subscriptions.sample_domain import person
from tests.timeline.kit import expected, now, stored, track
from tests.timeline.sources.kit import Run, imported, phone_sends, seen, undone

pytestmark = pytest.mark.django_db
TRACKS = {
    "phone": [(0, 30), (10, 30)],
    "watch": [(20, 30), (25, 40)],
}
"""The first point and the number of points of the imports of each device."""
SENT = {"phone": (45, 4), "watch": (28, 3)}


@pytest.mark.parametrize("order", list(permutations(range(4)))[::12])
def test_after_a_merge_each_undo_leaves_the_points_of_the_other_sources(
    order: tuple[int, ...],
    run_imports: Run,
    run_jobs: Callable[..., int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(removal, "BATCH", 7)
    ann = person("ann")
    rows = {
        imported(ann, track(count, first=first), run_imports, device).pk: (first, count)
        for device, tracks in TRACKS.items()
        for first, count in tracks
    }
    for device, (first, count) in SENT.items():
        phone_sends(ann, track(count, first=first), device)
    devices.merge(ann, id_of(ann, "watch"), id_of(ann, "phone"))
    run_jobs(removal.REMOVE)
    check(ann, rows)
    for number in order:
        id = list(rows)[number]
        undone(Import.objects.get(pk=id), run_imports)
        check(ann, {pk: points for pk, points in rows.items() if now_is_promoted(pk)})
    assert not PointSource.objects.exists()


def id_of(user: User, name: str) -> int:
    return Device.objects.get(user=user, name=name).pk


def now_is_promoted(pk: int) -> bool:
    return now(Import.objects.get(pk=pk)).state != "undone"


def check(user: User, imports: dict[int, tuple[int, int]]) -> None:
    """Each point of these imports and of the devices is there once, and all counts are right."""
    spans = [*imports.values(), *SENT.values()]
    numbers = sorted({n for first, count in spans for n in range(first, first + count)})
    points = [point for n in numbers for point in track(1, first=n)]
    assert stored(user) == seen(user) == expected(points)
    assert wrong_sources(10) == []
    assert quotas.usage_of(user.pk).points == len(points)
    for row in Import.objects.filter(pk__in=imports):
        assert row.inserted + row.duplicates == imports[row.pk][1]
        assert row.shared == PointSource.objects.filter(import_id=row.pk).count()
