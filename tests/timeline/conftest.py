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


@pytest.fixture(scope="package")
def program(process_env_of_package: dict[str, str]) -> Iterator[Killable]:
    with killable(process_env_of_package) as program:
        yield program


@pytest.fixture
def processes(transactional_db: None, program: Killable, import_folder: Path) -> Iterator[Killable]:
    """Processes that do a step, and are killed or stopped in it."""
    program.folder = import_folder
    yield program
    program.end()
    for id in staged_tables():  # the next test has imports of the same ids
        staging.drop_partition(id)
