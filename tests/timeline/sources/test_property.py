"""Whatever happens to imports and their jobs, readers see the points of all living sources.

A reference knows which points each import and the phone have. Living sources are the phone, and
the imports that are promoted and not undone.
"""

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import OperationalError, connection, transaction
from django.db.models.functions import Now
from hypothesis import HealthCheck, note
from hypothesis import settings as profile
from hypothesis import strategies as st

from tailrace.db.query import execute, query
from tailrace.domains.timeline.imports import decisions, quotas, source_check, staging
from tailrace.domains.timeline.imports.steps import promote, undo
from tailrace.domains.timeline.models import Import
from tailrace.domains.timeline.models.location_import import PROMOTED
from tailrace.jobs.engine.drain import drain
from tailrace.jobs.models import Job
from tests.examples import few_and_many
from tests.subscriptions.sample_domain import person
from tests.timeline.kit import STEPS, expected, gpx, staged_tables, stored, track, upload
from tests.timeline.sources.kit import Where, phone_sends, seen

pytestmark = pytest.mark.django_db
EXAMPLES = profile(
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
PART = 60
"""Points of a part of the track; a promotion moves some 120 points at a time."""
PARTS = 8
CHANGES = ("INSERT INTO tailrace_timeline_point", "WITH known AS", "WITH chosen AS")
"""How the statements begin that change points of imports."""
WORK = ("timeline.promote", "timeline.undo", "timeline.stage")
spans = st.tuples(st.integers(0, PARTS - 1), st.integers(1, PARTS))
number = st.integers(0, 3)
do_steps = st.lists(
    st.one_of(
        st.tuples(st.just("import"), spans, st.booleans()),
        st.tuples(st.just("import"), spans, st.booleans()),
        st.tuples(st.just("phone"), spans, st.none()),
        st.tuples(st.sampled_from(["promote", "promote", "undo", "undo", "cancel"]), number,
                  st.none()),
        st.tuples(st.sampled_from(["lose staged points", "delete file"]), number, st.none()),
        st.tuples(st.just("work"), st.sampled_from(WORK), st.integers(0, 5)),
        st.tuples(st.just("work"), st.sampled_from(WORK), st.integers(0, 5)),
    ),
    max_size=18,
)  # fmt: skip


class World:
    """A user's imports and phone, and the points that each of them has."""

    def __init__(self, user: User, folder: Path) -> None:
        self.user, self.folder = user, folder
        self.points_of: dict[int, set[Where]] = {}
        self.sent: set[Where] = set()

    def do(self, kind: str, what: Any, more: Any) -> None:
        match kind:
            case "import":
                points = part(*what)
                row = upload(self.user, gpx([*points, *points[:PART]] if more else points))
                self.points_of[row.pk] = set(points)
                work("timeline.stage")
            case "phone":
                points = part(what[0], 1)
                before = len(seen(self.user))
                new = phone_sends(self.user, points)
                assert new == len(seen(self.user)) - before
                self.sent.update(points)
            case "work":
                work(what, stop_at=more)
            case _:
                if rows := sorted(self.points_of):
                    self.do_to(Import.objects.get(pk=rows[what % len(rows)]), kind)

    def do_to(self, row: Import, kind: str) -> None:
        if kind == "lose staged points":
            if row.pk in staged_tables():
                execute(f"TRUNCATE {staging.partition(row.pk)}")
        elif kind == "delete file":
            (self.folder / row.storage_key).unlink(missing_ok=True)
            Job.objects.filter(pk=row.job_id).update(attempt=11)
        else:
            decision = {"promote": "promote_now"}.get(kind, kind)
            try:
                getattr(decisions, decision)(row.pk)
            except decisions.NotNow as error:
                note(str(error))

    def living(self) -> list[tuple[datetime, int, int]]:
        """Return the points of all living sources."""
        rows = Import.objects.filter(state__in=PROMOTED).values_list("pk", flat=True)
        return expected(sorted(self.sent.union(*(self.points_of[id] for id in rows))))

    def check(self) -> None:
        assert seen(self.user) == self.living()
        assert source_check.wrong_sources(10) == []
        if Import.objects.in_between().exists():
            return
        assert stored(self.user) == self.living()
        assert quotas.usage_of(self.user.pk).points == len(stored(self.user))
        first, further = counts("point"), counts("pointsource")
        for row in Import.objects.filter(state__in=PROMOTED):
            assert row.inserted + row.duplicates == row.staged
            assert (row.inserted, row.shared) == (first.get(row.pk, 0), further.get(row.pk, 0))


def counts(table: str) -> dict[int, int]:
    """Return the numbers of rows by import."""
    return dict(query(f"SELECT import_id, count(*) FROM tailrace_timeline_{table} GROUP BY 1"))


def part(first: int, parts: int) -> list[Where]:
    return track(PART * min(parts, PARTS - first), first=PART * first)


def work(queue: str, stop_at: int = 0) -> None:
    """Do the jobs of the queue; with `stop_at`, the database fails at that change of points."""
    count = 0

    def change(run: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        nonlocal count
        count += sql.lstrip().startswith(CHANGES)
        if count and count == stop_at:
            count += 1
            raise OperationalError("the connection was lost")
        return run(sql, params, many, context)

    Job.objects.filter(state="pending", handler__in=STEPS).update(due_at=Now())
    with connection.execute_wrapper(change):
        while drain(queue):
            pass


@pytest.fixture(autouse=True)
def _small_chunks(settings: Any) -> Iterator[None]:
    settings.IMPORT_MAX_UNFINISHED = 100
    sizes = promote.CHUNK, undo.CHUNK
    promote.CHUNK, undo.CHUNK = 1, 50
    yield
    promote.CHUNK, undo.CHUNK = sizes


@few_and_many(EXAMPLES, 12, 100, steps=do_steps)
@pytest.mark.slow
def test_readers_see_the_points_of_all_living_sources(
    import_folder: Path, steps: list[tuple[str, Any, Any]]
) -> None:
    with transaction.atomic():
        world = World(person("ann"), import_folder)
        for step in steps:
            note(str(step))
            world.do(*step)
            world.check()
        for _ in range(20):
            for queue in STEPS:
                work(queue)
        world.check()
        for row in Import.objects.filter(state__in=PROMOTED):
            decisions.undo(row.pk)
            world.check()
        work("timeline.undo")
        world.check()
        assert stored(world.user) == expected(sorted(world.sent))
        transaction.set_rollback(True)
