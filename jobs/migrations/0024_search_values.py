import django.db.models.functions.datetime
from django.db import migrations, models


class Migration(migrations.Migration):
    """A new table."""

    dependencies = [
        ("tailrace_jobs", "0023_totals"),
    ]

    operations = [
        migrations.CreateModel(
            name="SearchValue",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("field", models.TextField()),
                ("value", models.TextField()),
                ("event_id", models.BigIntegerField(null=True)),
                ("job_id", models.BigIntegerField(null=True)),
                ("at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                "default_permissions": (),
                "indexes": [
                    models.Index(fields=["field", "value", "id"], name="tailrace_search_value")
                ],
            },
        ),
    ]
