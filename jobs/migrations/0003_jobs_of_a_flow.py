from typing import Any

from django.db import migrations, models
from django.db.models import Q

INDEX = "tailrace_job_of_flow"
LIVE, DONE = "tailrace_jobs_live", "tailrace_jobs_done"
TABLES = """
SELECT relname FROM pg_inherits JOIN pg_class ON pg_class.oid = inhrelid
WHERE inhparent = 'tailrace_jobs_job'::regclass ORDER BY relname
"""
# A build that was interrupted leaves an invalid index.
INVALID = """
SELECT 1 FROM pg_index WHERE indexrelid = to_regclass(%s) AND NOT indisvalid
"""


def names(schema_editor: Any) -> dict[str, str]:
    """Return the name of the index by partition; that of a day ends with the day."""
    with schema_editor.connection.cursor() as cursor:
        cursor.execute(TABLES)
        tables = [name for (name,) in cursor.fetchall()]
    return {table: INDEX + table.removeprefix(LIVE).removeprefix(DONE) for table in tables}


def concurrently(schema_editor: Any) -> str:
    """Return CONCURRENTLY, or an empty string in a transaction of the caller."""
    return "" if schema_editor.connection.in_atomic_block else "CONCURRENTLY"


def create(apps: Any, schema_editor: Any) -> None:
    """Create the index of each partition without blocking writers. The live jobs come first, since
    the partition of a new day gets their indexes."""
    live, how = {LIVE: INDEX}, concurrently(schema_editor)
    with schema_editor.connection.cursor() as cursor:
        for indexes in (live, names(schema_editor)):
            for table, index in indexes.items():
                cursor.execute(INVALID, [index])
                if cursor.fetchone():
                    cursor.execute(f'DROP INDEX {how} "{index}"')
                cursor.execute(
                    f'CREATE INDEX {how} IF NOT EXISTS "{index}" ON "{table}"'
                    " (flow_id, flow_name) WHERE flow_id IS NOT NULL"
                )


def drop(apps: Any, schema_editor: Any) -> None:
    how = concurrently(schema_editor)
    with schema_editor.connection.cursor() as cursor:
        for index in names(schema_editor).values():
            cursor.execute(f'DROP INDEX {how} IF EXISTS "{index}"')


class Migration(migrations.Migration):
    """The index by which the jobs of a flow are found."""

    atomic = False
    dependencies = [("tailrace_jobs", "0002_flows")]

    operations = [
        migrations.SeparateDatabaseAndState(
            [migrations.RunPython(create, drop)],
            [
                migrations.AddIndex(
                    "job",
                    models.Index(
                        fields=["flow_id", "flow_name"],
                        name=INDEX,
                        condition=Q(flow_id__isnull=False),
                    ),
                ),
            ],
        ),
    ]
