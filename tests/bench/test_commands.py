"""The commands of the Makefile that are modules of ours start by themselves."""

import re
from pathlib import Path

import pytest

from tests import forks

pytestmark = pytest.mark.once

ROOT = Path(__file__).parents[2]
MODULES = re.findall(
    r"^\t\$\(BIN\)/python -m ((?:tests|bench)\S*)", (ROOT / "Makefile").read_text(), re.MULTILINE
)


def test_there_are_such_commands() -> None:
    assert {"tests.chaos", "tests.siege", "bench", "bench.against"} <= set(MODULES)


@pytest.mark.parametrize("module", MODULES)
def test_it_starts_without_settings_of_the_tests(module: str) -> None:
    done = forks.run(
        ["-m", module, "--help"], cwd=ROOT, env={"PATH": "/usr/bin:/bin"},
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "usage:" in done.stdout
