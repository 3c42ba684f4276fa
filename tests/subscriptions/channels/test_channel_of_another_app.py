"""A channel comes from any app: new files alone, and the app's name in INSTALLED_APPS."""

import json
import os
from pathlib import Path

import pytest

from tests import forks
from tests.kit import ROOT

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_subscriber_chooses_a_channel_of_another_app(
    process_env: dict[str, str], tmp_path: Path
) -> None:
    loft = tmp_path / "loft.txt"
    env = process_env | {
        "DJANGO_SETTINGS_MODULE": "pigeon.site",
        "PIGEON_LOFT": str(loft),
        "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT), str(Path(__file__).parent)]),
    }
    visit = forks.run(
        ["-m", "pigeon.visit"],
        cwd=ROOT, env=env, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert visit.returncode == 0, visit.stderr
    answers = json.loads(visit.stdout.splitlines()[-1])
    assert answers["page"] == 200, "the editor offers it"
    assert answers["default"] == "off", "its default row exists"
    assert answers["saved"] == 302
    assert answers["loft"] == "ann: A play was shown for the first time: Faust\n"
    assert answers["checks"] == "passed"
