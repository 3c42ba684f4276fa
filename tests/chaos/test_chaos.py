"""The short form of `make chaos`."""

from pathlib import Path

import pytest

from tests.chaos.deployment import TAILRACE, deployment
from tests.chaos.run import SETTLED, run

pytestmark = pytest.mark.once

SEED = 20


@pytest.mark.slow
def test_all_faults_at_once_lose_and_double_nothing(tmp_path: Path) -> None:
    with deployment(tmp_path, TAILRACE, SEED) as built:
        result = run(built, "mixed", scale=0.1, settled=10 * SETTLED, rate=12)
    assert result.problems == [], f"seed {SEED}, {built.faults}"
    assert result.faults >= 5
    assert result.events > 20
    assert result.expected > 4 * result.events


@pytest.mark.slow
@pytest.mark.long
def test_callbacks_run_after_their_parents_and_once_under_faults(tmp_path: Path) -> None:
    with deployment(tmp_path, TAILRACE, SEED) as built:
        result = run(built, "flows", scale=0.5, settled=10 * SETTLED)
    assert result.problems == [], f"seed {SEED}, {built.faults}"
    assert result.faults >= 4


@pytest.mark.slow
@pytest.mark.long
def test_imports_survive_all_faults(tmp_path: Path) -> None:
    with deployment(tmp_path, TAILRACE, SEED) as built:
        result = run(built, "imports", scale=0.2, settled=10 * SETTLED)
    assert result.problems == [], f"seed {SEED}, {built.faults}"
    assert result.faults >= 4
