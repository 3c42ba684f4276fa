import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

LOCK_LIMIT = "SET LOCAL lock_timeout = '5s'"


class Migration(migrations.Migration):
    """Constant defaults: no row is written. Numbers and URLs that are there are not confirmed."""

    dependencies = [
        ("auth", "0012_alter_user_first_name_max_length"),
        ("tailrace_subscriptions", "0006_older_secrets"),
    ]

    operations = [
        migrations.RunSQL(LOCK_LIMIT, migrations.RunSQL.noop),
        migrations.CreateModel(
            name="PhoneCode",
            fields=[
                (
                    "user",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
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
        migrations.AddField(
            model_name="endpoint",
            name="confirmed_url",
            field=models.TextField(
                db_default="",
                default="",
                editable=False,
                help_text="the URL that answered a challenge; another one has not been confirmed",
            ),
        ),
        migrations.AddField(
            model_name="preferences",
            name="confirmed_phone",
            field=models.TextField(
                db_default="",
                default="",
                editable=False,
                help_text="the number that was confirmed by a code; another one gets no texts",
            ),
        ),
        migrations.RunSQL(migrations.RunSQL.noop, LOCK_LIMIT),
    ]
