"""Migrations can be undone and done again; on tables with rows they rewrite none."""

import pytest
from django.apps import apps
from django.core.management import call_command
from django.db import OperationalError, connection
from django.db.migrations.loader import MigrationLoader

from tailrace.db.query import execute, query
from tailrace.jobs.enqueue import enqueue
from tailrace.jobs.models import Job, Queue
from tailrace.subscriptions.models import EventSubscription, Plan
from tests.kit import another_transaction, claimed, run_and_settle
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


@pytest.mark.long
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


FILES = """
SELECT relid::regclass::text, pg_relation_filenode(relid)
FROM pg_partition_tree('tailrace_jobs_job') WHERE isleaf ORDER BY 1
"""
OF_FLOW = """
SELECT indrelid::regclass::text FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid
WHERE starts_with(relname, 'tailrace_job_of_flow') AND indisvalid ORDER BY 1
"""


@pytest.mark.django_db(transaction=True)
def test_flows_come_to_a_table_with_jobs() -> None:
    """No table is rewritten, and each partition gets its index."""
    ids = {enqueue(Working), enqueue(Working)}
    run_and_settle(claimed("test.work", 1))
    call_command("migrate", "tailrace_jobs", "0001", verbosity=0)
    try:
        files = query(FILES)
    finally:
        call_command("migrate", verbosity=0)
    assert query(FILES) == files
    assert query(OF_FLOW) == [(name,) for name, _file in files]
    assert set(Job.objects.values_list("pk", flat=True)) == ids


@pytest.mark.django_db(transaction=True)
def test_an_interrupted_build_of_an_index_is_repeated() -> None:
    call_command("migrate", "tailrace_jobs", "0002", verbosity=0)
    try:
        execute("CREATE INDEX tailrace_job_of_flow ON tailrace_jobs_live (flow_id)")
        execute(
            "UPDATE pg_index SET indisvalid = false"
            " WHERE indexrelid = 'tailrace_job_of_flow'::regclass"
        )
    finally:
        call_command("migrate", verbosity=0)
    assert ("tailrace_jobs_live",) in query(OF_FLOW)


@pytest.mark.django_db(transaction=True)
def test_a_table_that_somebody_holds_is_not_waited_for_long() -> None:
    call_command("migrate", "tailrace_jobs", "0001", verbosity=0)
    try:
        with (
            another_transaction("SELECT * FROM tailrace_jobs_job"),
            pytest.raises(OperationalError, match="lock timeout"),
        ):
            call_command("migrate", "tailrace_jobs", "0002", verbosity=0)
    finally:
        call_command("migrate", verbosity=0)
