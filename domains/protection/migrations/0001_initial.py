import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Alert",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("kind", models.TextField(help_text="what was found: exposure, lien_filing …")),
                ("source", models.TextField(help_text="where: a provider, or property:<id>")),
                (
                    "severity",
                    models.SmallIntegerField(
                        choices=[(1, "info"), (2, "warning"), (3, "critical")]
                    ),
                ),
                ("details", models.JSONField(default=dict)),
                (
                    "raised_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                (
                    "announced_at",
                    models.DateTimeField(
                        blank=True,
                        help_text="when it was handed to the channels of its user",
                        null=True,
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="protection_alerts",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(fields=["user", "-id"], name="tailrace_protection_alert_user"),
                    models.Index(
                        condition=models.Q(("announced_at__isnull", True)),
                        fields=["user"],
                        name="tailrace_alert_unannounced",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="AlertPause",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("kind", models.TextField()),
                ("source", models.TextField()),
                (
                    "severity",
                    models.SmallIntegerField(
                        choices=[(1, "info"), (2, "warning"), (3, "critical")]
                    ),
                ),
                ("until", models.DateTimeField()),
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
                "constraints": [
                    models.UniqueConstraint(
                        fields=("user", "kind", "source"),
                        name="tailrace_protection_alert_pause_once",
                    )
                ],
            },
        ),
    ]
