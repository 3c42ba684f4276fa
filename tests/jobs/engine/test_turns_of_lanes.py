"""What a claim of a queue with lanes costs follows what is due, and not how many lanes wait."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from django.db import connection

from tailrace.db import connections
from tailrace.db.query import query
from tailrace.jobs.engine import registry
from tailrace.jobs.engine.claiming import claim, claim_sql
from tailrace.jobs.enqueue import enqueue, enqueue_many
from tailrace.jobs.handler import ClaimedJob, Handler
from tailrace.jobs.models import Job
from tailrace.jobs.operations.cancel import cancel
from tailrace.jobs.platform.inspection.explain.explanation import explain
from tests.kit import claimed, run_and_settle
from tests.sandbox.handlers import BatchByKey, Fair, Ordered

pytestmark = pytest.mark.django_db(transaction=True)

FLOOD = claim_sql.DUE_ROWS + 20
WAITING = 1000
"""More lanes than a claim of ten passes in two walks."""
_READ = """
SELECT coalesce(sum(seq_tup_read + coalesce(idx_tup_fetch, 0)), 0)::int
FROM pg_stat_xact_user_tables WHERE relname = 'tailrace_jobs_job'
"""


@pytest.fixture(autouse=True)
def _first_lane() -> None:
    claim._last_lanes.clear()


def waiting(handler: type[Handler], count: int = WAITING) -> None:
    """Add lanes whose only job is due later."""
    enqueue_many(handler, [{"lane": f"wait{n:04}", "delay": 9000} for n in range(count)])


def lanes(jobs: list[ClaimedJob]) -> list[str]:
    return [job.lane for job in jobs]


def rows_read(work: Callable[[], Any]) -> int:
    with connections.atomic():
        [(before,)] = query(_READ)
        work()
        [(after,)] = query(_READ)
    return int(after - before)


@pytest.fixture(params=["planned while empty", "analysed"])
def planned(request: pytest.FixtureRequest) -> Iterator[Callable[[type[Handler]], None]]:
    """Prepare for claims of this handler, before or after its lanes were filled."""

    def prepare(handler: type[Handler]) -> None:
        if request.param == "analysed":
            waiting(handler)
            with connection.cursor() as cursor:
                cursor.execute("VACUUM ANALYZE tailrace_jobs_job")
        for _ in range(8):  # the server keeps the plan from the sixth time on
            claimed(handler.name)
        if request.param != "analysed":
            waiting(handler)

    with connections.engine():
        yield prepare


@pytest.mark.parametrize("handler", [Fair, BatchByKey, Ordered], ids=lambda handler: handler.name)
def test_lanes_where_nothing_is_due_cost_a_claim_nothing(
    handler: type[Handler], planned: Callable[[type[Handler]], None]
) -> None:
    planned(handler)
    assert rows_read(lambda: claimed(handler.name)) <= 5
    due = enqueue(handler, lane="wait0999x")
    taken: list[ClaimedJob] = []
    assert rows_read(lambda: taken.extend(claimed(handler.name))) <= 40
    assert [job.id for job in taken] == [due]


def test_full_lanes_where_nothing_is_due_cost_a_claim_by_places_nothing(monkeypatch) -> None:
    monkeypatch.setattr(Fair, "per_destination", 3)
    waiting(Fair)
    enqueue_many(Fair, [{"lane": "full"}] * 3 + [{"lane": "room"}])
    handler, in_use = registry.get(Fair.name), {"full": 3}
    taken: list[ClaimedJob] = []
    with connections.engine():
        work = partial(claim.claim, handler, claim.Limits(), 10, in_use)
        assert rows_read(lambda: taken.extend(work())) <= 60
    assert lanes(taken) == ["room"]


@pytest.mark.parametrize("count", [1, 10])
def test_a_lane_behind_a_flood_and_many_that_wait_has_its_turn_soon(count: int) -> None:
    """No claim is empty, and none walks along all lanes."""
    enqueue_many(Fair, [{"lane": "flood", "delay": -60}] * FLOOD)
    waiting(Fair)
    small = enqueue(Fair, lane="wait0800x")
    walks = WAITING // 300 + 2
    with connections.engine():
        for _ in range(walks):
            taken: list[ClaimedJob] = []
            read = rows_read(lambda taken=taken: taken.extend(claimed("test.fair", count)))
            assert taken
            assert read < WAITING
            if small in [job.id for job in taken]:
                break
        else:
            pytest.fail(f"not within {walks} claims")


def test_a_claim_looks_beyond_lanes_that_are_held_up() -> None:
    """The first due jobs are all behind a head that is due later."""
    enqueue(Ordered, lane="a", delay=9000)
    enqueue_many(Ordered, [{"lane": "a", "delay": -60}] * FLOOD)
    waiting(Ordered)
    free = enqueue(Ordered, lane="wait0800x")
    assert [job.id for job in claimed("test.ordered")] == [free]
    assert claimed("test.ordered") == []


def test_lanes_are_served_in_turn_while_few_jobs_are_due() -> None:
    waiting(Fair, 10)
    for lane in ("wait0003x", "b", "wait0007x"):
        enqueue_many(Fair, [{"lane": lane}] * 4)
    served = [lanes(claimed("test.fair", 1)) for _ in range(6)]
    assert served == [["b"], ["wait0003x"], ["wait0007x"]] * 2


def test_an_ordered_lane_beside_a_flood_runs_in_order() -> None:
    enqueue_many(Ordered, [{"lane": "flood"}] * FLOOD)
    waiting(Ordered)
    first, second = enqueue(Ordered, lane="z"), enqueue(Ordered, lane="z")
    seen: list[int] = []
    for _ in range(12):
        jobs = claimed("test.ordered")
        assert len(lanes(jobs)) == len(set(lanes(jobs)))
        seen += [job.id for job in jobs if job.lane == "z"]
        run_and_settle(jobs)
    assert seen == [first, second]


def test_explain_knows_that_a_walk_may_not_reach_a_lane() -> None:
    enqueue_many(Fair, [{"lane": "flood", "delay": -60}] * FLOOD)
    waiting(Fair)
    small = enqueue(Fair, lane="wait0800x")
    assert explain(small).next_claim == "turn"
    cancel(list(Job.objects.filter(lane="flood").values_list("id", flat=True)))
    assert explain(small).next_claim == "yes"
