from typing import Literal

from pydantic import Field

from tailrace.environment.insecure import Insecure
from tailrace.environment.settings import AppSettings
from tailrace.environment.types import Names


class JobsSettings(AppSettings):
    """How jobs are run, and how long their records are kept."""

    prefixes = ("JOBS_", "SHUTDOWN_")
    insecure = (
        Insecure(
            "tailrace.E119",
            "HEALTH_TOKEN: is shorter than 20 characters",
            lambda own: 0 < len(own.HEALTH_TOKEN) < 20,
            "Set it to 40 random characters, or leave it empty.",
        ),
    )

    JOBS_RETENTION_DAYS: int = Field(30, ge=1, le=36_500)
    """days that finished jobs are kept"""
    JOBS_FAILED_RETENTION_DAYS: int = Field(90, ge=1, le=36_500)
    """days that failed jobs are kept"""
    JOBS_RECORDS_RETENTION_DAYS: int = Field(7, ge=1, le=36_500)
    """days that slots, sweep runs and statistics per minute are kept"""
    JOBS_DRAIN_SECONDS: int = Field(5, ge=1, le=60)
    """seconds after which a worker turns to the next queue"""
    JOBS_TIME_LIMIT: int = Field(600, ge=1, le=86_400)
    """seconds that one call of a handler may take"""
    JOBS_ASYNC_TIME_LIMIT: int = Field(60, ge=1, le=86_400)
    """seconds that one call of an async handler may take, which mostly waits for the network"""
    SHUTDOWN_TIMEOUT: int = Field(25, ge=1, le=3600)
    """seconds that running calls may still take when their worker shuts down; then they are
    interrupted and their jobs run elsewhere"""
    JOBS_WAKE: Literal["thread", "inline", "off"] = "thread"
    """where wake-ups are sent after a commit: in a thread of the process, or in the thread of the
    publisher; off: none are sent, as in the tests of a project"""
    JOBS_SWEEP_SECONDS: int = Field(15, ge=1, le=3600)
    """seconds between two sweeps"""
    JOBS_ERROR_REPORTERS: Names = ["tailrace.jobs.runtime.report.to_log"]
    """functions that are called after each failed attempt, by dotted path; Sentry is added if
    SENTRY_DSN is set"""
    JOBS_REPORTED_ERRORS: Names = [
        "WorkerLost",
        "tailrace.jobs.handler.outcomes.LeaseLost",
        "builtins.ConnectionRefusedError",
        "builtins.ConnectionResetError",
        "builtins.TimeoutError",
        "django.db.utils.OperationalError",
    ]
    """exception classes, by dotted path, whose message (the first line) is in error reports; of
    other exceptions, whose messages may quote payloads, reports contain only the class"""
    HEALTH_TOKEN: str = ""
    """token with which monitoring reads counts and names of queues at /healthz and /metrics, sent
    as `Authorization: Bearer …`; empty: only staff can read them, and /metrics only with the
    permission tailrace_jobs.view_queue"""
