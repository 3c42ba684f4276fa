"""Fixtures of the photos' tests: a folder for pictures per test."""

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def storage_folder(tmp_path: Path, settings) -> Path:
    """Keep pictures in a folder of this test; return it."""
    folder = tmp_path / "pictures"
    kept = {**settings.STORAGES["photos"]}
    kept["OPTIONS"] = {**kept["OPTIONS"], "location": folder}
    settings.STORAGES = {**settings.STORAGES, "photos": kept}
    return folder
