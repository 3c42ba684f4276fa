"""Each app has one initial migration, which can be undone and done again."""

import pytest
from django.apps import apps
from django.core.management import call_command
from django.db import connection
from django.db.migrations.loader import MigrationLoader

from tailrace.db.query import query
from tailrace.jobs.enqueue import enqueue
from tailrace.jobs.models import Job, Queue
from tailrace.subscriptions.models import EventSubscription, Plan
from tests.sandbox.handlers import Working

pytestmark = pytest.mark.django_db

# Upkeep makes the days.
COLUMNS = """
SELECT c.relname, c.relkind, c.reloptions, a.attname, format_type(a.atttypid, a.atttypmod)
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
WHERE c.relnamespace = 'public'::regnamespace AND starts_with(c.relname, 'tailrace_')
  AND c.relname !~ '_\\d{8}$' AND NOT starts_with(c.relname, 'tailrace_jobs_done_')
  AND a.attnum > 0
ORDER BY c.relname, a.attnum
"""
"""SQL of what tables, indexes and sequences there are, with their columns."""


def labels() -> list[str]:
    migrated = MigrationLoader(connection).migrated_apps
    names = {app.label: app.name for app in apps.get_app_configs()}
    return [label for label in sorted(migrated) if names[label].startswith("tailrace.")]


def test_no_migration_is_for_what_was_never_released() -> None:
    loader = MigrationLoader(connection)
    initial = {label: loader.get_migration(label, "0001_initial") for label in labels()}
    assert len(initial) == 9
    assert all(migration.initial for migration in initial.values())


def test_each_apps_tables_go_and_come_back() -> None:
    columns = query(COLUMNS)
    counts = [each.objects.count() for each in (Queue, EventSubscription)]
    enqueue(Working)
    for label in labels():
        call_command("migrate", label, "zero", verbosity=0)
    assert query(COLUMNS) == []
    call_command("migrate", verbosity=0)
    assert query(COLUMNS) == columns
    assert [each.objects.count() for each in (Queue, EventSubscription)] == counts
    assert Plan.objects.count() == 3
    enqueue(Working)
    assert Job.objects.count() == 1
