"""What `make run` imports for a newcomer."""

from collections.abc import Callable
from datetime import date, timedelta

import pytest
from django.contrib.auth.models import User

from tailrace.db.query import database_now
from tailrace.domains.timeline.models import Import
from tailrace.samples.timeline.month import month
from tailrace.samples.timeline.seed import seed_timeline
from tests.subscriptions.sample_domain import person
from tests.timeline.kit import visible


def test_a_generated_month_is_the_same_each_time_and_in_order() -> None:
    points = list(month(date(2026, 3, 31)))
    assert points == list(month(date(2026, 3, 31)))
    assert points == sorted(points)
    assert 20_000 < len(points) < 40_000
    assert {f"{at:%d}" for at, _, _ in points} == {f"{day:02}" for day in range(1, 32)}


@pytest.mark.django_db
def test_the_samples_are_imported_once_for_the_admin(run_imports: Callable[[], int], clock) -> None:
    person("ann")
    seed_timeline()
    assert not Import.objects.exists(), "there is no admin"
    admin = User.objects.create_superuser("admin")
    seed_timeline()
    seed_timeline()
    run_imports()
    rows = list(Import.objects.order_by("pk"))
    assert [(row.user, row.state, row.rejected) for row in rows] == [(admin, "grace", 0)] * 2
    assert [row.days["total"] for row in rows] == [1, 31]
    assert max(row.promote_at for row in rows) < database_now() + timedelta(minutes=3)
    clock.step(180)
    run_imports()
    assert set(Import.objects.values_list("state", flat=True)) == {"completed"}
    assert visible(admin) > 20_000
    seed_timeline()
    assert Import.objects.count() == 2
