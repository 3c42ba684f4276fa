import datetime

import django.contrib.postgres.fields
import django.core.validators
import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.contrib.postgres.operations import AddConstraintNotValid
from django.db import migrations, models

import tailrace.subscriptions.models.person


class Migration(migrations.Migration):
    dependencies = [
        ("auth", "0012_alter_user_first_name_max_length"),
        ("tailrace_events", "0001_initial"),
        ("tailrace_subscriptions", "0001_initial"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.RunSQL("SET LOCAL lock_timeout = '5s'", migrations.RunSQL.noop),
        migrations.CreateModel(
            name="ApiToken",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=100)),
                ("token_hash", models.CharField(editable=False, max_length=64, unique=True)),
                (
                    "scopes",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.TextField(), size=None
                    ),
                ),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), editable=False
                    ),
                ),
                ("expires_at", models.DateTimeField(blank=True, null=True)),
                ("last_used_at", models.DateTimeField(editable=False, null=True)),
                ("revoked_at", models.DateTimeField(blank=True, null=True)),
            ],
        ),
        migrations.CreateModel(
            name="Delivery",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("job_id", models.BigIntegerField(help_text="none: a test delivery", null=True)),
                ("event_id", models.BigIntegerField(null=True)),
                ("message_id", models.TextField(help_text="webhook-id, the same for each try")),
                ("attempt", models.PositiveIntegerField()),
                ("at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("milliseconds", models.PositiveIntegerField()),
                (
                    "status",
                    models.PositiveSmallIntegerField(help_text="of its answer, if any", null=True),
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
                ("answer", models.TextField(blank=True, default="", help_text="its beginning")),
            ],
            options={
                "verbose_name_plural": "deliveries",
            },
        ),
        migrations.CreateModel(
            name="Device",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "url",
                    models.TextField(help_text="the push service's, for this browser", unique=True),
                ),
                ("p256dh", models.TextField(help_text="the browser's public key, base64url")),
                ("auth", models.TextField(help_text="the browser's secret, base64url")),
                ("name", models.TextField(blank=True, default="")),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), editable=False
                    ),
                ),
                (
                    "gone_at",
                    models.DateTimeField(blank=True, help_text="it unsubscribed itself", null=True),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Digest",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
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
                ("window_end", models.DateTimeField(help_text="when it is sent")),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                ("sent_at", models.DateTimeField(blank=True, null=True)),
            ],
        ),
        migrations.CreateModel(
            name="DigestItem",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("role", models.TextField()),
            ],
        ),
        migrations.CreateModel(
            name="Endpoint",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("url", models.TextField()),
                ("description", models.TextField(blank=True, default="")),
                ("secret", models.TextField(editable=False, help_text="encrypted")),
                ("old_secret", models.TextField(default="", editable=False, help_text="encrypted")),
                ("old_secret_until", models.DateTimeField(editable=False, null=True)),
                (
                    "state",
                    models.TextField(
                        choices=[
                            ("enabled", "Enabled"),
                            ("paused", "paused: its deliveries are held"),
                            ("disabled", "disabled: it gets nothing"),
                        ],
                        default="enabled",
                    ),
                ),
                (
                    "reason",
                    models.TextField(blank=True, default="", help_text="why it is not enabled"),
                ),
                ("failing_since", models.DateTimeField(editable=False, null=True)),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), editable=False
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="InboxItem",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "thing",
                    models.TextField(
                        help_text="what its events have in common: a request, a build …"
                    ),
                ),
                ("role", models.TextField(help_text="the reason")),
                (
                    "events",
                    models.PositiveIntegerField(default=1, help_text="on this thing, so far"),
                ),
                (
                    "arrived_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), help_text="the newest"
                    ),
                ),
                (
                    "read_at",
                    models.DateTimeField(blank=True, help_text="the newest, if it was", null=True),
                ),
                (
                    "last_seen_at",
                    models.DateTimeField(
                        blank=True,
                        help_text="when something on this thing was read last",
                        null=True,
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Preferences",
            fields=[
                (
                    "user",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="preferences",
                        serialize=False,
                        to=settings.AUTH_USER_MODEL,
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
                    "digest_at",
                    models.TimeField(
                        default=datetime.time(8, 0), help_text="when digests of days and weeks come"
                    ),
                ),
                (
                    "digest_weekday",
                    models.PositiveSmallIntegerField(
                        default=0,
                        help_text="0 is Monday",
                        validators=[django.core.validators.MaxValueValidator(6)],
                    ),
                ),
                (
                    "phone",
                    models.TextField(
                        blank=True,
                        default="",
                        help_text="for texts (E.164)",
                        validators=[
                            django.core.validators.RegexValidator(
                                "^\\+[1-9]\\d{6,14}$", "a number such as +4930123456"
                            )
                        ],
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "preferences",
            },
        ),
        migrations.AddField(
            model_name="eventsubscription",
            name="pace",
            field=models.TextField(
                choices=[
                    ("instant", "Instant"),
                    ("hourly", "Hourly"),
                    ("daily", "Daily"),
                    ("weekly", "Weekly"),
                ],
                db_default="instant",
                default="instant",
                help_text="of mails: each at once, or together in a digest",
            ),
        ),
        AddConstraintNotValid(
            model_name="eventsubscription",
            constraint=models.CheckConstraint(
                condition=models.Q(("pace", "instant"), ("channel", "mail"), _connector="OR"),
                name="tailrace_subscription_pace_of_mail",
            ),
        ),
        migrations.AddField(
            model_name="apitoken",
            name="user",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="api_tokens",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddField(
            model_name="device",
            name="user",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="devices",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddField(
            model_name="digest",
            name="group",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="digests",
                to="auth.group",
            ),
        ),
        migrations.AddField(
            model_name="digest",
            name="user",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="digests",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddField(
            model_name="digestitem",
            name="digest",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="items",
                to="tailrace_subscriptions.digest",
            ),
        ),
        migrations.AddField(
            model_name="digestitem",
            name="event",
            field=models.ForeignKey(
                db_constraint=False,
                on_delete=django.db.models.deletion.DO_NOTHING,
                related_name="+",
                to="tailrace_events.event",
            ),
        ),
        migrations.AddField(
            model_name="endpoint",
            name="user",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="endpoints",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddField(
            model_name="delivery",
            name="endpoint",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="deliveries",
                to="tailrace_subscriptions.endpoint",
            ),
        ),
        migrations.AddField(
            model_name="inboxitem",
            name="event",
            field=models.ForeignKey(
                db_constraint=False,
                on_delete=django.db.models.deletion.DO_NOTHING,
                related_name="+",
                to="tailrace_events.event",
            ),
        ),
        migrations.AddField(
            model_name="inboxitem",
            name="group",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="inbox",
                to="auth.group",
            ),
        ),
        migrations.AddField(
            model_name="inboxitem",
            name="user",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="inbox",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddIndex(
            model_name="apitoken",
            index=models.Index(
                condition=models.Q(("revoked_at", None)),
                fields=["user"],
                name="tailrace_api_token_live",
            ),
        ),
        migrations.AddIndex(
            model_name="device",
            index=models.Index(
                condition=models.Q(("gone_at", None)), fields=["user"], name="tailrace_device_live"
            ),
        ),
        migrations.AddIndex(
            model_name="digest",
            index=models.Index(
                condition=models.Q(("sent_at", None)),
                fields=["window_end"],
                name="tailrace_digest_unsent",
            ),
        ),
        migrations.AddConstraint(
            model_name="digest",
            constraint=models.UniqueConstraint(
                fields=("user", "group", "pace", "window_end"),
                name="tailrace_digest_once",
                nulls_distinct=False,
            ),
        ),
        migrations.AddConstraint(
            model_name="digest",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("group__isnull", False), ("user", None)),
                    models.Q(("group", None), ("user__isnull", False)),
                    _connector="OR",
                ),
                name="tailrace_digest_one_recipient",
            ),
        ),
        migrations.AddConstraint(
            model_name="digestitem",
            constraint=models.UniqueConstraint(
                fields=("digest", "event"), name="tailrace_digest_item_once"
            ),
        ),
        migrations.AddIndex(
            model_name="endpoint",
            index=models.Index(
                condition=models.Q(("state", "disabled"), _negated=True),
                fields=["user"],
                name="tailrace_endpoint_not_disabled",
            ),
        ),
        migrations.AddIndex(
            model_name="delivery",
            index=models.Index(
                models.F("endpoint"),
                models.OrderBy(models.F("id"), descending=True),
                name="tailrace_delivery_of_endpoint",
            ),
        ),
        migrations.AddIndex(
            model_name="delivery",
            index=models.Index(fields=["at"], name="tailrace_delivery_oldest"),
        ),
        migrations.AddIndex(
            model_name="inboxitem",
            index=models.Index(
                models.F("user"),
                models.OrderBy(models.F("arrived_at"), descending=True),
                models.OrderBy(models.F("id"), descending=True),
                name="tailrace_inbox_of_user",
            ),
        ),
        migrations.AddIndex(
            model_name="inboxitem",
            index=models.Index(
                models.F("group"),
                models.OrderBy(models.F("arrived_at"), descending=True),
                models.OrderBy(models.F("id"), descending=True),
                name="tailrace_inbox_of_group",
            ),
        ),
        migrations.AddIndex(
            model_name="inboxitem",
            index=models.Index(fields=["arrived_at"], name="tailrace_inbox_oldest"),
        ),
        migrations.AddConstraint(
            model_name="inboxitem",
            constraint=models.UniqueConstraint(
                fields=("user", "group", "thing"),
                name="tailrace_inbox_item_once",
                nulls_distinct=False,
            ),
        ),
        migrations.AddConstraint(
            model_name="inboxitem",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("group__isnull", False), ("user", None)),
                    models.Q(("group", None), ("user__isnull", False)),
                    _connector="OR",
                ),
                name="tailrace_inbox_item_one_owner",
            ),
        ),
    ]
