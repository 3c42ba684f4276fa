"""A project whose tasks are the suite's, with nothing but tailrace.events and tailrace.jobs."""

from tests.celery_suite.project.celery import app as celery_app

__all__ = ["celery_app"]
