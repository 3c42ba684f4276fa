"""The short form of `make chaos`."""

from pathlib import Path

import pytest

from tests.chaos.house import TAILRACE, house
from tests.chaos.run import run

SEED = 20


@pytest.mark.slow
def test_a_house_under_all_faults_at_once_loses_and_doubles_nothing(tmp_path: Path) -> None:
    with house(tmp_path, TAILRACE, SEED) as built:
        found = run(built, "mixed", scale=0.3)
    assert found.faults == [], f"seed {SEED}, {built.harm}"
    assert found.harm >= 5
    assert found.events > 100
    assert found.owed > 4 * found.events
