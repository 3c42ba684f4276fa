import django.core.validators
import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models

import tailrace.subscriptions.models.person

LOCK_LIMIT = "SET LOCAL lock_timeout = '5s'"


class Migration(migrations.Migration):
    """New tables. The users' table is locked for a moment, for the foreign keys."""

    dependencies = [
        ("tailrace_subscriptions", "0007_confirmations"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.RunSQL(LOCK_LIMIT, migrations.RunSQL.noop),
        migrations.CreateModel(
            name="Plan",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "name",
                    models.TextField(
                        help_text="the API names the plan by it",
                        max_length=50,
                        unique=True,
                        validators=[django.core.validators.ProhibitNullCharactersValidator()],
                    ),
                ),
                (
                    "monitoring",
                    models.BooleanField(
                        db_default=False,
                        default=False,
                        help_text="its accounts are watched by the change feeds, which are polled once for all",
                    ),
                ),
                (
                    "rewrite_after",
                    models.BigIntegerField(
                        editable=False,
                        help_text="while the schedules of its subscriptions are rewritten: the last that is done",
                        null=True,
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="PlanSubscription",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "status",
                    models.TextField(
                        choices=[
                            ("active", "active"),
                            ("past_due", "past due"),
                            ("cancelled", "cancelled"),
                        ],
                        default="active",
                    ),
                ),
                (
                    "anchor_day",
                    models.PositiveSmallIntegerField(
                        help_text="day of the month of monthly jobs; 29 to 31 are the last day",
                        validators=[
                            django.core.validators.MinValueValidator(1),
                            django.core.validators.MaxValueValidator(31),
                        ],
                    ),
                ),
                (
                    "time_zone",
                    models.TextField(
                        default="UTC",
                        validators=[tailrace.subscriptions.models.person.check_time_zone],
                    ),
                ),
                (
                    "grace_until",
                    models.DateTimeField(
                        blank=True,
                        editable=False,
                        help_text="when its jobs stop; empty if they have",
                        null=True,
                    ),
                ),
                (
                    "last_runs",
                    models.JSONField(
                        default=dict,
                        editable=False,
                        help_text="when the jobs ran last of which it has no schedule now, by handler",
                    ),
                ),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), editable=False
                    ),
                ),
                (
                    "account",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="plan_subscription",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "plan",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="subscriptions",
                        to="tailrace_subscriptions.plan",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="PlanChange",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                (
                    "action",
                    models.TextField(
                        choices=[
                            ("enrolled", "Enrolled"),
                            ("changed", "Changed"),
                            ("past_due", "past due"),
                            ("grace_ended", "grace ended"),
                            ("resumed", "Resumed"),
                            ("cancelled", "Cancelled"),
                        ]
                    ),
                ),
                (
                    "details",
                    models.TextField(
                        db_default="", default="", help_text="old and new values, or why"
                    ),
                ),
                (
                    "by",
                    models.ForeignKey(
                        help_text="empty: the program, or somebody whose account is deleted",
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "subscription",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="changes",
                        to="tailrace_subscriptions.plansubscription",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="PlanJob",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "handler",
                    models.TextField(
                        help_text="its name",
                        max_length=200,
                        validators=[django.core.validators.ProhibitNullCharactersValidator()],
                    ),
                ),
                (
                    "frequency",
                    models.TextField(
                        choices=[("daily", "Daily"), ("weekly", "Weekly"), ("monthly", "Monthly")]
                    ),
                ),
                (
                    "installed",
                    models.BooleanField(
                        db_default=False,
                        default=False,
                        editable=False,
                        help_text="whether the handler is installed; without it there are no schedules",
                    ),
                ),
                (
                    "plan",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="jobs",
                        to="tailrace_subscriptions.plan",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("plan", "handler"), name="tailrace_plan_job_once"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("frequency__in", ["daily", "weekly", "monthly"])),
                        name="tailrace_plan_job_frequency",
                    ),
                ],
            },
        ),
        migrations.AddIndex(
            model_name="plansubscription",
            index=models.Index(fields=["plan", "id"], name="tailrace_subscription_of_plan"),
        ),
        migrations.AddIndex(
            model_name="plansubscription",
            index=models.Index(
                condition=models.Q(("grace_until__isnull", False)),
                fields=["grace_until"],
                name="tailrace_plan_in_grace",
            ),
        ),
        migrations.AddConstraint(
            model_name="plansubscription",
            constraint=models.CheckConstraint(
                condition=models.Q(("status__in", ["active", "past_due", "cancelled"])),
                name="tailrace_plan_subscription_status",
            ),
        ),
        migrations.AddConstraint(
            model_name="plansubscription",
            constraint=models.CheckConstraint(
                condition=models.Q(("anchor_day__gte", 1), ("anchor_day__lte", 31)),
                name="tailrace_plan_subscription_anchor_day",
            ),
        ),
        migrations.AddConstraint(
            model_name="plansubscription",
            constraint=models.CheckConstraint(
                condition=models.Q(("grace_until", None), ("status", "past_due"), _connector="OR"),
                name="tailrace_plan_subscription_grace",
            ),
        ),
        migrations.AddIndex(
            model_name="planchange",
            index=models.Index(fields=["subscription", "id"], name="tailrace_changes_of_plan"),
        ),
    ]
