import datetime
from typing import Any

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.core import validators
from django.db import migrations, models
from django.db.models import F, Q
from django.db.models.functions import Now

from tailrace.subscriptions.models.person import check_time_zone
from tailrace.subscriptions.types.channel import channel_choices

# An endpoint's messages, the newest first, and its recoveries. Of the jobs of webhooks alone, so
# that it costs those of other handlers nothing.
CREATE_JOBS_OF_ENDPOINT = """
CREATE INDEX tailrace_job_of_endpoint ON tailrace_jobs_live (lane, id DESC)
WHERE handler IN (
  'subscriptions.webhook', 'subscriptions.webhook_test', 'subscriptions.webhook_recovery')
"""
DROP_JOBS_OF_ENDPOINT = "DROP INDEX tailrace_job_of_endpoint"

DARKWATCH, HOMETITLE = "protection.darkwatch_scan", "protection.hometitle_scan"
REPORTS = "protection.reports_generate"
PLANS = {
    "basic": (False, {DARKWATCH: "monthly", HOMETITLE: "monthly"}),
    "plus": (False, {DARKWATCH: "weekly", HOMETITLE: "weekly", REPORTS: "monthly"}),
    "premium": (True, {DARKWATCH: "daily", HOMETITLE: "daily", REPORTS: "weekly"}),
}
"""The jobs of each plan, and whether it has monitoring; operators edit them afterwards."""


def create_plans(apps: Any, schema_editor: Any) -> None:
    """Create the plans that are not there yet."""
    plans, jobs = (apps.get_model("tailrace_subscriptions", name) for name in ("Plan", "PlanJob"))
    for name, (monitoring, table) in PLANS.items():
        plan, created = plans.objects.get_or_create(name=name, defaults={"monitoring": monitoring})
        for handler, frequency in table.items() if created else ():
            jobs.objects.create(plan=plan, handler=handler, frequency=frequency)


ID = models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")


class Migration(migrations.Migration):
    """Who is notified of what, by which channel; and plans."""

    initial = True
    dependencies = [
        ("auth", "0012_alter_user_first_name_max_length"),
        ("tailrace_events", "0001_initial"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ("tailrace_jobs", "0001_initial"),
    ]

    operations = [
        migrations.CreateModel(
            name="Preferences",
            fields=[
                (
                    "user",
                    models.OneToOneField(
                        on_delete=models.CASCADE,
                        primary_key=True,
                        related_name="preferences",
                        serialize=False,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("time_zone", models.TextField(default="UTC", validators=[check_time_zone])),
                (
                    "digest_at",
                    models.TimeField(
                        default=datetime.time(8, 0), help_text="time of daily and weekly digests"
                    ),
                ),
                (
                    "digest_weekday",
                    models.PositiveSmallIntegerField(
                        default=0,
                        help_text="day of weekly digests; 0 is Monday",
                        validators=[validators.MaxValueValidator(6)],
                    ),
                ),
                (
                    "phone",
                    models.TextField(
                        blank=True,
                        default="",
                        help_text="for text messages (E.164)",
                        validators=[
                            validators.RegexValidator(
                                "^\\+[1-9]\\d{6,14}$", "a number such as +4930123456"
                            )
                        ],
                    ),
                ),
                (
                    "confirmed_phone",
                    models.TextField(
                        db_default="",
                        default="",
                        editable=False,
                        help_text="the number that was confirmed by a code; another one gets no texts",
                    ),
                ),
                (
                    "phone_since",
                    models.DateTimeField(
                        editable=False,
                        help_text="when the number was entered",
                        null=True,
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "preferences",
            },
        ),
        migrations.CreateModel(
            name="PhoneCode",
            fields=[
                (
                    "user",
                    models.OneToOneField(
                        on_delete=models.CASCADE,
                        primary_key=True,
                        related_name="phone_code",
                        serialize=False,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("phone", models.TextField()),
                ("code_hash", models.TextField(default="", help_text="empty until a code is sent")),
                ("expires_at", models.DateTimeField(null=True)),
                (
                    "tries",
                    models.PositiveSmallIntegerField(default=0, help_text="wrong codes entered"),
                ),
                ("try_after", models.DateTimeField(help_text="after a wrong code", null=True)),
                (
                    "requests",
                    models.PositiveSmallIntegerField(
                        default=0, help_text="codes that were asked for"
                    ),
                ),
                (
                    "request_after",
                    models.DateTimeField(help_text="when another may be asked for", null=True),
                ),
            ],
        ),
        migrations.CreateModel(
            name="GroupAddress",
            fields=[
                (
                    "group",
                    models.OneToOneField(
                        on_delete=models.CASCADE,
                        primary_key=True,
                        related_name="address",
                        serialize=False,
                        to="auth.group",
                    ),
                ),
                ("email", models.EmailField(max_length=254)),
            ],
            options={
                "verbose_name_plural": "group addresses",
            },
        ),
        migrations.CreateModel(
            name="EventSubscription",
            fields=[
                ("id", ID),
                (
                    "event_type",
                    models.TextField(help_text="an event type, a family of types, or * for all"),
                ),
                ("role", models.TextField(help_text="the receiver role, e.g. maintainer")),
                (
                    "user",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=models.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "group",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=models.CASCADE,
                        related_name="+",
                        to="auth.group",
                    ),
                ),
                ("channel", models.TextField(choices=channel_choices)),
                ("state", models.TextField(choices=[("on", "On"), ("off", "Off")], default="on")),
                (
                    "pace",
                    models.TextField(
                        choices=[
                            ("instant", "Instant"),
                            ("hourly", "Hourly"),
                            ("daily", "Daily"),
                            ("weekly", "Weekly"),
                        ],
                        db_default="instant",
                        default="instant",
                        help_text="for mail: at once or in a digest",
                    ),
                ),
                (
                    "subject_pattern",
                    models.TextField(
                        blank=True,
                        default="",
                        help_text="only these subjects, e.g. devel:*, where * matches any text; empty: all",
                        max_length=200,
                        validators=[validators.ProhibitNullCharactersValidator()],
                    ),
                ),
            ],
            options={
                "constraints": [
                    # One row decides; without a user and a group, it is everybody's default.
                    models.UniqueConstraint(
                        fields=["event_type", "role", "channel", "user", "group"],
                        name="tailrace_subscription_once",
                        nulls_distinct=False,
                    ),
                    models.CheckConstraint(
                        name="tailrace_subscription_user_or_group",
                        condition=Q(user=None) | Q(group=None),
                    ),
                    # A part of a type cannot be off: no row for it says so.
                    models.CheckConstraint(
                        name="tailrace_subscription_off_is_whole",
                        condition=Q(state="on") | Q(subject_pattern=""),
                    ),
                    # Other channels have no digests.
                    models.CheckConstraint(
                        name="tailrace_subscription_pace_of_mail",
                        condition=Q(pace="instant") | Q(channel="mail"),
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Block",
            fields=[
                ("id", ID),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=models.CASCADE, related_name="blocks", to=settings.AUTH_USER_MODEL
                    ),
                ),
                (
                    "blocked",
                    models.ForeignKey(
                        on_delete=models.CASCADE, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
            ],
            options={
                "constraints": [
                    # It is the index by user, too.
                    models.UniqueConstraint(fields=["user", "blocked"], name="tailrace_block_once"),
                    models.CheckConstraint(
                        name="tailrace_block_not_oneself", condition=~Q(user=F("blocked"))
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Notification",
            fields=[
                ("id", ID),
                (
                    "event",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=models.DO_NOTHING,
                        related_name="notifications",
                        to="tailrace_events.event",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=models.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "group",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=models.CASCADE,
                        related_name="+",
                        to="auth.group",
                    ),
                ),
                ("role", models.TextField(help_text="the reason: the first role that applies")),
                ("created_at", models.DateTimeField(db_default=Now())),
            ],
            options={
                "constraints": [
                    # A recipient is notified of an event once, in whatever role. It is the index by event, too.
                    models.UniqueConstraint(
                        fields=["event", "user", "group"],
                        name="tailrace_notification_once",
                        nulls_distinct=False,
                    ),
                    models.CheckConstraint(
                        name="tailrace_notification_one_recipient",
                        condition=Q(group__isnull=False, user=None)
                        | Q(group=None, user__isnull=False),
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="InboxItem",
            fields=[
                ("id", ID),
                (
                    "user",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=models.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "group",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=models.CASCADE,
                        related_name="+",
                        to="auth.group",
                    ),
                ),
                (
                    "thing",
                    models.TextField(help_text="what the events are about: a request, a build …"),
                ),
                (
                    "event",
                    models.ForeignKey(
                        db_constraint=False,
                        on_delete=models.DO_NOTHING,
                        related_name="+",
                        to="tailrace_events.event",
                    ),
                ),
                ("role", models.TextField(help_text="the role that is the reason")),
                (
                    "events",
                    models.PositiveIntegerField(
                        default=1, help_text="number of events about this thing"
                    ),
                ),
                (
                    "arrived_at",
                    models.DateTimeField(
                        db_default=Now(), help_text="when the newest event arrived"
                    ),
                ),
                (
                    "read_at",
                    models.DateTimeField(
                        blank=True, help_text="when the newest event was read", null=True
                    ),
                ),
                (
                    "last_seen_at",
                    models.DateTimeField(
                        blank=True,
                        help_text="when an event about this thing was last read",
                        null=True,
                    ),
                ),
            ],
            options={
                "constraints": [
                    # The newest event on a thing replaces the older one.
                    models.UniqueConstraint(
                        fields=["user", "group", "thing"],
                        name="tailrace_inbox_item_once",
                        nulls_distinct=False,
                    ),
                    models.CheckConstraint(
                        name="tailrace_inbox_item_one_owner",
                        condition=Q(group__isnull=False, user=None)
                        | Q(group=None, user__isnull=False),
                    ),
                ],
                "indexes": [
                    # Pages of an inbox, the latest first.
                    models.Index(
                        F("user"),
                        F("arrived_at").desc(),
                        F("id").desc(),
                        name="tailrace_inbox_of_user",
                    ),
                    # The same, of the groups of a user.
                    models.Index(
                        F("group"),
                        F("arrived_at").desc(),
                        F("id").desc(),
                        name="tailrace_inbox_of_group",
                    ),
                    # What is pruned.
                    models.Index(fields=["arrived_at"], name="tailrace_inbox_oldest"),
                ],
            },
        ),
        migrations.CreateModel(
            name="Digest",
            fields=[
                ("id", ID),
                (
                    "user",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=models.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "group",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=models.CASCADE,
                        related_name="+",
                        to="auth.group",
                    ),
                ),
                (
                    "pace",
                    models.TextField(
                        choices=[
                            ("instant", "Instant"),
                            ("hourly", "Hourly"),
                            ("daily", "Daily"),
                            ("weekly", "Weekly"),
                        ]
                    ),
                ),
                ("window_end", models.DateTimeField(help_text="when the digest is sent")),
                ("created_at", models.DateTimeField(db_default=Now())),
                ("sent_at", models.DateTimeField(blank=True, null=True)),
            ],
            options={
                "constraints": [
                    # A recipient has one digest per pace and window, which gathers the events.
                    models.UniqueConstraint(
                        fields=["user", "group", "pace", "window_end"],
                        name="tailrace_digest_once",
                        nulls_distinct=False,
                    ),
                    models.CheckConstraint(
                        name="tailrace_digest_one_recipient",
                        condition=Q(group__isnull=False, user=None)
                        | Q(group=None, user__isnull=False),
                    ),
                ],
                "indexes": [
                    # The digests that are due.
                    models.Index(
                        fields=["window_end"],
                        name="tailrace_digest_unsent",
                        condition=Q(sent_at=None),
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="DigestItem",
            fields=[
                ("id", ID),
                (
                    "digest",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=models.CASCADE,
                        related_name="items",
                        to="tailrace_subscriptions.digest",
                    ),
                ),
                (
                    "event",
                    models.ForeignKey(
                        db_constraint=False,
                        on_delete=models.DO_NOTHING,
                        related_name="+",
                        to="tailrace_events.event",
                    ),
                ),
                ("role", models.TextField()),
            ],
            options={
                "constraints": [
                    # It is the index by digest, too.
                    models.UniqueConstraint(
                        fields=["digest", "event"], name="tailrace_digest_item_once"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Feed",
            fields=[
                ("id", ID),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=models.CASCADE, related_name="feeds", to=settings.AUTH_USER_MODEL
                    ),
                ),
                ("title", models.CharField(default="Tailrace", max_length=100)),
                ("token_hash", models.CharField(editable=False, max_length=64, unique=True)),
                ("created_at", models.DateTimeField(db_default=Now(), editable=False)),
                ("revoked_at", models.DateTimeField(blank=True, null=True)),
            ],
            options={
                "indexes": [
                    # Whether a user has feeds: only then are items written.
                    models.Index(
                        fields=["user"], name="tailrace_feed_live", condition=Q(revoked_at=None)
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="FeedItem",
            fields=[
                ("id", ID),
                (
                    "user",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=models.CASCADE,
                        related_name="feed_items",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "event",
                    models.ForeignKey(
                        db_constraint=False,
                        on_delete=models.DO_NOTHING,
                        related_name="+",
                        to="tailrace_events.event",
                    ),
                ),
                ("role", models.TextField()),
                ("created_at", models.DateTimeField(db_default=Now())),
            ],
            options={
                "constraints": [
                    # It is the index by user, too.
                    models.UniqueConstraint(
                        fields=["user", "event"], name="tailrace_feed_item_once"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Device",
            fields=[
                ("id", ID),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=models.CASCADE,
                        related_name="devices",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "url",
                    models.TextField(
                        help_text="the address of this browser at its push service", unique=True
                    ),
                ),
                ("p256dh", models.TextField(help_text="the browser's public key, base64url")),
                ("auth", models.TextField(help_text="the browser's secret, base64url")),
                ("name", models.TextField(blank=True, default="")),
                ("created_at", models.DateTimeField(db_default=Now(), editable=False)),
                (
                    "gone_at",
                    models.DateTimeField(
                        blank=True,
                        help_text="when the push service reported that its subscription ended",
                        null=True,
                    ),
                ),
            ],
            options={
                "indexes": [
                    # The browsers that a user's notifications go to.
                    models.Index(
                        fields=["user"], name="tailrace_device_live", condition=Q(gone_at=None)
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Endpoint",
            fields=[
                ("id", ID),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=models.CASCADE,
                        related_name="endpoints",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("url", models.TextField()),
                ("description", models.TextField(blank=True, default="")),
                (
                    "event_types",
                    models.JSONField(
                        blank=True,
                        db_default=[],
                        default=list,
                        help_text="the event types and families that it gets; empty: all of the subscriptions",
                    ),
                ),
                (
                    "subject_pattern",
                    models.TextField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="only these subjects, e.g. devel:*, where * matches any text; empty: all",
                    ),
                ),
                ("secret", models.TextField(editable=False, help_text="encrypted")),
                ("old_secret", models.TextField(default="", editable=False, help_text="encrypted")),
                ("old_secret_until", models.DateTimeField(editable=False, null=True)),
                (
                    "older_secrets",
                    models.JSONField(
                        db_default=[],
                        default=list,
                        editable=False,
                        help_text="those before the old one that still sign: encrypted, and until when",
                    ),
                ),
                (
                    "confirmed_url",
                    models.TextField(
                        db_default="",
                        default="",
                        editable=False,
                        help_text="the URL that answered a challenge; another one has not been confirmed",
                    ),
                ),
                (
                    "state",
                    models.TextField(
                        choices=[
                            ("enabled", "Enabled"),
                            ("paused", "paused: deliveries wait"),
                            ("disabled", "disabled: nothing is sent"),
                        ],
                        default="enabled",
                    ),
                ),
                (
                    "reason",
                    models.TextField(blank=True, default="", help_text="why it is not enabled"),
                ),
                ("failing_since", models.DateTimeField(editable=False, null=True)),
                ("created_at", models.DateTimeField(db_default=Now(), editable=False)),
            ],
            options={
                "indexes": [
                    # The endpoints that a user's events go to.
                    models.Index(
                        fields=["user"],
                        name="tailrace_endpoint_not_disabled",
                        condition=~Q(state="disabled"),
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Delivery",
            fields=[
                ("id", ID),
                (
                    "endpoint",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=models.CASCADE,
                        related_name="deliveries",
                        to="tailrace_subscriptions.endpoint",
                    ),
                ),
                (
                    "job_id",
                    models.BigIntegerField(help_text="empty for a test delivery", null=True),
                ),
                ("event_id", models.BigIntegerField(null=True)),
                ("message_id", models.TextField(help_text="webhook-id, the same for all attempts")),
                ("attempt", models.PositiveIntegerField()),
                ("at", models.DateTimeField(db_default=Now())),
                ("milliseconds", models.PositiveIntegerField()),
                (
                    "status",
                    models.PositiveSmallIntegerField(
                        help_text="HTTP status of the response, if there was one", null=True
                    ),
                ),
                (
                    "outcome",
                    models.TextField(
                        choices=[
                            ("ok", "Ok"),
                            ("retry", "Retry"),
                            ("failed", "Failed"),
                            ("gone", "gone: the endpoint was disabled"),
                        ]
                    ),
                ),
                ("error", models.TextField(blank=True, default="")),
                (
                    "answer",
                    models.TextField(
                        blank=True, default="", help_text="the beginning of the response body"
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "deliveries",
                "indexes": [
                    # The attempts of an endpoint, the latest first.
                    models.Index(
                        F("endpoint"), F("id").desc(), name="tailrace_delivery_of_endpoint"
                    ),
                    # What is pruned.
                    models.Index(fields=["at"], name="tailrace_delivery_oldest"),
                    # The attempts of a message.
                    models.Index(
                        fields=["job_id", "id"],
                        name="tailrace_delivery_of_job",
                        condition=Q(job_id__isnull=False),
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Plan",
            fields=[
                ("id", ID),
                (
                    "name",
                    models.TextField(
                        help_text="the API names the plan by it",
                        max_length=50,
                        unique=True,
                        validators=[validators.ProhibitNullCharactersValidator()],
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
            name="PlanJob",
            fields=[
                ("id", ID),
                (
                    "plan",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=models.CASCADE,
                        related_name="jobs",
                        to="tailrace_subscriptions.plan",
                    ),
                ),
                (
                    "handler",
                    models.TextField(
                        help_text="its name",
                        max_length=200,
                        validators=[validators.ProhibitNullCharactersValidator()],
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
            ],
            options={
                "constraints": [
                    # It is the index by plan, too.
                    models.UniqueConstraint(
                        fields=["plan", "handler"], name="tailrace_plan_job_once"
                    ),
                    # Without a cron expression for it, there is no schedule.
                    models.CheckConstraint(
                        name="tailrace_plan_job_frequency",
                        condition=Q(frequency__in=["daily", "weekly", "monthly"]),
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="PlanSubscription",
            fields=[
                ("id", ID),
                (
                    "account",
                    models.OneToOneField(
                        on_delete=models.CASCADE,
                        related_name="plan_subscription",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "plan",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=models.PROTECT,
                        related_name="subscriptions",
                        to="tailrace_subscriptions.plan",
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
                            validators.MinValueValidator(1),
                            validators.MaxValueValidator(31),
                        ],
                    ),
                ),
                ("time_zone", models.TextField(default="UTC", validators=[check_time_zone])),
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
                ("created_at", models.DateTimeField(db_default=Now(), editable=False)),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        name="tailrace_plan_subscription_status",
                        condition=Q(status__in=["active", "past_due", "cancelled"]),
                    ),
                    # A day of the month.
                    models.CheckConstraint(
                        name="tailrace_plan_subscription_anchor_day",
                        condition=Q(anchor_day__gte=1, anchor_day__lte=31),
                    ),
                    # Only who has not paid has a grace.
                    models.CheckConstraint(
                        name="tailrace_plan_subscription_grace",
                        condition=Q(grace_until=None) | Q(status="past_due"),
                    ),
                ],
                "indexes": [
                    # The subscriptions whose schedules a change of the plan rewrites, piece by piece.
                    models.Index(fields=["plan", "id"], name="tailrace_subscription_of_plan"),
                    # Those whose grace ends.
                    models.Index(
                        fields=["grace_until"],
                        name="tailrace_plan_in_grace",
                        condition=Q(grace_until__isnull=False),
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="PlanChange",
            fields=[
                ("id", ID),
                (
                    "subscription",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=models.CASCADE,
                        related_name="changes",
                        to="tailrace_subscriptions.plansubscription",
                    ),
                ),
                ("at", models.DateTimeField(db_default=Now())),
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
                        on_delete=models.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "indexes": [
                    # The history of a subscription.
                    models.Index(fields=["subscription", "id"], name="tailrace_changes_of_plan"),
                ],
            },
        ),
        migrations.RunPython(create_plans, migrations.RunPython.noop),
        migrations.CreateModel(
            name="ApiToken",
            fields=[
                ("id", ID),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=models.CASCADE,
                        related_name="api_tokens",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("name", models.CharField(max_length=100)),
                ("token_hash", models.CharField(editable=False, max_length=64, unique=True)),
                ("scopes", ArrayField(base_field=models.TextField())),
                (
                    "event_types",
                    ArrayField(
                        base_field=models.TextField(),
                        blank=True,
                        db_default=[],
                        default=list,
                        help_text="event types and families that it may record with the scope events:write",
                    ),
                ),
                (
                    "event_source",
                    models.TextField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="the source of the events that it records; it has no other",
                    ),
                ),
                ("created_at", models.DateTimeField(db_default=Now(), editable=False)),
                ("expires_at", models.DateTimeField(blank=True, null=True)),
                ("last_used_at", models.DateTimeField(editable=False, null=True)),
                ("revoked_at", models.DateTimeField(blank=True, null=True)),
            ],
            options={
                "indexes": [
                    # The tokens that a user has.
                    models.Index(
                        fields=["user"],
                        name="tailrace_api_token_live",
                        condition=Q(revoked_at=None),
                    ),
                ],
            },
        ),
        migrations.RunSQL(CREATE_JOBS_OF_ENDPOINT, DROP_JOBS_OF_ENDPOINT),
    ]
