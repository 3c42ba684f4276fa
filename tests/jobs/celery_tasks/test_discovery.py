"""What a worker or beat of another project knows when it has loaded its Celery app."""

import os

import pytest

from tests import forks

ANY_APP = """
from celery import Celery

app = Celery("shop", task_cls="tailrace.celery:Task")
{before}
app.loader.import_default_modules()  # as a worker and a beat do
print(*app.tasks)
"""


@pytest.mark.slow
@pytest.mark.once
@pytest.mark.parametrize(
    "before", ["", "import django; django.setup()", "app.autodiscover_tasks()"]
)
def test_workers_of_each_app_have_our_tasks(before: str) -> None:
    """Those of an app that did not search Django's apps for tasks ran no job, without a word."""
    settings = {"DJANGO_SETTINGS_MODULE": "bench.core_host.settings", "SECRET_KEY": "k" * 50}
    env = os.environ | settings
    done = forks.run(["-c", ANY_APP.format(before=before)], env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert {"tailrace.work", "core_host.do_nothing"} <= set(done.stdout.split())
