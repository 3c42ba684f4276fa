"""The statements of claims: each agrees with its preview, and with the conditions of `explain`."""

import re
from datetime import timedelta
from itertools import product

import pytest

from tailrace.db import clock
from tailrace.db.query import execute, query
from tailrace.jobs.engine.claiming import claim_sql, kinds
from tailrace.jobs.engine.claiming.kinds import Kind
from tailrace.jobs.handler import Handler
from tailrace.jobs.models import Job
from tests.sandbox.handlers import BatchByKey, Fair, Ordered, Working

KINDS: dict[str, tuple[type[Handler], Kind]] = {
    "plain": (Working, kinds.PLAIN),
    "plain that begins a drain": (Working, kinds.BEGIN_PLAIN),
    "plain since": (Working, kinds.plain_since([40.0] * 4)),
    "fair": (Fair, kinds.FAIR),
    "one batch key": (BatchByKey, kinds.one_batch_key(BatchByKey())),
    "fair by destination": (Fair, kinds.fair_by_destination(Fair(), {"threes": 2, "c": 1})),
    "ordered": (Ordered, kinds.ORDERED),
}
IN_LANES = ("fair", "one batch key", "fair by destination", "ordered")
LANES = ("", "alone", "c", "threes")
DUE_IN = (-90, -61, -31, -30, -5, 60)
"""Seconds until the jobs are due."""
_WITH_QUERY = re.compile(
    r"^(?:WITH |WITH RECURSIVE |, )?(\w+) AS (.*?^\))", re.DOTALL | re.MULTILINE
)


def words(sql: str) -> str:
    """Return SQL on one line, for comparisons."""
    return " ".join(sql.split())


def with_queries(sql: str) -> dict[str, str]:
    """Return the WITH queries of a statement by name."""
    return {name: words(text) for name, text in _WITH_QUERY.findall(sql)}


@pytest.mark.parametrize("name", KINDS)
def test_a_claim_and_its_preview_have_the_same_conditions(name: str) -> None:
    kind = KINDS[name][1]
    chosen = with_queries(kind.claim)
    assert ("claimed" in chosen) == (name in IN_LANES)
    assert ("begun" in chosen) == (kind is kinds.BEGIN_PLAIN)
    for other in ("claimed", "begun"):
        chosen.pop(other, None)
    assert list(chosen)[-2:] == ["candidate", "kept"]
    unlocked = {
        query: text.replace(claim_sql.LOCK, claim_sql.NO_LOCK) for query, text in chosen.items()
    }
    assert unlocked != chosen
    assert unlocked == with_queries(kind.preview)


@pytest.mark.django_db
@pytest.mark.parametrize("isolated", [(), (-90, -31)], ids=["none isolated", "some isolated"])
@pytest.mark.parametrize("name", KINDS)
def test_a_claim_takes_what_its_preview_returns(name: str, isolated: tuple[int, ...]) -> None:
    handler, kind = KINDS[name]
    now = clock.now()
    Job.objects.bulk_create(
        Job(
            handler=handler.name,
            state=state,
            lane=lane,
            priority=seconds % 4,
            due_at=now + timedelta(seconds=seconds),
            isolate=seconds in isolated,
        )
        for seconds, lane, state in product(DUE_IN, LANES, ("pending", "failed"))
    )
    params = {"handler": handler.name, "limit": 6, "last_lane": "alone", **kind.parameters}
    if "per_lane" in params:
        params["per_lane"] = 3
    execute("SET LOCAL synchronous_commit = on")
    preview = query(kind.preview, **params)
    assert query("SHOW synchronous_commit") == [("on",)]
    rows = query(kind.claim, **params, worker="w", lease=60, in_batch=False)
    assert query("SHOW synchronous_commit") == [("off",)]  # only a claim need not wait for the disk
    claimed = {row[3 if name in IN_LANES else 2] for row in rows}
    assert claimed == {id for id, _isolate, taken in preview if taken}
    assert claimed == set(Job.objects.running().values_list("id", flat=True))
    assert len(claimed) == 1 if isolated else len(claimed) > 1


@pytest.mark.parametrize("name", KINDS)
def test_a_claim_has_the_conditions_that_other_queries_ask(name: str) -> None:
    statement = words(KINDS[name][1].claim)
    conditions = [claim_sql.PENDING, claim_sql.DUE, claim_sql.OPEN, claim_sql.PRIORITIES]
    if name in IN_LANES:
        conditions.append(claim_sql.IN_LANE)
    if name == "ordered":
        conditions += [claim_sql.LANE_HEAD, claim_sql.LANE_BUSY]
    assert not [condition for condition in conditions if words(condition) not in statement]


def test_the_files_share_their_common_queries() -> None:
    fair, ordered = with_queries(kinds.FAIR.claim), with_queries(kinds.ORDERED.claim)
    walk = ("due", "after", "before", "lanes", "kept", "claimed")
    assert {name: fair[name] for name in walk} == {name: ordered[name] for name in walk}
    assert with_queries(kinds.PLAIN.claim)["kept"] == fair["kept"]
