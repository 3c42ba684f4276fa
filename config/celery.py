"""The Celery application: `celery -A tailrace.config worker`, `beat`, `flower`, `inspect`."""

import os
import sys
from pathlib import Path
from typing import Any

from celery import Celery, signals

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tailrace.config.settings")

# Celery would run all checks in a worker and ignore their results. The checks of URLs import all
# pages, the API and the admin, which takes 30 MB.
os.environ.setdefault("CELERY_SKIP_CHECKS", "1")

app = Celery("tailrace")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.set_default()
app.autodiscover_tasks()


@signals.setup_logging.connect
def keep_logging(**kwargs: Any) -> None:
    """Keep Django's logging configuration: Celery configures none if this signal has a receiver."""


def _is_celery_command() -> bool:
    program = Path(sys.argv[0])
    return program.name == "celery" or program.parts[-2:] == ("celery", "__main__.py")


if _is_celery_command():
    from tailrace.config.startup import boot

    # The file from which Flower reads its settings.
    os.environ.setdefault("FLOWER_CONF", str(Path(__file__).with_name("servers") / "flower.py"))

    boot.start()
    if {"worker", "beat"} & set(sys.argv):
        boot.check_server(wait=True)
