"""Wrong settings are named by their variables, and stop a process at its start."""

import os

import pytest

from tailrace.domains.photos.settings import PhotosSettings
from tests import forks
from tests.kit import ROOT


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("PHOTOS_DISTANCE_METERS", "0", "'0' is not a whole number, 1 to 5000"),
        ("PHOTOS_DISTANCE_METERS", "-75", "'-75' is not a whole number, 1 to 5000"),
        ("PHOTOS_DISTANCE_METERS", "10000000", "'10000000' is not a whole number, 1 to 5000"),
        ("PHOTOS_DISTANCE_METERS", "near", "'near' is not a whole number, 1 to 5000"),
        ("PHOTOS_TIME_WINDOW_MINUTES", "0", "'0' is not a whole number, 1 to 1440"),
        ("PHOTOS_MIN_FOR_GATHERING", "1", "'1' is not a whole number, 2 to 1000"),
        ("PHOTOS_PLACE_GRID_M", "99", "'99' is not a whole number, 100 to 100000"),
        ("PHOTOS_SWEEP_SECONDS", "0", "'0' is not a whole number, 1 to 86400"),
        ("PHOTOS_SWEEP_BATCH", "0", "'0' is not a whole number, 1 to 10000"),
        (
            "PHOTOS_SWEEP_LOOKBACK_MINUTES",
            "14",
            "14 is shorter than PHOTOS_TIME_WINDOW_MINUTES, 15",
        ),
        ("PHOTOS_FINALIZE_AFTER_MINUTES", "5", "5 is shorter than PHOTOS_TIME_WINDOW_MINUTES, 15"),
    ],
)
def test_a_wrong_setting_is_named(
    name: str, value: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    assert list(map(str, PhotosSettings.load()[1])) == [f"{name}: {message}"]


def test_a_lookback_without_a_second_sweep_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PHOTOS_SWEEP_SECONDS", "7200")
    [problem] = PhotosSettings.load()[1]
    assert str(problem).startswith(
        "PHOTOS_SWEEP_LOOKBACK_MINUTES: 60 is shorter than PHOTOS_SWEEP_SECONDS"
    )


@pytest.mark.long
def test_a_wrong_setting_stops_the_boot_and_an_unknown_one_is_reported() -> None:
    done = forks.run(
        ["manage.py", "check"],
        cwd=ROOT,
        env={**os.environ, "PHOTOS_DISTANCE_METRES": "75", "PHOTOS_MIN_FOR_GATHERING": "1"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 1
    assert "PHOTOS_MIN_FOR_GATHERING: '1' is not a whole number, 2 to 1000" in done.stderr
    assert "did you mean 'PHOTOS_DISTANCE_METERS'?" in done.stderr


def test_the_batch_of_the_sweeps_is_the_setting() -> None:
    code = (
        "import django; django.setup()\n"
        "from tailrace.domains.photos.invariants import PhotosSweep\n"
        "print(*{sweep.limit for sweep in PhotosSweep.__subclasses__()})"
    )
    done = forks.run(
        ["-c", code],
        cwd=ROOT,
        env={**os.environ, "PHOTOS_SWEEP_BATCH": "7", "DJANGO_SETTINGS_MODULE": "tests.settings"},
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    assert done.stdout.split() == ["7"]
