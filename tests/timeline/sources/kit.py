"""What the tests of sources share: imports that have run, and points that the phone sends."""

from collections.abc import Callable, Sequence
from datetime import datetime

from django.contrib.auth.models import User

from tailrace.domains.timeline.imports import decisions
from tailrace.domains.timeline.live.receive import store
from tailrace.domains.timeline.models import Import, Point
from tests.timeline.kit import gpx, now, upload

Where = tuple[datetime, float, float]
Run = Callable[[], int]


def imported(
    user: User, points: Sequence[Where], run_imports: Run, device: str = "default"
) -> Import:
    """Let the user import these points, up to the end."""
    row = upload(user, gpx(points), device)
    run_imports()
    decisions.promote_now(row.pk)
    run_imports()
    assert now(row).state == "completed"
    return now(row)


def undone(row: Import, run_imports: Run) -> Import:
    """Let the owner undo the import, up to the end."""
    decisions.undo(row.pk)
    run_imports()
    assert now(row).state == "undone"
    return now(row)


def phone_sends(user: User, points: Sequence[Where], device: str = "default") -> int:
    """Let the phone send these points; return how many are new to the timeline."""
    return store(
        user,
        device,
        [
            (round(at.timestamp() * 1e6), round(lon * 1e7), round(lat * 1e7), *[None] * 4)
            for at, lat, lon in points
        ],
    )


def seen(user: User) -> list[tuple[datetime, int, int]]:
    """Return the points that readers see."""
    points = Point.objects.visible_to(user).order_by("recorded_at", "lon", "lat")
    return list(points.values_list("recorded_at", "lat", "lon"))
