from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def _pictures(storage_folder: Path) -> None:
    """Each test has a folder of its own for pictures."""
