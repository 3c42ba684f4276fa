import django.db.models.functions.datetime
from django.db import migrations, models


class Migration(migrations.Migration):
    """A table, and a column without a default: no row is read or written."""

    dependencies = [
        ("tailrace_photos", "0005_shown_places"),
    ]

    operations = [
        migrations.CreateModel(
            name="FileDeletion",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("storage_key", models.TextField(help_text="where the files are stored")),
                (
                    "requested_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
            ],
        ),
        migrations.AddField(
            model_name="photo",
            name="original_deleted_at",
            field=models.DateTimeField(
                blank=True, help_text="when the picture was deleted; its copy stays", null=True
            ),
        ),
    ]
