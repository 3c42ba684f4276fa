"""Logs: one form for all, with the bound facts, and without passwords."""

import json
import os
from pathlib import Path

import structlog
from django.conf import settings
from structlog.testing import capture_logs

from tailrace.config.monitoring.logs import configure
from tests import forks

ROOT = Path(__file__).parents[2]

WRITE = """
import logging
import django
import structlog
django.setup()
structlog.contextvars.bind_contextvars(event_id=7, job_id=8, claim_no=2, queue="builds.x")
structlog.get_logger("jobs.run").info("job.settled", url="amqp://me:hunter2@host/vhost")
logging.getLogger("celery.worker").warning("lost %s", "redis://:hunter2@host:6379/0")
logging.getLogger("django.request").error("refused", extra={"status_code": 500})
logging.getLogger("httpx").info("GET http://host/?token=hunter2")
secret = "hunter2"
try:
    raise ValueError("broken")
except ValueError:
    structlog.get_logger("jobs.run").exception("job.broke")
"""


def lines(style: str) -> list[str]:
    """What a process writes in one style."""
    done = forks.run(
        ["-c", WRITE],
        cwd=ROOT,
        env={**os.environ, "LOG_FORMAT": style},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert "hunter2" not in done.stderr.replace('secret = "hunter2"', "")
    return done.stderr.splitlines()


def test_json_has_one_object_per_line_with_the_bound_facts() -> None:
    records = [json.loads(line) for line in lines("json")]
    assert [record["event"] for record in records] == [
        "job.settled",
        "lost redis://***@host:6379/0",
        "refused",
        "job.broke",
    ]
    for record in records:
        assert (record["event_id"], record["job_id"]) == (7, 8)
        assert (record["claim_no"], record["queue"]) == (2, "builds.x")
        assert record["timestamp"].endswith("Z")
    assert records[0]["url"] == "amqp://***@host/vhost"
    assert records[1]["logger"] == "celery.worker"
    assert records[2]["status_code"] == 500
    assert "ValueError: broken" in records[3]["exception"]


def test_the_console_is_readable_and_shows_no_local_variables() -> None:
    text = "\n".join(lines("console"))
    assert "job.settled" in text
    assert "queue=builds.x" in text
    assert "ValueError: broken" in text
    assert not text.lstrip().startswith("{")


def test_loggers_that_were_used_before_logging_is_configured_again_can_be_captured() -> None:
    log = structlog.get_logger("tests.used_before")
    log.info("before")
    configure(settings.LOGGING)
    with capture_logs() as records:
        log.info("after")
    assert [record["event"] for record in records] == ["after"]
