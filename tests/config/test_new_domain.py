"""A domain is new files alone, and one line in one list."""

import difflib
import json
import shutil
from pathlib import Path

import pytest

from tests import forks
from tests.config.copied_project import copy_project
from tests.kit import ROOT

pytestmark = pytest.mark.once

APPS = "config/installed_apps.py"
HERE = Path(__file__).parent


def add_weather(folder: Path) -> None:
    shutil.copytree(HERE / "weather", folder / "domains" / "weather")
    apps = folder / APPS
    line = '    "tailrace.domains.photos",\n'
    apps.write_text(apps.read_text().replace(line, f'{line}    "tailrace.domains.weather",\n'))


def edits(folder: Path) -> list[str]:
    """Return the changed lines of all files that were there before, as `file: line`."""
    return [
        f"{path.relative_to(folder)}: {line}"
        for path in sorted(folder.rglob("*"))
        if (original := ROOT / path.relative_to(folder)).is_file()
        for line in difflib.unified_diff(
            original.read_bytes().decode(errors="replace").splitlines(),
            path.read_bytes().decode(errors="replace").splitlines(),
            n=0,
            lineterm="",
        )
        if line.startswith(("+", "-")) and not line.startswith(("+++", "---"))
    ]


def test_a_domain_is_new_files_and_one_line(tmp_path: Path, process_env: dict[str, str]) -> None:
    copy_project(tmp_path, compiled=True)
    add_weather(tmp_path)
    assert edits(tmp_path) == [f'{APPS}: +    "tailrace.domains.weather",']
    variables = {
        "DJANGO_SETTINGS_MODULE": "tailrace.config.settings",
        "WEATHER_FROST_DEGREES": "-2",
        "WEATHER_FROST": "1",
    }
    done = forks.run(
        ["manage.py", "weather_parts"],
        cwd=tmp_path, env=process_env | variables, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "WEATHER_FROST: no such setting; did you mean 'WEATHER_FROST_DEGREES'?" in done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == {
        "setting": -2,
        "row of docs/reference/settings.md": True,
        "unknown variable": ["WEATHER_FROST"],
        "event type": True,
        "jobs": ["weather.warn_of_frost"],
        "queue": True,
        "channel": True,
        "page": "sunny",
        "menu": True,
        "admin menu": True,
        "panel": True,
        "API": True,
        "upload": 5_000 + 65_536,
        "scope": "see forecasts",
        "invariant": True,
        "personal data": True,
        "process": True,
    }
