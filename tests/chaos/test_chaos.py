"""The short form of `make chaos`."""

from pathlib import Path

import pytest

from tests.chaos.run import Plan, run


@pytest.mark.slow
@pytest.mark.broker
@pytest.mark.xdist_group("chaos")
@pytest.mark.django_db(transaction=True)
def test_killed_workers_and_a_flushed_broker_lose_and_double_nothing(tmp_path: Path) -> None:
    plan = Plan(events=600, kills=4, flushes=1, seconds=15, lease=4, settle_seconds=120)
    judgement, house = run(plan, tmp_path)
    assert judgement.faults == [], f"killed {house.kills}, seed {plan.seed}"
    assert judgement.events == plan.events
    assert len(house.kills) == plan.kills
    assert judgement.claims >= judgement.jobs
