import datetime

import django.core.validators
import django.db.models.functions.datetime
from django.db import migrations, models


class Migration(migrations.Migration):
    """Texts only: no SQL."""

    dependencies = [
        ("tailrace_subscriptions", "0003_pace_checked"),
    ]

    operations = [
        migrations.AlterField(
            model_name="delivery",
            name="answer",
            field=models.TextField(
                blank=True, default="", help_text="the beginning of the response body"
            ),
        ),
        migrations.AlterField(
            model_name="delivery",
            name="job_id",
            field=models.BigIntegerField(help_text="empty for a test delivery", null=True),
        ),
        migrations.AlterField(
            model_name="delivery",
            name="message_id",
            field=models.TextField(help_text="webhook-id, the same for all attempts"),
        ),
        migrations.AlterField(
            model_name="delivery",
            name="status",
            field=models.PositiveSmallIntegerField(
                help_text="HTTP status of the response, if there was one", null=True
            ),
        ),
        migrations.AlterField(
            model_name="device",
            name="gone_at",
            field=models.DateTimeField(
                blank=True,
                help_text="when the push service reported that its subscription ended",
                null=True,
            ),
        ),
        migrations.AlterField(
            model_name="device",
            name="url",
            field=models.TextField(
                help_text="the address of this browser at its push service", unique=True
            ),
        ),
        migrations.AlterField(
            model_name="digest",
            name="window_end",
            field=models.DateTimeField(help_text="when the digest is sent"),
        ),
        migrations.AlterField(
            model_name="endpoint",
            name="state",
            field=models.TextField(
                choices=[
                    ("enabled", "Enabled"),
                    ("paused", "paused: deliveries wait"),
                    ("disabled", "disabled: nothing is sent"),
                ],
                default="enabled",
            ),
        ),
        migrations.AlterField(
            model_name="eventsubscription",
            name="event_type",
            field=models.TextField(help_text="an event type, a family of types, or * for all"),
        ),
        migrations.AlterField(
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
                help_text="for mail: at once or in a digest",
            ),
        ),
        migrations.AlterField(
            model_name="eventsubscription",
            name="subject_pattern",
            field=models.TextField(
                blank=True,
                default="",
                help_text="only these subjects, e.g. devel:*, where * matches any text; empty: all",
                max_length=200,
                validators=[django.core.validators.ProhibitNullCharactersValidator()],
            ),
        ),
        migrations.AlterField(
            model_name="inboxitem",
            name="arrived_at",
            field=models.DateTimeField(
                db_default=django.db.models.functions.datetime.Now(),
                help_text="when the newest event arrived",
            ),
        ),
        migrations.AlterField(
            model_name="inboxitem",
            name="events",
            field=models.PositiveIntegerField(
                default=1, help_text="number of events about this thing"
            ),
        ),
        migrations.AlterField(
            model_name="inboxitem",
            name="last_seen_at",
            field=models.DateTimeField(
                blank=True, help_text="when an event about this thing was last read", null=True
            ),
        ),
        migrations.AlterField(
            model_name="inboxitem",
            name="read_at",
            field=models.DateTimeField(
                blank=True, help_text="when the newest event was read", null=True
            ),
        ),
        migrations.AlterField(
            model_name="inboxitem",
            name="role",
            field=models.TextField(help_text="the role that is the reason"),
        ),
        migrations.AlterField(
            model_name="inboxitem",
            name="thing",
            field=models.TextField(help_text="what the events are about: a request, a build …"),
        ),
        migrations.AlterField(
            model_name="notification",
            name="role",
            field=models.TextField(help_text="the reason: the first role that applies"),
        ),
        migrations.AlterField(
            model_name="preferences",
            name="digest_at",
            field=models.TimeField(
                default=datetime.time(8, 0), help_text="time of daily and weekly digests"
            ),
        ),
        migrations.AlterField(
            model_name="preferences",
            name="digest_weekday",
            field=models.PositiveSmallIntegerField(
                default=0,
                help_text="day of weekly digests; 0 is Monday",
                validators=[django.core.validators.MaxValueValidator(6)],
            ),
        ),
        migrations.AlterField(
            model_name="preferences",
            name="phone",
            field=models.TextField(
                blank=True,
                default="",
                help_text="for text messages (E.164)",
                validators=[
                    django.core.validators.RegexValidator(
                        "^\\+[1-9]\\d{6,14}$", "a number such as +4930123456"
                    )
                ],
            ),
        ),
    ]
