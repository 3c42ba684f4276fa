"""Points of long times ask only for photos near them, in pieces."""

from collections.abc import Callable
from datetime import datetime, timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from pytest_django.fixtures import Settings

from tailrace.db.clock import now
from tailrace.db.query import execute
from tailrace.domains.photos.exchange.places.place import PHOTOS_PER_TURN
from tailrace.domains.photos.models import Photo
from tailrace.events.models import Event
from tailrace.events.publish import NewEvent, publish
from tests.across.kit import send_points
from tests.web.program import Program, program

pytestmark = pytest.mark.django_db
LAKE = (46.28, 13.88)
PHOTOS = 20_000
OWN = ("id", "storage_key", "taken_at")
YEARS = timedelta(days=6 * 365)


@pytest.fixture
def ana() -> Program:
    return program("ana", "timeline:points")


@pytest.fixture
def start(ana: Program, settings: Settings) -> datetime:
    """Store PHOTOS photos without a place over YEARS; return when they begin."""
    start = now() - YEARS
    first = Photo.objects.create(user=ana.user, storage_key="0", taken_at=start, state="unplaced")
    fields = [field for field in Photo._meta.concrete_fields if not field.generated]
    columns = ", ".join(field.column for field in fields if field.column not in OWN)
    execute(
        f"""INSERT INTO tailrace_photos_photo ({columns}, storage_key, taken_at)
            SELECT {columns}, n::text, taken_at + n * %(step)s
            FROM tailrace_photos_photo, generate_series(1, {PHOTOS - 1}) AS n
              WHERE id = %(first)s""",
        first=first.pk,
        step=YEARS / PHOTOS,
    )
    return start


def requested() -> list[int]:
    """Return the numbers of photos that were asked for together."""
    events = Event.objects.filter(type="photos.places_requested").order_by("pk")
    return [len(payload["photos"]) for payload in events.values_list("payload", flat=True)]


def test_two_points_years_apart_ask_for_the_photos_near_each(
    ana: Program, start: datetime, run_jobs: Callable[..., int]
) -> None:
    send_points(ana, [(start, *LAKE), (now(), *LAKE)])
    assert Event.objects.filter(type="timeline.points_added").count() == 2
    with CaptureQueriesContext(connection) as statements:
        run_jobs("photos.request_places")
    assert requested() == [1], "of the photo at the first point"
    assert len(statements) < 100


def test_points_of_all_these_years_ask_in_pieces(
    ana: Program, start: datetime, run_jobs: Callable[..., int]
) -> None:
    times = {"first_at": start, "last_at": now(), "count": PHOTOS}
    publish(NewEvent("timeline.import_promoted", {"import_id": 1, "user_id": ana.user.pk, **times}))
    with CaptureQueriesContext(connection) as statements:
        run_jobs("photos.request_places")
    assert requested() == [100] * (PHOTOS // 100)
    turns = PHOTOS // PHOTOS_PER_TURN
    reads = [
        sql for each in statements if 'FROM "tailrace_photos_photo"' in (sql := each["sql"] or "")
    ]
    assert len(reads) == turns + 1
    assert len(statements) < 30 * turns
