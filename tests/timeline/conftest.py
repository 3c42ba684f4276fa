from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tailrace.domains.timeline.imports import staging
from tests.timeline.killable import Killable, killable
from tests.timeline.kit import STEPS, staged_tables


@pytest.fixture(autouse=True)
def _imported(import_folder: Path) -> None:
    """Each test has a folder of its own for imported files."""


@pytest.fixture
def run_imports(run_jobs: Callable[..., int]) -> Callable[[], int]:
    """Return a worker of the queues of imports alone."""
    return lambda: run_jobs(*STEPS)


@pytest.fixture
def processes(process_env: dict[str, str], import_folder: Path) -> Iterator[Killable]:
    """Processes that do a step, and are killed or stopped in it."""
    with killable(process_env | {"TIMELINE_FOLDER": str(import_folder)}) as program:
        yield program
    for id in staged_tables():  # the next test has imports of the same ids
        staging.drop_partition(id)
