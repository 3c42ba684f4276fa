"""Helpers to test events and their jobs: see docs/how-to/testing.md. Not for production code."""

from tailrace.jobs.testing.clock import Clock
from tailrace.jobs.testing.owed import assert_not_owed, assert_owed
from tailrace.jobs.testing.perform import perform, run_owed
from tailrace.jobs.testing.perform_flow import run_flow
from tailrace.jobs.testing.receiver import ReceivedWebhook, WebhookReceiver, webhook_receiver

__all__ = [
    "Clock", "ReceivedWebhook", "WebhookReceiver", "assert_not_owed", "assert_owed", "perform",
    "run_flow", "run_owed", "webhook_receiver",
]  # fmt: skip
