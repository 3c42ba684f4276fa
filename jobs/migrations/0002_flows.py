from django.db import migrations, models
from django.db.models import Q
from django.db.models.functions import Now

# The new columns are null in all rows, so no row is rewritten. The statement locks the table of
# jobs with all its days for some milliseconds. If it must wait for a long transaction, it gives up,
# so that no other session waits behind it: run `migrate` again.
LOCK = "SET LOCAL lock_timeout = '3s'"
UNLOCK = "SET LOCAL lock_timeout = DEFAULT"


class Migration(migrations.Migration):
    """Flows, and the dependencies between their jobs."""

    dependencies = [("tailrace_jobs", "0001_initial")]

    operations = [
        migrations.RunSQL(LOCK, UNLOCK),
        migrations.AddField(
            model_name="job",
            name="flow_id",
            field=models.BigIntegerField(blank=True, help_text="the flow it belongs to", null=True),
        ),
        migrations.AddField(
            model_name="job",
            name="flow_name",
            field=models.TextField(blank=True, help_text="its name in the flow", null=True),
        ),
        migrations.CreateModel(
            name="Flow",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.TextField(help_text="what it does, for operators")),
                (
                    "unique_key",
                    models.TextField(
                        blank=True,
                        help_text="a second flow with this key is not created",
                        null=True,
                    ),
                ),
                ("created_at", models.DateTimeField(db_default=Now())),
                (
                    "deadline_at",
                    models.DateTimeField(
                        blank=True,
                        help_text="jobs that are unfinished then are cancelled",
                        null=True,
                    ),
                ),
                (
                    "deadline_met",
                    models.BooleanField(
                        blank=True,
                        help_text="whether all jobs had ended then; empty: not checked yet",
                        null=True,
                    ),
                ),
                ("paused_at", models.DateTimeField(blank=True, null=True)),
                ("paused_by", models.TextField(blank=True, default="")),
                ("cancelled_at", models.DateTimeField(blank=True, null=True)),
                ("cancelled_by", models.TextField(blank=True, default="")),
                (
                    "copy_of",
                    models.BigIntegerField(
                        blank=True, help_text="the flow that was run again by this one", null=True
                    ),
                ),
            ],
            options={
                "permissions": [("change_flow_state", "Can cancel, pause, retry and replay flows")],
                "constraints": [
                    models.UniqueConstraint(
                        fields=["unique_key"],
                        name="tailrace_flow_unique_key",
                        condition=Q(unique_key__isnull=False),
                    ),
                ],
                "indexes": [
                    # The flows whose deadline is to be checked.
                    models.Index(
                        fields=["deadline_at"],
                        name="tailrace_flow_deadline",
                        condition=Q(deadline_at__isnull=False, deadline_met__isnull=True),
                    ),
                    # The flows whose jobs are held back.
                    models.Index(
                        fields=["paused_at"],
                        name="tailrace_flow_paused",
                        condition=Q(paused_at__isnull=False),
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Dependency",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "job_id",
                        "parent_id",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("job_id", models.BigIntegerField()),
                ("parent_id", models.BigIntegerField()),
                (
                    "need",
                    models.TextField(
                        choices=[
                            ("success", "completed or skipped"),
                            ("failure", "failed or cancelled; one of several is enough"),
                            ("end", "in any way"),
                        ],
                        default="success",
                    ),
                ),
                (
                    "position",
                    models.PositiveIntegerField(help_text="of the parent among those of its job"),
                ),
            ],
            options={
                "default_permissions": (),
                "indexes": [
                    # The jobs that wait for a job: its page, and jobs that are added to a flow.
                    models.Index(fields=["parent_id"], name="tailrace_dependency_parent"),
                ],
            },
        ),
    ]
