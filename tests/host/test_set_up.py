"""What a project's INSTALLED_APPS or databases lack is said when Django starts."""

import subprocess
import sys

import pytest

from tests.kit import ROOT

CODE = """
from django.conf import settings
settings.configure(
    INSTALLED_APPS=["django.contrib.contenttypes", "django.contrib.auth", *{apps!r}],
    DATABASES={{"default": {{"ENGINE": "django.db.backends.postgresql", "NAME": "none"}}}},
    TAILRACE={tailrace!r},
)
import django
django.setup()
"""


@pytest.mark.parametrize(
    ("apps", "tailrace", "message"),
    [
        (["tailrace.jobs"], {}, "contains 'tailrace.jobs' without 'tailrace.events'; add both"),
        (
            ["tailrace.events", "tailrace.jobs"],
            {"DATABASE": "orders"},
            "TAILRACE['DATABASE'] is 'orders'; DATABASES has default",
        ),
    ],
)
def test_it_names_the_value_and_the_way_out(
    apps: list[str], tailrace: dict[str, str], message: str
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", CODE.format(apps=apps, tailrace=tailrace)],
        cwd=ROOT / "tests", capture_output=True, text=True,
        env={"PYTHONPATH": str(ROOT / "src")},
    )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].endswith(message)
