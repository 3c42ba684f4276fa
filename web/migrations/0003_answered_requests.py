import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models

LOCK_LIMIT = "SET LOCAL lock_timeout = '5s'"


class Migration(migrations.Migration):
    """A new table; its foreign key locks the users for a moment."""

    dependencies = [
        ("tailrace_web", "0002_second_factor"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.RunSQL(LOCK_LIMIT, migrations.RunSQL.noop),
        migrations.CreateModel(
            name="AnsweredRequest",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
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
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                (
                    "status",
                    models.PositiveSmallIntegerField(
                        help_text="empty: it is being worked on", null=True
                    ),
                ),
                ("location", models.TextField(db_default="", default="")),
                (
                    "answer",
                    models.TextField(
                        db_default="",
                        default="",
                        help_text="encrypted; empty: it has a secret, or is too long",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "default_permissions": (),
                "indexes": [
                    models.Index(fields=["created_at"], name="tailrace_answered_request_age")
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("user", "key"), name="tailrace_answered_request_once"
                    )
                ],
            },
        ),
        migrations.RunSQL(migrations.RunSQL.noop, LOCK_LIMIT),
    ]
