from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import migrations, models
from django.db.models import F, Q
from django.db.models.functions import Now

from tailrace.db.real_field import RealField

# A row of these is rewritten all the time. With the defaults (a fifth of the table) dead rows would
# pile up at the head of the partial indexes that every claim, and every tick, walks. The room that
# pages of jobs keep is for a further version of their rows: the renewal of a lease is a HOT update.
VACUUM_OFTEN = """
ALTER TABLE tailrace_jobs_live SET (fillfactor = 85, autovacuum_vacuum_scale_factor = 0.01,
  autovacuum_vacuum_threshold = 5000, autovacuum_analyze_scale_factor = 0.02,
  autovacuum_vacuum_cost_delay = 0);
ALTER TABLE tailrace_jobs_queue SET (fillfactor = 20, autovacuum_vacuum_threshold = 200,
  autovacuum_vacuum_scale_factor = 0);
ALTER TABLE tailrace_jobs_queueactivity SET (fillfactor = 20, autovacuum_vacuum_threshold = 200,
  autovacuum_vacuum_scale_factor = 0);
ALTER TABLE tailrace_jobs_schedule SET (autovacuum_vacuum_scale_factor = 0.01,
  autovacuum_vacuum_threshold = 1000, autovacuum_analyze_scale_factor = 0.05,
  autovacuum_vacuum_cost_delay = 0)
"""

# The live jobs are one partition, so that finished ones can have one per day, which
# `jobs.engine.maintenance.pruning.history` makes. An identity column cannot be attached, so ids come from a
# sequence.
DIVIDE = """
ALTER TABLE tailrace_jobs_live ALTER COLUMN id DROP IDENTITY;
CREATE SEQUENCE tailrace_jobs_job_id_seq AS bigint;
ALTER TABLE tailrace_jobs_live ALTER COLUMN id SET DEFAULT nextval('tailrace_jobs_job_id_seq');
CREATE TABLE tailrace_jobs_job (LIKE tailrace_jobs_live INCLUDING DEFAULTS)
  PARTITION BY LIST (done_on);
ALTER SEQUENCE tailrace_jobs_job_id_seq OWNED BY tailrace_jobs_job.id;
ALTER TABLE tailrace_jobs_job ATTACH PARTITION tailrace_jobs_live FOR VALUES IN (NULL)
"""
UNITE = """
ALTER TABLE tailrace_jobs_job DETACH PARTITION tailrace_jobs_live;
ALTER TABLE tailrace_jobs_live ALTER COLUMN id DROP DEFAULT;
DROP TABLE tailrace_jobs_job
"""

# Counters: a crash of PostgreSQL empties the table, and its writers wait for no disk.
UNLOGGED = "ALTER TABLE tailrace_jobs_total SET UNLOGGED"

ID = models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")


class Migration(migrations.Migration):
    """Queues, schedules, jobs and what is known of them."""

    initial = True
    dependencies = [
        ("tailrace_events", "0001_initial"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Queue",
            fields=[
                ("name", models.TextField(primary_key=True, serialize=False)),
                ("paused_at", models.DateTimeField(blank=True, null=True)),
                ("paused_by", models.TextField(blank=True, default="")),
                (
                    "max_running",
                    models.PositiveIntegerField(
                        blank=True,
                        help_text="jobs at once, all workers together; empty: as the handler",
                        null=True,
                    ),
                ),
                (
                    "rate_limit",
                    models.FloatField(
                        blank=True,
                        help_text="jobs per second, all workers together; empty: no limit",
                        null=True,
                    ),
                ),
                ("backfilled_xact", models.BigIntegerField(blank=True, editable=False, null=True)),
                ("backfilled_to", models.BigIntegerField(blank=True, editable=False, null=True)),
                ("retired_at", models.DateTimeField(blank=True, editable=False, null=True)),
            ],
            options={
                "ordering": ("name",),
                "permissions": [
                    ("pause_queue", "Can pause and resume a queue and change its limits")
                ],
                "constraints": [
                    # Pausing stops a queue, a limit of 0 would be a second way.
                    models.CheckConstraint(
                        name="tailrace_queue_rate_limit_above_zero",
                        condition=Q(rate_limit=None) | Q(rate_limit__gt=0),
                        violation_error_message="a rate limit is above 0; pause the queue to stop it",
                    ),
                    models.CheckConstraint(
                        name="tailrace_queue_max_running_above_zero",
                        condition=Q(max_running=None) | Q(max_running__gt=0),
                        violation_error_message="max_running is above 0; pause the queue to stop it",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="QueueActivity",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "name",
                        "slice",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("name", models.TextField(help_text="of the queue")),
                (
                    "slice",
                    models.BigIntegerField(
                        default=0,
                        help_text="moves on every few seconds, so that the newest version is found soon",
                    ),
                ),
                (
                    "awake",
                    models.BooleanField(
                        default=False, help_text="a message is out, no drain has begun"
                    ),
                ),
                ("awake_at", models.DateTimeField(null=True)),
                ("drained_at", models.DateTimeField(null=True)),
                (
                    "resends",
                    models.SmallIntegerField(default=0, help_text="messages since the last drain"),
                ),
                ("tokens", models.FloatField(default=0)),
                ("tokens_at", models.DateTimeField(db_default=Now())),
            ],
            options={
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="Throughput",
            fields=[
                ("id", ID),
                ("queue", models.TextField()),
                ("minute", models.DateTimeField()),
                ("completed", models.PositiveIntegerField(default=0)),
                ("retried", models.PositiveIntegerField(default=0)),
                ("failed", models.PositiveIntegerField(default=0)),
                ("busy_ms", models.PositiveBigIntegerField(default=0)),
            ],
            options={
                "constraints": [
                    # Drains add to the minute's row; the minute comes first, for the overview's ranges.
                    models.UniqueConstraint(
                        F("minute"), F("queue"), name="tailrace_throughput_per_minute"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="QueuePeriod",
            fields=[
                ("id", ID),
                ("queue", models.TextField()),
                ("seconds", models.PositiveIntegerField(help_text="length: 60, 600 or 3600")),
                ("at", models.DateTimeField(help_text="when it began")),
                ("completed", models.PositiveIntegerField(default=0)),
                ("retried", models.PositiveIntegerField(default=0)),
                ("failed", models.PositiveIntegerField(default=0)),
                ("busy_ms", models.PositiveBigIntegerField(default=0)),
                (
                    "wait",
                    models.JSONField(
                        default=dict, help_text="jobs by class of their time from due to claim"
                    ),
                ),
                (
                    "run",
                    models.JSONField(
                        default=dict, help_text="jobs by class of their time from claim to end"
                    ),
                ),
            ],
            options={
                "default_permissions": (),
                "constraints": [
                    # Adding up again changes nothing; it serves the charts of a queue, too.
                    models.UniqueConstraint(
                        fields=["queue", "seconds", "at"], name="tailrace_queue_period_once"
                    ),
                ],
                "indexes": [
                    # Each length is kept for a time of its own.
                    models.Index(fields=["seconds", "at"], name="tailrace_queue_period_age"),
                ],
            },
        ),
        migrations.CreateModel(
            name="Total",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "metric",
                        "name",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("metric", models.TextField()),
                ("name", models.TextField(help_text="of the queue, or of the event type")),
                ("numbers", ArrayField(base_field=models.FloatField())),
            ],
            options={
                "default_permissions": (),
            },
        ),
        migrations.RunSQL(UNLOGGED, migrations.RunSQL.noop),
        migrations.CreateModel(
            name="Pulse",
            fields=[
                (
                    "name",
                    models.TextField(
                        help_text="worker:<node name> <host>:<process>, or tick, sweep or prune",
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("at", models.DateTimeField(db_default=Now())),
                (
                    "queues",
                    models.JSONField(default=list, help_text="the queues that a worker listens on"),
                ),
                (
                    "by",
                    models.TextField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="the process that took the turn",
                    ),
                ),
                (
                    "facts",
                    models.JSONField(
                        db_default=models.Value({}, models.JSONField()),
                        default=dict,
                        help_text="of a worker: host, processes, memory and version of the code",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Schedule",
            fields=[
                ("id", ID),
                ("name", models.TextField(unique=True)),
                ("handler", models.TextField()),
                ("routing_key", models.TextField(blank=True, default="")),
                ("payload", models.JSONField(blank=True, null=True)),
                ("every_seconds", models.FloatField(blank=True, null=True)),
                (
                    "cron",
                    models.TextField(
                        blank=True, default="", help_text="minute hour day month weekday"
                    ),
                ),
                ("time_zone", models.TextField(default="UTC")),
                (
                    "spread",
                    models.FloatField(
                        db_default=0,
                        default=0,
                        help_text="seconds: each slot is later by a fixed part of them, which the name decides",
                    ),
                ),
                (
                    "owner",
                    models.TextField(
                        blank=True, default="", help_text="code, or the user who created it"
                    ),
                ),
                (
                    "catch_up",
                    models.TextField(
                        choices=[
                            ("latest", "run once for all slots that were missed"),
                            ("all", "run each slot that was missed"),
                            ("skip", "skip slots that were missed"),
                        ],
                        default="latest",
                    ),
                ),
                ("enabled", models.BooleanField(default=True)),
                ("next_run_at", models.DateTimeField(db_default=Now())),
                (
                    "last_run_at",
                    models.DateTimeField(
                        editable=False,
                        help_text="the last slot for which a job was created",
                        null=True,
                    ),
                ),
                (
                    "retired_at",
                    models.DateTimeField(
                        editable=False,
                        help_text="since when it is disabled because the code no longer declares it",
                        null=True,
                    ),
                ),
            ],
            options={
                "constraints": [
                    # Exactly one of the two says when.
                    models.CheckConstraint(
                        name="tailrace_schedule_by_interval_or_cron",
                        condition=Q(cron="", every_seconds__gt=0, every_seconds__isnull=False)
                        | Q(every_seconds=None) & ~Q(cron=""),
                        violation_error_message="give either every_seconds (above 0) or cron",
                    ),
                ],
                "indexes": [
                    # What each tick walks: the due schedules first.
                    models.Index(
                        fields=["next_run_at"],
                        name="tailrace_schedule_next",
                        condition=Q(enabled=True),
                    ),
                    # The operators of this class compare beginnings, whatever the database's collation.
                    models.Index(
                        fields=["owner"],
                        name="tailrace_schedule_owner",
                        opclasses=["text_pattern_ops"],
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="FailureGroup",
            fields=[
                (
                    "id",
                    models.BigIntegerField(
                        help_text="made from what its failures have in common",
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("handler", models.TextField()),
                ("error_class", models.TextField(blank=True)),
                (
                    "frame",
                    models.TextField(
                        blank=True, help_text="where in our code the error was raised"
                    ),
                ),
                (
                    "message",
                    models.TextField(
                        blank=True,
                        help_text="without numbers, ids, quotes and addresses, which differ",
                    ),
                ),
                (
                    "failures",
                    models.BigIntegerField(
                        default=0,
                        help_text="attempts that failed so, with those that were tried again",
                    ),
                ),
                ("first_seen_at", models.DateTimeField(db_default=Now())),
                ("last_seen_at", models.DateTimeField(db_default=Now())),
                (
                    "assignee",
                    models.ForeignKey(
                        blank=True,
                        db_index=False,
                        help_text="who looks after it",
                        null=True,
                        on_delete=models.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "silenced_until",
                    models.DateTimeField(
                        blank=True,
                        help_text="until then it raises no alert and is counted apart; UTC",
                        null=True,
                    ),
                ),
                ("note", models.TextField(blank=True, default="", max_length=4000)),
            ],
            options={
                "verbose_name": "failure",
                "indexes": [
                    # The list of failures, the latest first, and what is pruned.
                    models.Index(fields=["last_seen_at"], name="tailrace_failure_last_seen"),
                    # The list in the order of their first time: what is new.
                    models.Index(fields=["first_seen_at"], name="tailrace_failure_first_seen"),
                    # The list in the order of their number.
                    models.Index(fields=["failures"], name="tailrace_failure_count"),
                    # The failures of one handler, the latest first.
                    models.Index(
                        fields=["handler", "last_seen_at"], name="tailrace_failure_of_handler"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="FailureHour",
            fields=[
                ("id", ID),
                (
                    "group",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=models.DO_NOTHING,
                        related_name="hours",
                        to="tailrace_jobs.failuregroup",
                    ),
                ),
                ("hour", models.DateTimeField()),
                ("failures", models.PositiveIntegerField(default=0)),
            ],
            options={
                "default_permissions": (),
                "constraints": [
                    # Failures are added to the hour's row; it serves a group's sparkline, too.
                    models.UniqueConstraint(
                        fields=["group", "hour"], name="tailrace_failures_per_hour"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Job",
            fields=[
                ("id", ID),
                (
                    "handler",
                    models.TextField(
                        help_text="name of the handler, of its queue and of its Celery task"
                    ),
                ),
                (
                    "event",
                    models.ForeignKey(
                        blank=True,
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        on_delete=models.DO_NOTHING,
                        related_name="jobs",
                        to="tailrace_events.event",
                    ),
                ),
                (
                    "routing_key",
                    models.TextField(blank=True, default="", help_text="key of the destination"),
                ),
                ("payload", models.JSONField(blank=True, null=True)),
                (
                    "state",
                    models.TextField(
                        choices=[
                            ("waiting", "Waiting"),
                            ("pending", "Pending"),
                            ("running", "Running"),
                            ("completed", "Completed"),
                            ("skipped", "Skipped"),
                            ("cancelled", "Cancelled"),
                            ("failed", "Failed"),
                        ],
                        default="pending",
                    ),
                ),
                (
                    "priority",
                    models.PositiveSmallIntegerField(default=1, help_text="0 (first) to 3"),
                ),
                ("lane", models.TextField(blank=True, default="")),
                ("due_at", models.DateTimeField(db_default=Now())),
                ("attempt", models.PositiveIntegerField(default=0, help_text="attempts started")),
                (
                    "claim_no",
                    models.PositiveIntegerField(
                        default=0, help_text="claims so far; the fencing token"
                    ),
                ),
                ("lease_until", models.DateTimeField(blank=True, null=True)),
                ("worker", models.TextField(blank=True, default="")),
                (
                    "begun",
                    models.BooleanField(
                        db_default=True,
                        default=True,
                        help_text="of a running job: its call has begun; if not, it waits for others of its claim",
                    ),
                ),
                (
                    "isolate",
                    models.BooleanField(
                        default=False, help_text="claimed alone: its worker was lost"
                    ),
                ),
                (
                    "suspect_group",
                    models.IntegerField(
                        blank=True,
                        help_text="jobs of a failed batch: each group is called by itself",
                        null=True,
                    ),
                ),
                (
                    "after",
                    models.ForeignKey(
                        blank=True,
                        db_constraint=False,
                        db_index=False,
                        help_text="the job it waits for",
                        null=True,
                        on_delete=models.DO_NOTHING,
                        related_name="continuations",
                        to="tailrace_jobs.job",
                    ),
                ),
                (
                    "copy_of",
                    models.BigIntegerField(
                        blank=True,
                        help_text="the job that was run again, with another payload",
                        null=True,
                    ),
                ),
                ("unique_key", models.TextField(blank=True, null=True)),
                (
                    "merged",
                    models.IntegerField(
                        db_default=0,
                        default=0,
                        help_text="jobs of the same unique key that were merged into it",
                    ),
                ),
                (
                    "has_dependents",
                    models.BooleanField(
                        db_default=False,
                        default=False,
                        help_text="another job waits for it, or has waited",
                    ),
                ),
                (
                    "schedule",
                    models.ForeignKey(
                        blank=True,
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        on_delete=models.DO_NOTHING,
                        to="tailrace_jobs.schedule",
                    ),
                ),
                ("slot", models.DateTimeField(blank=True, null=True)),
                ("progress_done", models.PositiveBigIntegerField(blank=True, null=True)),
                ("progress_total", models.PositiveBigIntegerField(blank=True, null=True)),
                ("progress_note", models.TextField(blank=True, default="")),
                ("result", models.JSONField(blank=True, null=True)),
                (
                    "error",
                    models.TextField(blank=True, default="", help_text="why it is in this state"),
                ),
                ("created_at", models.DateTimeField(db_default=Now())),
                ("started_at", models.DateTimeField(blank=True, null=True)),
                (
                    "call_after",
                    RealField(
                        blank=True,
                        help_text="seconds from the claim until the call of the handler began",
                        null=True,
                    ),
                ),
                (
                    "call_took",
                    RealField(
                        blank=True,
                        help_text="seconds that the call took, with the other jobs of its batch",
                        null=True,
                    ),
                ),
                ("finished_at", models.DateTimeField(blank=True, null=True)),
                ("cancel_requested", models.BooleanField(default=False)),
                (
                    "done_on",
                    models.DateField(
                        blank=True,
                        editable=False,
                        help_text="the day (UTC) whose partition of finished jobs has it; empty: it is among the live ones",
                        null=True,
                    ),
                ),
                (
                    "failure_group",
                    models.ForeignKey(
                        blank=True,
                        db_constraint=False,
                        db_index=False,
                        help_text="of its last attempt that failed",
                        null=True,
                        on_delete=models.DO_NOTHING,
                        related_name="jobs",
                        to="tailrace_jobs.failuregroup",
                    ),
                ),
            ],
            options={
                "db_table": "tailrace_jobs_live",
                "permissions": [
                    ("replay_job", "Can replay, retry and cancel jobs"),
                    ("view_job_payload", "Can view the payload and result of a job"),
                    (
                        "change_job_payload",
                        "Can run a job of any queue again with a changed payload",
                    ),
                ],
                "constraints": [
                    # An event creates a job of a handler and destination once, however often it is tried.
                    models.UniqueConstraint(
                        fields=["event", "handler", "routing_key"],
                        name="tailrace_job_owed_once",
                        condition=Q(event__isnull=False),
                    ),
                    # Jobs of one key are merged while they have not begun.
                    models.UniqueConstraint(
                        fields=["handler", "unique_key"],
                        name="tailrace_job_unique_key",
                        condition=Q(state__in=("waiting", "pending"), unique_key__isnull=False),
                    ),
                    # A claim asks for these priorities and no other.
                    models.CheckConstraint(
                        name="tailrace_job_priority_0_to_3", condition=Q(priority__lte=3)
                    ),
                ],
                "indexes": [
                    # The order of claims.
                    models.Index(
                        fields=["handler", "priority", "due_at", "id"],
                        name="tailrace_job_due",
                        condition=Q(state="pending"),
                    ),
                    # The order of claims within a lane, and the walk from lane to lane.
                    models.Index(
                        fields=["handler", "lane", "priority", "due_at", "id"],
                        name="tailrace_job_lane_due",
                        condition=Q(state="pending") & ~Q(lane=""),
                    ),
                    # The oldest job of a lane that keeps its order.
                    models.Index(
                        fields=["handler", "lane", "id"],
                        name="tailrace_job_lane_head",
                        condition=Q(state="pending") & ~Q(lane=""),
                    ),
                    # Of columns that do not change while a job runs, and so not of `lease_until`: a renewal is a
                    # HOT update, which writes to no index.
                    models.Index(
                        fields=["handler", "lane"],
                        name="tailrace_job_running",
                        condition=Q(state="running"),
                    ),
                    # The jobs to be released, or cancelled, with the end of another.
                    models.Index(
                        fields=["after"],
                        name="tailrace_job_waits_for",
                        condition=Q(after__isnull=False, state__in=("waiting", "cancelled")),
                    ),
                    # All that waited for a job: its page.
                    models.Index(
                        fields=["after"],
                        name="tailrace_job_after",
                        condition=Q(after__isnull=False),
                    ),
                    # The jobs that ran it again: its page.
                    models.Index(
                        fields=["copy_of"],
                        name="tailrace_job_copies",
                        condition=Q(copy_of__isnull=False),
                    ),
                    # The failed jobs of a queue: counts, lists, replays.
                    models.Index(
                        fields=["handler", "id"],
                        name="tailrace_job_failed",
                        condition=Q(state="failed"),
                    ),
                    # The failed jobs of a group: its page and its replay.
                    models.Index(
                        fields=["failure_group", "id"],
                        name="tailrace_job_failed_alike",
                        condition=Q(state="failed"),
                    ),
                    # What is to be moved to the history, or pruned, the oldest first.
                    models.Index(
                        fields=["finished_at"],
                        name="tailrace_job_done",
                        condition=Q(finished_at__isnull=False) & ~Q(state="failed"),
                    ),
                    # Failed jobs apart from the others by the time of their end: they stay longer.
                    models.Index(
                        fields=["finished_at"],
                        name="tailrace_job_failed_at",
                        condition=Q(state="failed"),
                    ),
                    # Whether the last run of a schedule is still to be done.
                    models.Index(
                        fields=["schedule"],
                        name="tailrace_job_scheduled",
                        condition=Q(
                            schedule__isnull=False, state__in=("waiting", "pending", "running")
                        ),
                    ),
                ],
            },
        ),
        # Its indexes are those of the live partition; each day gets its own when it is made.
        migrations.SeparateDatabaseAndState(
            [migrations.RunSQL(DIVIDE, UNITE)], [migrations.AlterModelTable("job", None)]
        ),
        migrations.CreateModel(
            name="Attempt",
            fields=[
                ("id", ID),
                (
                    "job",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=models.DO_NOTHING,
                        related_name="attempts",
                        to="tailrace_jobs.job",
                    ),
                ),
                ("claim_no", models.PositiveIntegerField()),
                ("started_at", models.DateTimeField(null=True)),
                (
                    "call_after",
                    RealField(
                        blank=True,
                        help_text="seconds from the claim until the call of the handler began",
                        null=True,
                    ),
                ),
                (
                    "call_took",
                    RealField(
                        blank=True,
                        help_text="seconds that the call took, with the other jobs of its batch",
                        null=True,
                    ),
                ),
                ("finished_at", models.DateTimeField(db_default=Now())),
                (
                    "outcome",
                    models.TextField(
                        choices=[
                            ("retried", "Retried"),
                            ("failed", "Failed"),
                            ("snoozed", "Snoozed"),
                            ("lost", "Lost"),
                            ("interrupted", "Interrupted"),
                        ]
                    ),
                ),
                (
                    "times",
                    models.IntegerField(
                        db_default=1,
                        help_text="claims that ended so, one after the other; above 1 for snoozes",
                    ),
                ),
                ("error_class", models.TextField(blank=True, default="")),
                ("message", models.TextField(blank=True, default="")),
                ("traceback", models.TextField(blank=True, default="", help_text="cut to 8 KB")),
                ("worker", models.TextField(blank=True, default="")),
            ],
            options={
                "constraints": [
                    # One claim ends once: a second row for it would be a second settlement.
                    # It is the index by job, too.
                    models.UniqueConstraint(
                        fields=["job", "claim_no"], name="tailrace_attempt_settled_once"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="LogLines",
            fields=[
                ("id", ID),
                (
                    "job",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=models.DO_NOTHING,
                        related_name="+",
                        to="tailrace_jobs.job",
                    ),
                ),
                ("claim_no", models.PositiveIntegerField()),
                (
                    "first",
                    models.PositiveIntegerField(
                        help_text="number of the first line; the claim's first is 1"
                    ),
                ),
                ("last", models.PositiveIntegerField()),
                ("lines", models.JSONField(help_text="a list of number, time and text")),
            ],
            options={
                "default_permissions": (),
                "constraints": [
                    # Lines that are sent again are stored once. It is the index by job, too.
                    models.UniqueConstraint(
                        fields=["job", "claim_no", "first"], name="tailrace_log_lines_once"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Slot",
            fields=[
                ("id", ID),
                (
                    "schedule",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=models.DO_NOTHING,
                        related_name="slots",
                        to="tailrace_jobs.schedule",
                    ),
                ),
                ("at", models.DateTimeField()),
                (
                    "outcome",
                    models.TextField(
                        choices=[
                            ("ran", "Ran"),
                            ("merged", "Merged"),
                            ("skipped", "Skipped"),
                            ("missed", "Missed"),
                        ]
                    ),
                ),
                ("reason", models.TextField(blank=True, default="")),
                (
                    "job",
                    models.ForeignKey(
                        blank=True,
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        on_delete=models.DO_NOTHING,
                        related_name="+",
                        to="tailrace_jobs.job",
                    ),
                ),
                ("recorded_at", models.DateTimeField(db_default=Now())),
            ],
            options={
                "constraints": [
                    # A slot has one outcome, whoever records it. It is the index by schedule, too.
                    models.UniqueConstraint(fields=["schedule", "at"], name="tailrace_slot_once"),
                ],
                "indexes": [
                    # What is pruned.
                    models.Index(fields=["recorded_at"], name="tailrace_slot_recorded_at"),
                ],
            },
        ),
        migrations.CreateModel(
            name="RequestKey",
            fields=[
                ("id", ID),
                (
                    "user",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=models.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("key", models.TextField()),
                (
                    "digest",
                    models.TextField(
                        help_text="SHA-256 of the request that came with the key first"
                    ),
                ),
                (
                    "job_id",
                    models.BigIntegerField(help_text="no foreign key: jobs are pruned", null=True),
                ),
                ("created_at", models.DateTimeField(db_default=Now())),
            ],
            options={
                "default_permissions": (),
                "constraints": [
                    # A key stands for one request of its user.
                    models.UniqueConstraint(
                        fields=["user", "key"], name="tailrace_request_key_once"
                    ),
                ],
                "indexes": [
                    # What is pruned.
                    models.Index(fields=["created_at"], name="tailrace_request_key_age"),
                ],
            },
        ),
        migrations.CreateModel(
            name="Replay",
            fields=[
                ("id", ID),
                (
                    "user",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=models.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("what", models.TextField(help_text="the filter, or the jobs that were chosen")),
                ("jobs", models.PositiveIntegerField(default=0)),
                ("at", models.DateTimeField(db_default=Now())),
                ("undone_at", models.DateTimeField(null=True)),
            ],
            options={
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="ReplayedJob",
            fields=[
                ("id", ID),
                (
                    "replay",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=models.DO_NOTHING,
                        related_name="replayed",
                        to="tailrace_jobs.replay",
                    ),
                ),
                (
                    "job",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=models.DO_NOTHING,
                        related_name="+",
                        to="tailrace_jobs.job",
                    ),
                ),
                ("before", models.JSONField(help_text="the columns that a replay changes")),
                ("at", models.DateTimeField(db_default=Now())),
            ],
            options={
                "default_permissions": (),
                "constraints": [
                    # A job is put back once. It is the index by replay, too.
                    models.UniqueConstraint(
                        fields=["replay", "job"], name="tailrace_job_replayed_once"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="SearchValue",
            fields=[
                ("id", ID),
                ("field", models.TextField()),
                ("value", models.TextField()),
                ("event_id", models.BigIntegerField(null=True)),
                ("job_id", models.BigIntegerField(null=True)),
                ("at", models.DateTimeField(db_default=Now())),
            ],
            options={
                "default_permissions": (),
                "indexes": [
                    # The newest events and jobs with a value.
                    models.Index(fields=["field", "value", "id"], name="tailrace_search_value"),
                ],
            },
        ),
        migrations.CreateModel(
            name="Breaker",
            fields=[
                (
                    "name",
                    models.TextField(
                        help_text="queue and destination", primary_key=True, serialize=False
                    ),
                ),
                ("failures", models.PositiveIntegerField(default=0, help_text="failures in a row")),
                (
                    "opened",
                    models.PositiveIntegerField(
                        default=0, help_text="times since the last success"
                    ),
                ),
                (
                    "open_until",
                    models.DateTimeField(
                        blank=True,
                        help_text="nothing is sent until then; then one message, as a test",
                        null=True,
                    ),
                ),
                ("last_error", models.TextField(blank=True, default="")),
                ("failed_at", models.DateTimeField(blank=True, null=True)),
            ],
            options={
                "permissions": [("close_breaker", "Can have a destination tried at once")],
            },
        ),
        migrations.CreateModel(
            name="Bucket",
            fields=[
                (
                    "name",
                    models.TextField(
                        help_text="queue and destination", primary_key=True, serialize=False
                    ),
                ),
                ("tokens", models.FloatField()),
                ("at", models.DateTimeField(help_text="when the tokens were counted")),
            ],
        ),
        migrations.CreateModel(
            name="SweepRun",
            fields=[
                ("id", ID),
                ("invariant", models.TextField()),
                (
                    "outcome",
                    models.TextField(
                        choices=[
                            ("checked", "Checked"),
                            ("skipped", "skipped: another sweep was checking it"),
                            ("error", "Error"),
                        ]
                    ),
                ),
                ("found", models.PositiveIntegerField(default=0)),
                ("repaired", models.PositiveIntegerField(default=0)),
                (
                    "checks",
                    models.PositiveIntegerField(
                        db_default=1, help_text="checks in a row like this one"
                    ),
                ),
                (
                    "started_at",
                    models.DateTimeField(db_default=Now(), help_text="when the last of them began"),
                ),
                ("duration_ms", models.PositiveIntegerField(default=0)),
                ("error", models.TextField(blank=True, default="")),
            ],
            options={
                "indexes": [
                    # The latest check of each invariant.
                    models.Index(fields=["invariant", "-id"], name="tailrace_sweep_invariant"),
                    # What is pruned.
                    models.Index(fields=["started_at"], name="tailrace_sweep_started_at"),
                ],
            },
        ),
        migrations.RunSQL(VACUUM_OFTEN, migrations.RunSQL.noop),
    ]
