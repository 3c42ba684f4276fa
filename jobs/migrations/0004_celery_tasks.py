from django.db import migrations, models
from django.db.models import Q
from django.db.models.functions import Now

# As Django creates it, but without an index of the ids for LIKE, which no query uses: each task would
# write to it.
CREATE = """
CREATE TABLE tailrace_jobs_celerytask (
  task_id text NOT NULL PRIMARY KEY,
  job_id bigint,
  state text NOT NULL DEFAULT '',
  meta jsonb,
  children jsonb,
  created_at timestamptz NOT NULL DEFAULT statement_timestamp()
);
CREATE INDEX tailrace_celerytask_job ON tailrace_jobs_celerytask (job_id);
CREATE INDEX tailrace_celerytask_groups ON tailrace_jobs_celerytask (created_at)
  WHERE job_id IS NULL
"""
DROP = "DROP TABLE tailrace_jobs_celerytask"


class Migration(migrations.Migration):
    """The ids of Celery tasks that run as jobs. No other table changes."""

    dependencies = [("tailrace_jobs", "0003_jobs_of_a_flow")]

    operations = [
        migrations.SeparateDatabaseAndState(
            [migrations.RunSQL(CREATE, DROP)],
            [
                migrations.CreateModel(
                    name="CeleryTask",
                    fields=[
                        ("task_id", models.TextField(primary_key=True, serialize=False)),
                        (
                            "job_id",
                            models.BigIntegerField(help_text="empty for a group", null=True),
                        ),
                        (
                            "state",
                            models.TextField(
                                blank=True,
                                db_default="",
                                default="",
                                help_text="stored while it runs, or at its end",
                            ),
                        ),
                        (
                            "meta",
                            models.JSONField(
                                blank=True,
                                help_text="stored with the state: `result` and `traceback`",
                                null=True,
                            ),
                        ),
                        (
                            "children",
                            models.JSONField(
                                blank=True, help_text="the tasks that it has called", null=True
                            ),
                        ),
                        ("created_at", models.DateTimeField(db_default=Now())),
                    ],
                    options={
                        "default_permissions": (),
                        "indexes": [
                            models.Index(fields=["job_id"], name="tailrace_celerytask_job"),
                            # The groups whose records are deleted by their age.
                            models.Index(
                                fields=["created_at"],
                                name="tailrace_celerytask_groups",
                                condition=Q(job_id__isnull=True),
                            ),
                        ],
                    },
                ),
            ],
        ),
    ]
